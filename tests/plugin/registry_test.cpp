// The registry: order of directories, shadowing, refusals in a scan, and loud errors for a name.
#include "core/plugin/registry.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

#include <unistd.h>

using namespace dsv4;
using namespace dsv4::plugin;

namespace {

class Variable {
  public:
    Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
    ~Variable() { ::unsetenv(name_); }

  private:
    const char* name_;
};

bool has(const SearchPath& search, const std::filesystem::path& directory) {
    return std::find(search.directories.begin(), search.directories.end(), directory) != search.directories.end();
}

} // namespace

TEST_CASE("the search path is built-in, environment, pipeline; absolute only") {
    const Variable variable("DSV4_PLUGIN_PATH", "/opt/a:relative/b::/opt/c/:/opt/a");
    const std::vector<std::string> extra{"/srv/d", "./e"};
    const auto search = standard_search_path(extra);
    const auto n = search.directories.size();
    REQUIRE(n >= 4);
    const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
    CHECK(search.directories[0].string().substr(0, program.string().size()) == program.string());
    CHECK(has(search, program / "lib/dsv4/plugins"));
    CHECK(search.directories[n - 3] == "/opt/a");
    CHECK(search.directories[n - 2] == "/opt/c");
    CHECK(search.directories[n - 1] == "/srv/d");
    CHECK_FALSE(has(search, std::filesystem::current_path()));
    REQUIRE(search.ignored.size() == 3);
    CHECK_THAT(search.ignored[0], ContainsSubstring("DSV4_PLUGIN_PATH has the relative entry \"relative/b\""));
    CHECK_THAT(search.ignored[1], ContainsSubstring("DSV4_PLUGIN_PATH has the empty entry"));
    CHECK_THAT(search.ignored[2], ContainsSubstring("[plugins] paths has the relative entry \"./e\""));
}

TEST_CASE("a plugin in the working directory is not found") {
    const TempDir dir;
    dir.copy(built("parser-plain"), "parser-plain.so");
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(dir.path());
    const Registry registry;
    const auto found = registry.find("parser-plain");
    std::filesystem::current_path(before);
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().code == Code::not_found);
}

TEST_CASE("a scan lists what loads, what is refused and what is shadowed") {
    const TempDir first, second;
    first.copy(built("parser-good"), "parser-good.so");
    first.write("parser-broken.so", "no library");
    first.write("README.txt", "not looked at");
    second.copy(built("parser-good"), "parser-good.so");
    second.copy(built("parser-plain"), "parser-plain.so");
    const Registry registry(SearchPath{{first.path(), "/nonexistent/directory", second.path()}, {}});
    const auto found = registry.scan();
    REQUIRE(found.size() == 4);
    CHECK(found[0].candidate.name == "parser-broken");
    REQUIRE(found[0].candidate.refusal);
    CHECK_THAT(found[0].candidate.refusal->message, ContainsSubstring("is not an ELF file"));
    CHECK(found[1].candidate.path == first.path() / "parser-good.so");
    CHECK_FALSE(found[1].shadowed);
    CHECK(found[2].candidate.path == second.path() / "parser-good.so");
    CHECK(found[2].shadowed);
    CHECK(found[3].candidate.name == "parser-plain");
    CHECK_FALSE(found[3].candidate.refusal);
}

TEST_CASE("a name that is asked for fails loudly") {
    const TempDir dir;
    dir.copy(built("parser-good"), "parser-good.so");
    dir.write("parser-broken.so", "no library");
    Registry registry(SearchPath{{dir.path()}, {}});
    auto result = registry.load("parser-goood");
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().message == "there is no plugin parser-goood in " + dir.path().string());
    CHECK(result.error().fix == "did you mean parser-good?");
    result = registry.load("backend-zzz");
    REQUIRE_FALSE(result.ok());
    CHECK_THAT(result.error().fix, ContainsSubstring("DSV4_PLUGIN_PATH"));
    result = registry.load("parser-broken");
    REQUIRE_FALSE(result.ok());
    CHECK_THAT(result.error().message, ContainsSubstring("is not an ELF file"));
    // The broken file stays in front of any other of its name: nothing is loaded in its place.
    const auto good = registry.load("parser-good");
    REQUIRE(good.ok());
    CHECK(registry.load("parser-good").value() == *good);
    CHECK(registry.load((dir.path() / "parser-good.so").string()).value() == *good);
}

TEST_CASE("a plugin in progress loads only when it is allowed") {
    Registry registry(SearchPath{{DSV4_TEST_PLUGIN_DIR}, {}});
    const auto refused = registry.load("parser-in-progress");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::unsupported);
    CHECK_THAT(refused.error().message, ContainsSubstring("is work in progress"));
    CHECK(registry.load("parser-in-progress", {.allow_wip = true}).ok());
}
