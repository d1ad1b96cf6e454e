// Finds the directory of a checkpoint: an explicit path, or a hub id and revision in the local cache. Nothing is ever
// downloaded.
#pragma once

#include "dsv4/sdk/result.hpp"

#include <filesystem>
#include <string>

namespace dsv4::checkpoint {

struct Reference {
    std::string path;     // explicit directory; wins over the id where not empty
    std::string id;       // "organisation/name"
    std::string revision; // commit, unambiguous prefix of one (4 digits or more), or a ref such as "main" (the default)
};

// The variables that decide where the cache lies, as strings; empty where not set.
struct Environment {
    std::string hf_hub_cache;   // HF_HUB_CACHE
    std::string hf_home;        // HF_HOME
    std::string xdg_cache_home; // XDG_CACHE_HOME
    std::string home;           // HOME

    static Environment of_process();
};

// $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub, in this order; empty where
// no variable is set.
std::filesystem::path hub_cache(const Environment& environment);

// The directory, which exists. Errors: malformed ids and revisions (which cannot leave the cache), an ambiguous prefix
// with its candidates, and a checkpoint that is not there, with the places looked at and the command that fetches it.
Result<std::filesystem::path> resolve(const Reference& reference, const Environment& environment);

} // namespace dsv4::checkpoint
