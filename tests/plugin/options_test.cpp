// Options against a manifest: conversions, defaults, and all mistakes in one error.
#include "core/plugin/options.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::plugin;

namespace {
Manifest manifest() {
    auto m =
        parse_manifest(read_file(std::filesystem::path(DSV4_SOURCE_DIR) / "tests/plugin/good/parser-good.toml"), "it")
            .value();
    OptionSpec needed;
    needed.name = "needed";
    needed.type = OptionType::string;
    m.options.push_back(needed);
    return m;
}
} // namespace

TEST_CASE("options are completed and converted") {
    plan::Options given;
    given["needed"].value = std::string("here");
    given["share"].value = std::int64_t{0};
    given["budget"].value = std::int64_t{4096};
    const auto values = resolve_options(manifest(), given);
    REQUIRE(values.ok());
    CHECK(values->size() == 8);
    CHECK(values->at("share") == OptionValue(0.0));
    CHECK(values->at("budget") == OptionValue(std::int64_t{4096}));
    CHECK(values->at("repeat") == OptionValue(std::int64_t{1}));
}

TEST_CASE("a list of texts is one a line") {
    plan::Options given;
    given["needed"].value = std::string("here");
    given["greeting"].value = plan::OptionList{plan::Option{std::string("good")}, plan::Option{std::string("day")}};
    const auto values = resolve_options(manifest(), given);
    REQUIRE(values.ok());
    CHECK(std::get<std::string>(values->at("greeting")) == "good\nday");
}

TEST_CASE("every mistake is told at once") {
    plan::Options given;
    given["colour"].value = std::string("red");
    given["loud"].value = std::int64_t{1};
    given["repeat"].value = std::int64_t{0};
    given["mode"].value = std::string("odd");
    given["budget"].value = std::int64_t{-1};
    given["greeting"].value = plan::OptionList{plan::Option{std::int64_t{1}}};
    const auto values = resolve_options(manifest(), given);
    REQUIRE_FALSE(values.ok());
    CHECK(values.error().code == Code::invalid);
    for (const auto* part :
         {"the options of plugin parser-good are wrong: ", "option \"colour\" does not exist",
          "option \"loud\" must be a value of type bool", "option \"repeat\" is 0; it must be at least 1",
          "option \"mode\" is \"odd\"; it must be one of plain, fancy",
          "option \"budget\" must be a value of type size", "option \"greeting\" must be a value of type string",
          "option \"needed\" has no default and must be set"})
        CHECK_THAT(values.error().message, ContainsSubstring(part));
}
