// Looks a checkpoint up in the hub's cache layout: models--org--name/{refs,snapshots}.
#include "core/checkpoint/resolve.hpp"

#include "core/checkpoint/file.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <vector>

namespace dsv4::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_ref_bytes = 4096;
constexpr std::size_t least_prefix_digits = 4;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool is_existing_directory(const fs::path& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
}

// Letters, digits, '-', '_' and '.', not beginning with a dot and without "..".
bool is_plain_part(std::string_view part) {
    if (part.empty() || part.size() > 128 || part.front() == '.' || part.find("..") != std::string_view::npos)
        return false;
    return std::all_of(part.begin(), part.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
    });
}

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0;;) {
        const std::size_t end = text.find('/', begin);
        parts.push_back(text.substr(begin, end - begin));
        if (end == std::string_view::npos) return parts;
        begin = end + 1;
    }
}

void check(const Reference& reference, const std::string& revision) {
    const auto id = split(reference.id);
    if (id.size() != 2 || !is_plain_part(id[0]) || !is_plain_part(id[1]))
        throw Failure(Code::invalid, "the checkpoint id \"" + reference.id + "\" is not of the form organisation/name",
                      "write it as on the hub, as in deepseek-ai/DeepSeek-V4-Flash-0731");
    const auto parts = split(revision);
    if (!std::all_of(parts.begin(), parts.end(), is_plain_part))
        throw Failure(Code::invalid, "the revision \"" + revision + "\" of checkpoint " + reference.id +
                                         " is neither a commit nor a branch or tag name");
}

// A lower-case hexadecimal string, as commits are.
bool is_hex(std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Snapshots whose commit begins with `prefix`, sorted.
std::vector<fs::path> snapshots_with(const fs::path& snapshots, const std::string& prefix) {
    std::vector<fs::path> found;
    if (prefix.size() < least_prefix_digits || !is_hex(prefix)) return found;
    std::error_code ignored;
    for (fs::directory_iterator it(snapshots, ignored), end; it != end; it.increment(ignored))
        if (it->path().filename().string().starts_with(prefix) && is_existing_directory(it->path()))
            found.push_back(it->path());
    std::sort(found.begin(), found.end());
    return found;
}

// The commit that refs/<revision> names, or an empty string.
std::string commit_of_ref(const fs::path& ref) {
    std::error_code ignored;
    if (!fs::is_regular_file(ref, ignored)) return {};
    std::string commit = read_text(ref, max_ref_bytes);
    while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r' || commit.back() == ' '))
        commit.pop_back();
    if (!is_plain_part(commit))
        throw Failure(Code::corrupt, ref.string() + " does not name a commit", "fetch the checkpoint again");
    return commit;
}

fs::path find(const Reference& reference, const Environment& environment) {
    if (!reference.path.empty()) {
        if (is_existing_directory(reference.path)) return reference.path;
        throw Failure(Code::not_found, "there is no checkpoint directory " + reference.path,
                      "correct the path, or leave it out to look checkpoint ids up in the local hub cache");
    }
    if (reference.id.empty())
        throw Failure(Code::invalid, "a checkpoint needs a path or an id", "state checkpoint.path or checkpoint.id");
    const std::string revision = reference.revision.empty() ? "main" : reference.revision;
    check(reference, revision);
    const fs::path cache = hub_cache(environment);
    if (cache.empty())
        throw Failure(Code::environment,
                      "cannot look for checkpoint " + reference.id + ": none of HF_HUB_CACHE, HF_HOME and HOME is set",
                      "set HF_HOME, or name the directory by its path");
    const std::size_t slash = reference.id.find('/');
    const fs::path root = cache / ("models--" + reference.id.substr(0, slash) + "--" + reference.id.substr(slash + 1));
    const fs::path snapshot = root / "snapshots" / revision, ref = root / "refs" / revision;
    if (is_existing_directory(snapshot)) return snapshot;
    if (const std::string commit = commit_of_ref(ref);
        !commit.empty() && is_existing_directory(root / "snapshots" / commit))
        return root / "snapshots" / commit;
    const auto candidates = snapshots_with(root / "snapshots", revision);
    if (candidates.size() == 1) return candidates.front();
    if (candidates.size() > 1)
        throw Failure(Code::invalid,
                      "the revision \"" + revision + "\" of checkpoint " + reference.id +
                          " is ambiguous: " + candidates[0].filename().string() + " and " +
                          candidates[1].filename().string() + " both begin with it",
                      "write more digits of the commit");
    throw Failure(Code::not_found,
                  "checkpoint " + reference.id + " at revision " + revision + " is not on this machine; looked at " +
                      snapshot.string() + " and " + ref.string(),
                  "run: hf download " + reference.id + " --revision " + revision);
}

} // namespace

Environment Environment::of_process() {
    return {variable("HF_HUB_CACHE"), variable("HF_HOME"), variable("XDG_CACHE_HOME"), variable("HOME")};
}

fs::path hub_cache(const Environment& e) {
    if (!e.hf_hub_cache.empty()) return e.hf_hub_cache;
    if (!e.hf_home.empty()) return fs::path(e.hf_home) / "hub";
    if (!e.xdg_cache_home.empty()) return fs::path(e.xdg_cache_home) / "huggingface" / "hub";
    if (!e.home.empty()) return fs::path(e.home) / ".cache" / "huggingface" / "hub";
    return {};
}

Result<fs::path> resolve(const Reference& reference, const Environment& environment) {
    return guard([&] { return find(reference, environment); });
}

} // namespace dsv4::checkpoint
