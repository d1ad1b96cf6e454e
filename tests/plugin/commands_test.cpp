// `dsv4 plugins list | inspect | check`: texts, JSON and exit codes.
#include "core/plugin/commands.hpp"
#include "dsv4/sdk/result.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace dsv4;
using namespace dsv4::plugin;
using Json = nlohmann::json;

TEST_CASE("list prints a table, the reason of a refusal, and tells by its exit code") {
    const TempDir dir;
    dir.copy(built("parser-good"), "parser-good.so");
    auto output = list_command({{dir.path().string()}, false});
    CHECK(output.exit_code == 0);
    CHECK_THAT(output.out, ContainsSubstring("NAME"));
    CHECK_THAT(output.out, ContainsSubstring("parser-good  1.2.3    parser  loadable  beta    untrusted-input  1.0  " +
                                             (dir.path() / "parser-good.so").string()));
    dir.write("parser-broken.so", "no library");
    output = list_command({{dir.path().string()}, false});
    CHECK(output.exit_code == 1);
    CHECK_THAT(output.out, ContainsSubstring("\nparser-broken\n  refused: " +
                                             (dir.path() / "parser-broken.so").string() + " is not an ELF file"));
    CHECK_THAT(output.out, ContainsSubstring("  fix: build the plugin with dsv4_add_plugin\n"));
    const auto json = Json::parse(list_command({{dir.path().string()}, true}).out);
    Json good, broken;
    for (const auto& p : json["plugins"]) (p["name"] == "parser-good" ? good : broken) = p;
    CHECK(good["state"] == "loadable");
    CHECK(good["kinds"] == Json{"parser"});
    CHECK(broken["state"] == "refused");
    CHECK(broken["refused"]["code"] == 1);
}

TEST_CASE("inspect prints options with types, ranges and defaults, and targets") {
    const CommandRequest request{{DSV4_TEST_PLUGIN_DIR}, false};
    const auto output = inspect_command("parser-good", request);
    CHECK(output.exit_code == 0);
    for (const auto* part :
         {"parser-good 1.2.3\nRepeats what it is told.\n", "licence   Apache-2.0\n", "ABI       1.0\n",
          "repeat    int, 1 to 8, default 1\n", "How often to say it.\n", "share     float, 0.0 to 1.0, default 0.5\n",
          "budget    size, default 2097152\n", "mode      enum (plain, fancy), default \"plain\"\n",
          "reasoning_parser  good\n", "target x86_64 (verified)\n", "capabilities  text.echo\n"})
        CHECK_THAT(output.out, ContainsSubstring(part));
    const auto json = Json::parse(inspect_command("parser-good", {{DSV4_TEST_PLUGIN_DIR}, true}).out);
    CHECK(json["options"][1] == Json({{"name", "repeat"},
                                      {"type", "int"},
                                      {"help", "How often to say it."},
                                      {"default", 1},
                                      {"min", 1},
                                      {"max", 8}}));
    CHECK(json["targets"][0]["arch"] == "x86_64");
}

TEST_CASE("inspect tells a refusal, and takes a path") {
    auto output = inspect_command(built("parser-extra-exports").string(), {});
    CHECK(output.exit_code == 1);
    CHECK_THAT(output.out, ContainsSubstring("parser-extra-exports 1.0.0"));
    CHECK_THAT(output.out, ContainsSubstring("refused: "));
    output = inspect_command("parser-of-nobody", {});
    CHECK(output.exit_code == 3);
    CHECK(output.out.empty());
    CHECK_THAT(output.err, ContainsSubstring("error: there is no plugin parser-of-nobody in "));
}

TEST_CASE("check tells by its exit code") {
    const CommandRequest request{{DSV4_TEST_PLUGIN_DIR}, false};
    CHECK(check_command("parser-good", request).exit_code == 0);
    const auto crash = check_command("parser-crash", request);
    CHECK(crash.exit_code == 1);
    CHECK_THAT(crash.out, ContainsSubstring("SIGSEGV"));
    CHECK(check_command("parser-of-nobody", request).exit_code == 3);
    const auto json = Json::parse(check_command("parser-crash", {{DSV4_TEST_PLUGIN_DIR}, true}).out);
    CHECK(json["passed"] == false);
}

TEST_CASE("name=value pairs become options") {
    const auto options = parse_options({"a=true", "b=12", "c=1.5", "d=x=y", "e=", "f=12x"});
    CHECK(std::get<bool>(options.at("a").value));
    CHECK(std::get<std::int64_t>(options.at("b").value) == 12);
    CHECK(std::get<double>(options.at("c").value) == 1.5);
    CHECK(std::get<std::string>(options.at("d").value) == "x=y");
    CHECK(std::get<std::string>(options.at("e").value).empty());
    CHECK(std::get<std::string>(options.at("f").value) == "12x");
    CHECK_THROWS_AS(parse_options({"novalue"}), Failure);
    CHECK_THROWS_AS(parse_options({"a=1", "a=2"}), Failure);
}
