// Texts that nobody writes by hand: they must give a diagnostic, quickly, and nothing worse.
#include "dsl/compile.hpp"
#include "dsl/toml_reader.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4::dsl;

namespace {

std::string repeat(std::string_view piece, std::size_t count, std::string_view before = {}) {
    std::string out(before);
    for (std::size_t i = 0; i < count; ++i) out += piece;
    return out;
}

Compilation refused(std::string text, DiagnosticCode code) {
    Compilation result = compile_text("x.toml", std::move(text));
    REQUIRE(result.diagnostics.size() >= 1);
    CHECK(result.diagnostics.front().code == code);
    CHECK(!result.plan);
    CHECK(!render_human(result.diagnostics, result.sources).empty());
    CHECK(!render_json(result.diagnostics, result.sources).empty());
    return result;
}

constexpr const char* complete =
    "schema = 1\n[checkpoint]\nid = \"a/b\"\n[hardware]\nplatform = \"cpu\"\n[topology]\ntp = 1\n";

} // namespace

TEST_CASE("nesting is limited before the parser recurses") {
    refused(repeat("[", 100000, "a = "), codes::does_not_parse);
    refused(repeat("{ b = ", 100000, "a = "), codes::does_not_parse);
    refused(repeat("[", 100000), codes::does_not_parse);
    refused(repeat(".a", 100000, "a") + " = 1", codes::does_not_parse);
    refused(repeat(".a", 100000, "[a") + "]", codes::does_not_parse);
    refused(repeat("[", max_bracket_depth + 1, "a = ") + repeat("]", max_bracket_depth + 1), codes::does_not_parse);
    // At the limit it is the schema that speaks.
    refused(repeat("[", max_bracket_depth, "a = ") + repeat("]", max_bracket_depth), codes::unknown_key);
    refused(repeat(".a", max_key_parts - 1, "a") + " = 1", codes::unknown_key);
    // Brackets and dots in strings and comments do not count.
    const std::string dots = repeat(".", 100), brackets = repeat("[", 100);
    CHECK(compile_text("x.toml", "title = \"" + dots + brackets + "\\\"" + brackets + "\" # " + brackets +
                                     "\nsource = '''\n" + dots + "'" + brackets + "'''\n" + complete)
              .plan);
}

TEST_CASE("the length of a file is limited") {
    const std::string comment = repeat("x", max_source_bytes - 3 - std::string(complete).size(), "# ") + "\n";
    CHECK(compile_text("x.toml", comment + complete).plan);
    const Compilation result = refused(comment + complete + " ", codes::does_not_parse);
    CHECK_THAT(result.diagnostics[0].message, ContainsSubstring("longer than the 1048576 bytes"));
}

TEST_CASE("bytes that are no UTF-8 have a place") {
    const Compilation result = refused("schema = 1\ntitle = \"\xC3\xA9\xFF\"\n", codes::does_not_parse);
    REQUIRE(result.diagnostics.size() == 1);
    const SourceRange range = result.diagnostics[0].primary.range;
    CHECK(range.begin == 22);
    CHECK(result.sources.position(0, range.begin) == Position{2, 11});
    CHECK_THAT(result.diagnostics[0].message, ContainsSubstring("0xFF"));
}

TEST_CASE("line ends of both kinds give the same places") {
    std::string unix_text = std::string("schema = 1\n[kv]\ndtype = 3\nblok_size = 1\n") + "[checkpoint]\nid=\"a\"\n";
    std::string dos_text;
    for (const char c : unix_text) dos_text += c == '\n' ? std::string("\r\n") : std::string(1, c);
    const Compilation a = compile_text("x.toml", unix_text), b = compile_text("x.toml", dos_text);
    CHECK(a.diagnostics.size() == 4);
    CHECK(render_human(a.diagnostics, a.sources) == render_human(b.diagnostics, b.sources));
}

TEST_CASE("a byte order mark changes no column") {
    const Compilation result = refused("\xEF\xBB\xBF"
                                       "kv = 3\n",
                                       codes::required_missing);
    REQUIRE(result.diagnostics.size() == 4);
    const SourceRange range = result.diagnostics[3].primary.range;
    CHECK(result.diagnostics[3].code == codes::wrong_type);
    CHECK(result.sources.position(0, range.begin) == Position{1, 6});
    CHECK(range.begin == 8);
}

TEST_CASE("columns after wide text are those of code points") {
    const Compilation result = compile_text(
        "x.toml", std::string(complete) + "ep = false # \xE6\x97\xA5\nslots = \"\xE6\x97\xA5\"\n"
                                          "[kv]\ndtype = \"\xC3\xA9\" \n[log]\nlevel = \"\xE6\x97\xA5\xE6\x9C\xAC\"\n");
    REQUIRE(result.diagnostics.size() == 2);
    CHECK(result.sources.position(0, result.diagnostics[1].primary.range.begin) == Position{13, 9});
    CHECK(result.sources.position(0, result.diagnostics[1].primary.range.end) == Position{13, 13});
}

TEST_CASE("a hundred thousand values on one line are quick") {
    std::string text = std::string(complete) + "[network]\nranks = [";
    for (int i = 0; i < 100000; ++i) text += "1,\xC2\xA0";
    // A no-break space is no TOML white space, so this does not parse; the list below does.
    refused(text + "]\n", codes::does_not_parse);
    const Compilation result =
        compile_text("x.toml", std::string(complete) + "[network]\nranks = [" + repeat("-2,", 100000) + "]\n");
    CHECK(result.diagnostics.size() == 100000);
}

TEST_CASE("every compilation says the same in the same order") {
    const std::string text =
        "zeta = 1\nalpha = 2\n[kv]\nx = 1\ndtype = 2\n[api]\nport = 0\n[context]\nmax_num_seqs = 0\n";
    const Compilation first = compile_text("x.toml", text, {{"log.level=a", "kv.y=1"}});
    CHECK(first.diagnostics.size() >= 10);
    for (int i = 0; i < 5; ++i) {
        const Compilation again = compile_text("x.toml", text, {{"log.level=a", "kv.y=1"}});
        CHECK(render_json(again.diagnostics, again.sources) == render_json(first.diagnostics, first.sources));
    }
}

TEST_CASE("control characters of a file never reach the terminal") {
    const Compilation result = refused("\"a\\u001B[31m\" = 1\n", codes::unknown_key);
    CHECK(render_human(result.diagnostics, result.sources).find('\x1B') == std::string::npos);
}
