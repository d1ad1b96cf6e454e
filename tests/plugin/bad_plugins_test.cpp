// Every way a plugin can be wrong gives its own clear error, and the host lives on.
#include "core/plugin/instance.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dsv4;
using namespace dsv4::plugin;

namespace {

// What loading and making an instance of kind parser says.
Error refusal_of(const std::filesystem::path& file) {
    const auto library = Library::load(file);
    if (!library) return library.error();
    host::HostOptions options;
    options.threads = 1;
    host::Host host(std::move(options));
    const auto instance = Instance::create(*library, Kind::parser, {}, host);
    REQUIRE_FALSE(instance.ok());
    return instance.error();
}

void expect(const std::string& name, Code code, const std::string& message, const std::string& fix) {
    INFO(name);
    const auto error = refusal_of(built(name));
    CHECK(error.code == code);
    CHECK_THAT(error.message, ContainsSubstring(message));
    CHECK_THAT(error.message, ContainsSubstring(name));
    CHECK_THAT(error.fix, ContainsSubstring(fix));
}

} // namespace

TEST_CASE("the control: a plugin with nothing wrong loads") {
    const auto library = Library::load(built("parser-plain"));
    REQUIRE(library.ok());
    host::Host host;
    CHECK(Instance::create(*library, Kind::parser, {}, host).ok());
}

TEST_CASE("versions that do not fit are refused with both numbers") {
    expect("parser-manifest-major", Code::unsupported, "was built for ABI 2.0; this program loads ABI 1",
           "SDK of ABI 1.0");
    expect("parser-manifest-minor", Code::unsupported, "was built for ABI 1.99, which is newer than this program's 1.0",
           "update this program");
    expect("parser-wrong-major", Code::unsupported, "was built for ABI 2.0; this program loads ABI 1",
           "SDK of ABI 1.0");
    expect("parser-newer-minor", Code::unsupported, "was built for ABI 1.1, which is newer than this program's 1.0",
           "update this program");
}

TEST_CASE("tables that are too short are refused by size and member") {
    expect("parser-short-descriptor", Code::invalid, "is too short: 48 bytes where ABI 1.0 has 56",
           "sizeof(dsv4_plugin)");
    expect("parser-short-table", Code::invalid,
           "the parser table of plugin parser-short-table is too short: its 48 bytes end before `stream_feed`",
           "struct_size");
    expect("parser-null-function", Code::invalid, "lacks the required function `encode`", "optional");
}

TEST_CASE("what contradicts the manifest or the file is refused") {
    expect("parser-other-name", Code::invalid, "holds a plugin that calls itself \"parser-somebody-else\"",
           "base name");
    expect("parser-other-hash", Code::invalid, "was built with another manifest than the one embedded in it",
           "build the plugin again");
    expect("parser-other-version", Code::invalid,
           "the version of plugin parser-other-version is \"2.0.0\" in its code and \"1.0.0\" in its manifest",
           "About");
    expect("parser-malformed", Code::invalid, "the manifest of", "docs/plugins.md");
    expect("parser-no-manifest", Code::invalid, "has no section .dsv4.manifest", "dsv4_add_plugin");
}

TEST_CASE("every mistake of a manifest is told at once") {
    const auto message = refusal_of(built("parser-many-mistakes")).message;
    for (const auto* part : {"`licence` is missing", "`version` is \"1.0\"; it must be MAJOR.MINOR.PATCH",
                             "`status` is \"done\"", "`kinds` has \"printer\"", "`abi` is \"1\"",
                             "`colour` is not a key of a manifest", "`min` of option \"size\" is above its `max`",
                             "`default` of option \"size\" must be a value of its type int"})
        CHECK_THAT(message, ContainsSubstring(part));
}

TEST_CASE("the entry symbol is the only export") {
    expect("parser-no-entry", Code::invalid, "does not export dsv4_plugin_entry", "DSV4_PLUGIN");
    expect("parser-extra-exports", Code::invalid, "exports one symbol besides dsv4_plugin_entry: helper_that_leaked",
           "version script");
    expect("parser-returns-null", Code::unsupported, "its entry function returned nothing", "a version of the plugin");
}

TEST_CASE("the loader's own words reach the user") {
    expect("parser-missing-library", Code::environment, "undefined symbol: dsv4_test_symbol_of_nobody",
           "install the libraries");
    CHECK_THAT(refusal_of(built("parser-missing-library")).message, !ContainsSubstring("Bad file descriptor"));
}

