// Builds the search path from the program's place, the environment and the pipeline.
#include "core/plugin/search_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace dsv4::plugin {
namespace {

void add(SearchPath& search, const std::filesystem::path& directory) {
    auto normal = directory.lexically_normal();
    if (!normal.has_filename()) normal = normal.parent_path();
    if (std::find(search.directories.begin(), search.directories.end(), normal) == search.directories.end())
        search.directories.push_back(std::move(normal));
}

void add_checked(SearchPath& search, std::string_view entry, std::string_view source) {
    const std::filesystem::path directory{std::string(entry)};
    if (directory.is_absolute())
        add(search, directory);
    else
        search.ignored.push_back(
            fmt::format("{} has the {} entry \"{}\"; plugins are searched in absolute directories only", source,
                        entry.empty() ? "empty" : "relative", entry));
}

} // namespace

SearchPath standard_search_path(std::span<const std::string> extra) {
    SearchPath search;
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error) {
        const auto prefix = program.parent_path() / "..";
        add(search, prefix / DSV4_PLUGIN_RELATIVE_DIR);
        add(search, prefix / "lib/dsv4/plugins");
    }
    add(search, DSV4_PLUGIN_INSTALLED_DIR);
    if (const char* variable = std::getenv("DSV4_PLUGIN_PATH"); variable && *variable) {
        std::string_view rest = variable;
        while (true) {
            const auto colon = rest.find(':');
            add_checked(search, rest.substr(0, colon), "DSV4_PLUGIN_PATH");
            if (colon == rest.npos) break;
            rest.remove_prefix(colon + 1);
        }
    }
    for (const auto& entry : extra) add_checked(search, entry, "[plugins] paths");
    return search;
}

} // namespace dsv4::plugin
