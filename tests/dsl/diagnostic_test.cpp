// Diagnostics: layout for people, JSON for programs, order.
#include "dsl/diagnostic.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace dsv4::dsl;

namespace {

Diagnostic make(DiagnosticCode code, std::string message, SourceRange range, std::string label) {
    Diagnostic diagnostic;
    diagnostic.code = code;
    diagnostic.message = std::move(message);
    diagnostic.primary = {range, std::move(label)};
    return diagnostic;
}

} // namespace

TEST_CASE("codes print and parse") {
    CHECK(to_string(codes::unknown_key) == "DSV4-E0102");
    CHECK(to_string(DiagnosticCode{Severity::warning, 1219}) == "DSV4-W1219");
    CHECK(to_string(DiagnosticCode{Severity::note, 7}) == "DSV4-N0007");
    DiagnosticCode code;
    CHECK(parse_diagnostic_code("DSV4-N0211", code));
    CHECK((code == DiagnosticCode{Severity::note, 211}));
    CHECK(parse_diagnostic_code("W0109", code));
    CHECK(code == codes::bytes_without_unit);
    for (const char* bad : {"", "E", "E102", "E01021", "DSV4E0102", "X0102", "E01O2", "dsv4-E0102"}) {
        INFO(bad);
        CHECK(!parse_diagnostic_code(bad, code));
    }
}

TEST_CASE("the human layout") {
    SourceMap sources;
    std::string text = "[topology]\nshape = \"tp2\"\n";
    for (int i = 3; i < 11; ++i) text += "# filler\n";
    text += "tp = 4\n";
    const SourceId id = sources.add("pipelines/x.toml", text);
    const auto at = static_cast<std::uint32_t>(text.find("tp = 4"));
    Diagnostic diagnostic =
        make(codes::duplicate_key, "`topology.tp` is defined twice", {id, at, at + 2}, "contradicts it");
    diagnostic.secondary.push_back({{id, 11, 16}, "this stands"});
    diagnostic.notes.push_back("a note");
    diagnostic.helps.push_back("keep one");
    diagnostic.fixes.push_back({"remove `tp`", {{{id, at, at + 6}, ""}}, Applicability::maybe_incorrect});
    diagnostic.evidence.push_back("owner/repo#1");
    CHECK(render_human(diagnostic, sources) == R"(error[DSV4-E0103]: `topology.tp` is defined twice
  --> pipelines/x.toml:11:1
   |
 2 | shape = "tp2"
   | ----- this stands
...
11 | tp = 4
   | ^^ contradicts it
   |
   = note: a note
   = help: keep one
   = fix: remove `tp`
   = see: owner/repo#1
)");
}

TEST_CASE("underlines stand under tabs, wide characters, line ends and control characters") {
    SourceMap sources;
    const SourceId tabs = sources.add("t", "\tx\t= 3");
    CHECK(render_human(make(codes::wrong_type, "m", {tabs, 1, 2}, ""), sources) ==
          "error[DSV4-E0104]: m\n --> t:1:2\n  |\n1 |     x   = 3\n  |     ^\n");
    const SourceId wide = sources.add("w", "\xE6\x97\xA5\xE6\x9C\xAC = e\xCC\x81 z");
    CHECK(render_human(make(codes::wrong_type, "m", {wide, 0, 6}, "two"), sources) ==
          "error[DSV4-E0104]: m\n --> w:1:1\n  |\n1 | \xE6\x97\xA5\xE6\x9C\xAC = e\xCC\x81 z\n  | ^^^^ two\n");
    // The combining accent takes no column of its own.
    CHECK(render_human(make(codes::wrong_type, "m", {wide, 13, 14}, ""), sources) ==
          "error[DSV4-E0104]: m\n --> w:1:9\n  |\n1 | \xE6\x97\xA5\xE6\x9C\xAC = e\xCC\x81 z\n  |          ^\n");
    const SourceId end = sources.add("e", "a =\r\n");
    CHECK(render_human(make(codes::does_not_parse, "m", {end, 3, 3}, "value"), sources) ==
          "error[DSV4-E0101]: m\n --> e:1:4\n  |\n1 | a =\n  |    ^ value\n");
    const SourceId control = sources.add("c", "a\x1B[31m\xFF"
                                              "b");
    CHECK(render_human(make(codes::does_not_parse, "m", {control, 6, 7}, ""), sources) ==
          "error[DSV4-E0101]: m\n --> c:1:7\n  |\n1 | a\xEF\xBF\xBD[31m\xEF\xBF\xBD"
          "b\n  |       ^\n");
    const SourceId lines = sources.add("l", "ab\ncd");
    CHECK(render_human(make(codes::wrong_type, "m", {lines, 1, 5}, ""), sources) ==
          "error[DSV4-E0104]: m\n --> l:1:2\n  |\n1 | ab\n  |  ^\n");
}