TEST_CASE("a constructor that throws is an error of the plugin") {
    expect("parser-sdk-throw", Code::internal, "plugin parser-sdk-throw cannot start: the constructor gave up", "");
}

TEST_CASE("an exception over the C boundary is told as the defect that it is") {
    expect("parser-raw-throw", Code::internal,
           "threw a C++ exception over the C boundary in create: not over this border", "author");
}

TEST_CASE("files that are no plugins are refused") {
    const TempDir dir;
    const auto good = read_file(built("parser-plain"));
    REQUIRE(good.size() > 4096);

    auto error = refusal_of(dir.path() / "parser-absent.so");
    CHECK(error.code == Code::not_found);
    CHECK_THAT(error.message, ContainsSubstring("there is no plugin file"));

    error = refusal_of(dir.write("parser-text.so", "This is not a library.\n"));
    CHECK(error.code == Code::invalid);
    CHECK_THAT(error.message, ContainsSubstring("is not an ELF file"));
    error = refusal_of(dir.write("parser-empty.so", ""));
    CHECK_THAT(error.message, ContainsSubstring("is not an ELF file"));

    error = refusal_of(dir.write("parser-cut.so", good.substr(0, good.size() / 2)));
    CHECK(error.code == Code::corrupt);
    CHECK_THAT(error.message, ContainsSubstring("is damaged: the section header table lies outside the file"));

    error = refusal_of(dir.copy(built("parser-plain"), "parser-renamed.so"));
    CHECK(error.code == Code::invalid);
    CHECK_THAT(error.message, ContainsSubstring("says in its manifest that its name is parser-plain"));
    CHECK_THAT(error.fix, ContainsSubstring("parser-plain.so"));

    error = refusal_of(dir.copy(built("parser-plain"), "parser-plain.so.1"));
    CHECK_THAT(error.message, ContainsSubstring("must end in .so"));

    std::filesystem::create_directory(dir.path() / "parser-folder.so");
    error = refusal_of(dir.path() / "parser-folder.so");
    CHECK_THAT(error.message, ContainsSubstring("is not a regular file"));

    auto foreign = good;
    foreign[18] = char(0xB7 ^ (good[18] == char(0xB7) ? 0x89 : 0)); // another machine
    error = refusal_of(dir.write("parser-plain.so", foreign));
    CHECK_THAT(error.message, ContainsSubstring("is built for another machine"));
}

TEST_CASE("files that others could replace are refused") {
    const TempDir dir;
    const auto file = dir.copy(built("parser-plain"), "parser-plain.so");
    REQUIRE(::chmod(file.c_str(), 0666) == 0);
    auto error = refusal_of(file);
    CHECK(error.code == Code::environment);
    CHECK_THAT(error.message, ContainsSubstring("is world-writable"));
    CHECK(error.fix == "chmod o-w " + file.string());

    REQUIRE(::chmod(file.c_str(), 0644) == 0);
    REQUIRE(::chmod(dir.path().c_str(), 0777) == 0);
    error = refusal_of(file);
    CHECK_THAT(error.message, ContainsSubstring("plugin directory " + dir.path().string() + " is world-writable"));
    REQUIRE(::chmod(dir.path().c_str(), 01777) == 0);
    CHECK_FALSE(examine(file).refusal);
}

TEST_CASE("a file that cannot be read says so") {
    const TempDir dir;
    const auto loop = dir.path() / "parser-loop.so";
    std::filesystem::create_symlink(loop, loop);
    auto error = refusal_of(loop);
    CHECK(error.code == Code::environment);
    CHECK_THAT(error.message, ContainsSubstring("cannot be read: Too many levels of symbolic links"));

    const auto secret = dir.copy(built("parser-plain"), "parser-plain.so");
    REQUIRE(::chmod(secret.c_str(), 0) == 0);
    const bool root = ::geteuid() == 0; // root reads everything, so look at it as nobody
    if (root) REQUIRE(::seteuid(65534) == 0);
    error = refusal_of(secret);
    if (root) REQUIRE(::seteuid(0) == 0);
    CHECK(error.code == Code::environment);
    CHECK_THAT(error.message, ContainsSubstring("cannot be read: Permission denied"));
    CHECK_THAT(error.fix, ContainsSubstring("permission"));
}
