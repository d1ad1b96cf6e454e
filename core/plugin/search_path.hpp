// Where plugins are looked for, in order.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace dsv4::plugin {

struct SearchPath {
    std::vector<std::filesystem::path> directories; // absolute, without repeats, strongest first
    std::vector<std::string> ignored;               // a sentence for each entry that was left out, and why
};

// 1. the built-in directories: <directory of the program>/../<library directory>/dsv4/plugins and where the build was
//    installed; 2. DSV4_PLUGIN_PATH, colon separated; 3. `extra`, the pipeline's [plugins] paths. The working directory
//    is never searched, so empty and relative entries are left out.
SearchPath standard_search_path(std::span<const std::string> extra = {});

} // namespace dsv4::plugin