TEST_CASE("a second file has its own part") {
    SourceMap sources;
    const SourceId a = sources.add("a", "one"), b = sources.add("b", "two");
    Diagnostic diagnostic = make(codes::shadowed_setting, "m", {a, 0, 3}, "");
    diagnostic.secondary.push_back({{b, 0, 3}, "there"});
    CHECK(render_human(diagnostic, sources) ==
          "warning[DSV4-W0112]: m\n --> a:1:1\n  |\n1 | one\n  | ^^^\n ::: b:1:1\n  |\n1 | two\n  | --- there\n");
}

TEST_CASE("colour is only written when asked for") {
    SourceMap sources;
    const SourceId a = sources.add("a", "one");
    const Diagnostic diagnostic = make(codes::wrong_type, "m", {a, 0, 3}, "l");
    CHECK(render_human(diagnostic, sources).find('\x1B') == std::string::npos);
    CHECK_THAT(render_human(diagnostic, sources, {true}), ContainsSubstring("\x1B[1;31m^^^ l\x1B[0m"));
}

TEST_CASE("several diagnostics end in a count") {
    SourceMap sources;
    const SourceId a = sources.add("a", "one");
    const Diagnostic error = make(codes::wrong_type, "m", {a, 0, 3}, ""),
                     warning = make(codes::shadowed_setting, "n", {a, 0, 1}, "");
    CHECK(render_human(Diagnostics{}, sources).empty());
    CHECK_THAT(render_human(Diagnostics{error, warning, error}, sources),
               ContainsSubstring("\n\n2 errors, 1 warning\n"));
}

TEST_CASE("JSON lines carry offsets, lines and fixes") {
    SourceMap sources;
    const SourceId id = sources.add("f.toml", "\xC3\xA9 = 1\nblok = 2\n");
    Diagnostic diagnostic = make(codes::unknown_key, "unknown key `blok`", {id, 7, 11}, "here");
    diagnostic.fixes.push_back({"write `block`", {{{id, 7, 11}, "block"}}, Applicability::machine_applicable});
    const std::string text = render_json(Diagnostics{diagnostic, diagnostic}, sources);
    REQUIRE(std::count(text.begin(), text.end(), '\n') == 2);
    const auto json = nlohmann::json::parse(text.substr(0, text.find('\n')));
    const auto expected = nlohmann::json::parse(R"({
        "code": "DSV4-E0102", "severity": "error", "message": "unknown key `blok`",
        "primary": {"file": "f.toml", "begin": {"offset": 7, "line": 2, "column": 1},
                    "end": {"offset": 11, "line": 2, "column": 5}, "label": "here"},
        "secondary": [], "notes": [], "helps": [], "evidence": [],
        "fixes": [{"title": "write `block`", "applicability": "machine-applicable",
                   "edits": [{"file": "f.toml", "begin": {"offset": 7, "line": 2, "column": 1},
                              "end": {"offset": 11, "line": 2, "column": 5}, "replacement": "block"}]}]})");
    CHECK(json == expected);
}

TEST_CASE("order is by text, offset and code, without repetitions") {
    const auto at = [](SourceId source, std::uint32_t offset, DiagnosticCode code) {
        return make(code, "m", {source, offset, offset + 1}, "");
    };
    Diagnostics diagnostics{at(1, 0, codes::wrong_type), at(0, 9, codes::wrong_type), at(0, 9, codes::unknown_key),
                            at(0, 2, codes::wrong_type), at(0, 9, codes::wrong_type)};
    sort_diagnostics(diagnostics);
    REQUIRE(diagnostics.size() == 4);
    CHECK(diagnostics[0].primary.range.begin == 2);
    CHECK(diagnostics[1].code == codes::unknown_key);
    CHECK(diagnostics[2].code == codes::wrong_type);
    CHECK(diagnostics[3].primary.range.source == 1);
}
