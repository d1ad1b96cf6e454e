// What `dsv4 plugins` prints: tables, descriptions and their JSON.
#include "core/plugin/inspect.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace dsv4;
using namespace dsv4::plugin;
using Json = nlohmann::json;

TEST_CASE("a list is a table and the reason of each refusal") {
    const TempDir dir;
    dir.copy(built("parser-good"), "parser-good.so");
    dir.write("parser-broken.so", "no library");
    const Registry registry(SearchPath{{dir.path()}, {"DSV4_PLUGIN_PATH has the empty entry"}});
    const auto text = list_text(registry.scan(), registry.search_path());
    CHECK_THAT(text,
               ContainsSubstring("NAME           VERSION  KINDS   STATE     STATUS  SECURITY         ABI  PATH\n"));
    CHECK_THAT(text, ContainsSubstring("parser-broken  -        -       refused   -       -                -    " +
                                       (dir.path() / "parser-broken.so").string() + "\n"));
    CHECK_THAT(text, ContainsSubstring("parser-good    1.2.3    parser  loadable  beta    untrusted-input  1.0  " +
                                       (dir.path() / "parser-good.so").string() + "\n"));
    CHECK_THAT(text, ContainsSubstring("\nparser-broken\n  refused: " + (dir.path() / "parser-broken.so").string() +
                                       " is not an ELF file, so it cannot be a plugin\n  fix: build the plugin with "
                                       "dsv4_add_plugin\n"));
    CHECK_THAT(text, ContainsSubstring("\nnote: DSV4_PLUGIN_PATH has the empty entry\n"));
    const auto json = Json::parse(list_json(registry.scan(), registry.search_path()));
    REQUIRE(json["plugins"].size() == 2);
    CHECK(json["plugins"][0]["state"] == "refused");
    CHECK(json["plugins"][0]["refused"]["code"] == 1);
    CHECK(json["plugins"][1]["state"] == "loadable");
    CHECK(json["plugins"][1]["kinds"] == Json{"parser"});
    CHECK(json["directories"] == Json{dir.path().string()});
    const Registry empty(SearchPath{{dir.path() / "none"}, {}});
    CHECK(list_text(empty.scan(), empty.search_path()) == "no plugins in\n  " + (dir.path() / "none").string() + "\n");
}

TEST_CASE("a description has options with types, ranges and defaults, and targets") {
    const auto candidate = examine(built("parser-good"));
    const auto text = inspect_text(candidate);
    for (const auto* part :
         {"parser-good 1.2.3\nRepeats what it is told.\n", "licence   Apache-2.0\n", "ABI       1.0\n",
          "set in [plugins.options.parser-good]\n", "  repeat    int, 1 to 8, default 1\n", "How often to say it.\n",
          "  share     float, 0.0 to 1.0, default 0.5\n", "  budget    size, default 2097152\n",
          "  mode      enum (plain, fancy), default \"plain\"\n", "reasoning_parser  good\n",
          "target x86_64 (verified)\n", "capabilities  text.echo\n"})
        CHECK_THAT(text, ContainsSubstring(part));
    const auto json = Json::parse(inspect_json(candidate));
    CHECK(json["options"][1] == Json({{"name", "repeat"},
                                      {"type", "int"},
                                      {"help", "How often to say it."},
                                      {"default", 1},
                                      {"min", 1},
                                      {"max", 8}}));
    CHECK(json["targets"][0]["arch"] == "x86_64");
    CHECK_FALSE(json.contains("refused"));
}

TEST_CASE("a refused plugin is described as far as it is known") {
    const auto known = examine(built("parser-extra-exports"));
    CHECK_THAT(inspect_text(known), ContainsSubstring("parser-extra-exports 1.0.0"));
    CHECK_THAT(inspect_text(known), ContainsSubstring("\nrefused: "));
    CHECK(Json::parse(inspect_json(known))["refused"]["fix"] == "link with the version script of dsv4_add_plugin");
    const auto unknown = examine(built("parser-no-manifest"));
    CHECK_THAT(inspect_text(unknown), ContainsSubstring("has no section .dsv4.manifest"));
    CHECK_FALSE(Json::parse(inspect_json(unknown)).contains("version"));
}

TEST_CASE("the report of a check as JSON") {
    const auto json = Json::parse(check_json(check(examine(built("parser-crash")))));
    CHECK(json["passed"] == false);
    CHECK(json["steps"].back()["result"] == "failed");
    CHECK(json["steps"].back()["name"] == "create parser");
}
