// Checkpoint references resolve inside a local hub cache, and never outside it.
#include "core/checkpoint/resolve.hpp"
#include "tests/checkpoint/support.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::test;
using checkpoint::Environment;
using checkpoint::Reference;
namespace fs = std::filesystem;

namespace {

const std::string commit = "7872f01b1d1fe23eabc4c98b48bffcef5a386062";
const std::string other = "7872aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const std::string id = "deepseek-ai/DeepSeek-V4-Flash-0731";

struct Cache {
    TempDir dir;
    fs::path root = dir.path() / "hub/models--deepseek-ai--DeepSeek-V4-Flash-0731";
    Environment environment{.hf_hub_cache = {}, .hf_home = dir.path().string(), .xdg_cache_home = {}, .home = {}};

    Cache() {
        fs::create_directories(root / "snapshots" / commit);
        write_file(root / "refs/main", commit + "\n");
        write_file(root / "refs/refs/pr/1", commit);
    }
    Result<fs::path> find(const std::string& revision) const {
        return checkpoint::resolve({.path = {}, .id = id, .revision = revision}, environment);
    }
    std::string error(const std::string& revision) const {
        const auto result = find(revision);
        return result.ok() ? "found" : result.error().message;
    }
};

} // namespace

TEST_CASE("a revision is a commit, a prefix of one, or a ref") {
    const Cache cache;
    const fs::path expected = cache.root / "snapshots" / commit;
    CHECK(cache.find(commit).value() == expected);
    CHECK(cache.find("7872f01b1d1f").value() == expected);
    CHECK(cache.find("7872").value() == expected);
    CHECK(cache.find("main").value() == expected);
    CHECK(cache.find("").value() == expected);
    CHECK(cache.find("refs/pr/1").value() == expected);
}

TEST_CASE("an explicit path wins and must exist") {
    const Cache cache;
    const std::string here = cache.dir.path().string();
    CHECK(checkpoint::resolve({.path = here, .id = id, .revision = "main"}, cache.environment).value() == here);
    const auto missing = checkpoint::resolve({.path = here + "/none", .id = id, .revision = "main"}, cache.environment);
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().message == "there is no checkpoint directory " + here + "/none");
}

TEST_CASE("what is not there is named with both places and the command that fetches it") {
    const Cache cache;
    const auto result = cache.find("60d8d707");
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code == Code::not_found);
    CHECK_THAT(result.error().message, ContainsSubstring((cache.root / "snapshots/60d8d707").string()));
    CHECK_THAT(result.error().message, ContainsSubstring((cache.root / "refs/60d8d707").string()));
    CHECK(result.error().fix == "run: hf download deepseek-ai/DeepSeek-V4-Flash-0731 --revision 60d8d707");
    // Three digits are too few for a prefix, and a ref to a snapshot that was removed finds nothing.
    CHECK_THAT(cache.error("787"), ContainsSubstring("is not on this machine"));
    write_file(cache.root / "refs/gone", other);
    CHECK_THAT(cache.error("gone"), ContainsSubstring("is not on this machine"));
}

TEST_CASE("an ambiguous prefix names its candidates") {
    const Cache cache;
    fs::create_directories(cache.root / "snapshots" / other);
    CHECK_THAT(cache.error("7872"), ContainsSubstring(other + " and " + commit + " both begin with it"));
    CHECK(cache.find("7872f").value() == cache.root / "snapshots" / commit);
}

TEST_CASE("ids and revisions cannot leave the cache") {
    const Cache cache;
    for (const char* revision : {"../x", "a/../../b", "/etc", "..", ".", "a//b", "a b", "main\n", "a\\b"}) {
        INFO(revision);
        CHECK_THAT(cache.error(revision), ContainsSubstring("is neither a commit nor a branch or tag name"));
    }
    for (const char* bad : {"noslash", "a/b/c", "../x", "a/..", "/b", "a/", "a/b c", "a/.b"}) {
        INFO(bad);
        const auto result = checkpoint::resolve({.path = {}, .id = bad, .revision = {}}, cache.environment);
        REQUIRE_FALSE(result.ok());
        CHECK_THAT(result.error().message, ContainsSubstring("is not of the form organisation/name"));
    }
    write_file(cache.root / "refs/evil", "../../../../etc");
    CHECK_THAT(cache.error("evil"), ContainsSubstring("does not name a commit"));
    const auto none = checkpoint::resolve({}, cache.environment);
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().message == "a checkpoint needs a path or an id");
}

TEST_CASE("the cache lies where the variables say, in their order") {
    const Environment all{.hf_hub_cache = "/a", .hf_home = "/b", .xdg_cache_home = "/c", .home = "/d"};
    CHECK(checkpoint::hub_cache(all) == "/a");
    CHECK(checkpoint::hub_cache({.hf_hub_cache = {}, .hf_home = "/b", .xdg_cache_home = "/c", .home = "/d"}) ==
          "/b/hub");
    CHECK(checkpoint::hub_cache({.hf_hub_cache = {}, .hf_home = {}, .xdg_cache_home = "/c", .home = "/d"}) ==
          "/c/huggingface/hub");
    CHECK(checkpoint::hub_cache({.hf_hub_cache = {}, .hf_home = {}, .xdg_cache_home = {}, .home = "/d"}) ==
          "/d/.cache/huggingface/hub");
    const auto nowhere = checkpoint::resolve({.path = {}, .id = id, .revision = {}}, Environment{});
    REQUIRE_FALSE(nowhere.ok());
    CHECK(nowhere.error().code == Code::environment);
}
