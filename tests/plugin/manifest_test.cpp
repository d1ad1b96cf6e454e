// The manifest reader: what it takes, and every mistake with its place.
#include "core/plugin/manifest.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::plugin;

namespace {

const std::string head = R"(manifest = 1
name     = "backend-x"
version  = "1.2.3"
summary  = "A backend."
licence  = "MIT"
status   = "wip"
security = "unknown"
kinds    = ["backend", "spec"]
abi      = "1.0"
)";

std::vector<std::string> problems(const std::string& text) {
    std::vector<std::string> list;
    const auto reading = read_manifest(text);
    CHECK(reading.manifest.has_value() == reading.problems.empty());
    for (const auto& p : reading.problems)
        list.push_back(std::to_string(p.line) + ":" + std::to_string(p.column) + " " + p.message);
    return list;
}
std::vector<std::string> option_problems(const std::string& lines) {
    return problems(head + "[[option]]\nname = \"x\"\nhelp = \"h\"\n" + lines);
}

using List = std::vector<std::string>;

} // namespace

TEST_CASE("a whole manifest is read") {
    const auto m =
        parse_manifest(read_file(std::filesystem::path(DSV4_SOURCE_DIR) / "tests/plugin/good/parser-good.toml"), "it");
    REQUIRE(m.ok());
    CHECK(m->name == "parser-good");
    CHECK(m->version == "1.2.3");
    CHECK(m->status == Maturity::beta);
    CHECK(m->security == Posture::untrusted_input);
    CHECK(m->kinds == std::vector<Kind>{Kind::parser});
    CHECK(m->abi_major == 1);
    CHECK(m->abi_minor == 0);
    REQUIRE(m->options.size() == 7);
    CHECK(m->options[1].type == OptionType::integer);
    CHECK(m->options[1].min == OptionValue(std::int64_t{1}));
    CHECK(m->options[1].max == OptionValue(std::int64_t{8}));
    CHECK(m->options[2].max == OptionValue(1.0)); // written as 1
    CHECK(m->options[4].default_value == OptionValue(std::int64_t{2097152}));
    CHECK(m->options[5].values == List{"plain", "fancy"});
    REQUIRE(m->provides.size() == 1);
    CHECK(m->provides[0].what == "reasoning_parser");
    REQUIRE(m->targets.size() == 1);
    CHECK(m->targets[0].status == TargetStatus::verified);
    CHECK(m->targets[0].capabilities == List{"text.echo"});
}

TEST_CASE("a manifest with the required keys alone is enough") {
    const auto m = parse_manifest(head, "it");
    REQUIRE(m.ok());
    CHECK(m->threads == 0);
    CHECK(m->offers(Kind::spec));
    CHECK_FALSE(m->offers(Kind::api));
}

TEST_CASE("an empty text misses every required key") { CHECK(problems("").size() == 9); }

TEST_CASE("mistakes are named with line and column") {
    CHECK(problems("manifest = 1\nname = \"parser-x") ==
          List{"2:17 Error while parsing string: encountered end-of-file"});
    CHECK(problems(head + "colour = 1\n") == List{"10:1 `colour` is not a key of a manifest"});
    CHECK(problems(head + "threads = -1\n") == List{"10:11 `threads` must be a whole number from 0 to 4096"});
    CHECK(problems(head + "option = 3\n") == List{"10:10 `option` must be written as [[option]]"});
    CHECK(problems(head + "[[target]]\narch = \"a\"\nstatus = \"compiled\"\nops = [\"embed\", \"q/1\"]\n") ==
          List{"13:8 op \"embed\" must be written as name/version"});
    CHECK(problems(head + "[[target]]\narch = \"a\"\nstatus = \"wip\"\n[[target]]\narch = \"a\"\nstatus = \"wip\"\n") ==
          List{"14:8 target \"a\" is described twice"});
    CHECK(problems(head + "[[provides]]\nwhat = \"soup\"\nname = \"x\"\n").size() == 1);
}

TEST_CASE("options are checked against their own type") {
    CHECK(option_problems("type = \"int\"\nmin = 1\nmax = 3\ndefault = 2\n").empty());
    CHECK(option_problems("type = \"int\"\n").empty());
    CHECK(option_problems("type = \"int\"\ndefault = 1.5\n") ==
          List{"14:11 `default` of option \"x\" must be a value of its type int"});
    CHECK(option_problems("type = \"float\"\ndefault = nan\n") ==
          List{"14:11 `default` of option \"x\" must be a value of its type float"});
    CHECK(option_problems("type = \"int\"\nmin = 1\nmax = 3\ndefault = 4\n") ==
          List{"16:11 `default` of option \"x\" is outside `min` to `max`"});
    CHECK(option_problems("type = \"bool\"\nmin = 1\n") ==
          List{"14:7 option \"x\" has `min`, which only int, float and size may have"});
    CHECK(option_problems("type = \"enum\"\n") == List{"10:1 option \"x\" is an enum and has no `values`"});
    CHECK(option_problems("type = \"enum\"\nvalues = [\"a\"]\ndefault = \"b\"\n") ==
          List{"15:11 `default` of option \"x\" is not among its `values`"});
    CHECK(option_problems("type = \"string\"\nvalues = [\"a\"]\n") ==
          List{"14:10 option \"x\" has `values` and is no enum"});
    CHECK(option_problems("type = \"size\"\ndefault = \"2 furlongs\"\n") ==
          List{"14:11 `default` of option \"x\" must be a value of its type size"});
}

TEST_CASE("sizes") {
    CHECK(parse_size("0") == 0);
    CHECK(parse_size("384Ki") == 393216);
    CHECK(parse_size("20 GiB") == 21474836480);
    CHECK(parse_size("1 MB") == 1000000);
    CHECK(parse_size("8388607 TiB") == 9223370937343148032);
    for (const auto* bad : {"", "-1", "GiB", "1.5 GiB", "1 GiBB", "8388608 TiB", "99999999999999999999", "1 giB"}) {
        INFO(bad);
        CHECK_FALSE(parse_size(bad));
    }
}

TEST_CASE("hostile texts give errors and no crash") {
    CHECK_FALSE(parse_manifest(std::string(100000, '['), "it").ok());
    CHECK_FALSE(parse_manifest(std::string(2u << 20, 'a'), "it").ok());
    CHECK_FALSE(parse_manifest(std::string("manifest = 1\0x", 14), "it").ok());
    CHECK_FALSE(parse_manifest("name = \"\xff\xfe\"", "it").ok());
    CHECK(problems(head + "[[option]]\nname = \"a\\u001b[2J\"\ntype = \"bool\"\nhelp = \"h\"\n").size() == 2);
}
