// Scans directories for plugin files and answers by name.
#include "core/plugin/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

namespace dsv4::plugin {
namespace {

std::vector<std::filesystem::path> files_in(const std::filesystem::path& directory) {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
        if (it->path().extension() == ".so") files.push_back(it->path());
    std::sort(files.begin(), files.end());
    return files;
}

bool is_there(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < a.size(); ++i) {
        auto diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const auto above = row[j + 1];
            row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] != b[j])});
            diagonal = above;
        }
    }
    return row.back();
}

} // namespace

std::vector<Found> Registry::scan() const {
    std::vector<Found> found;
    std::set<std::string> names;
    for (const auto& directory : search_.directories) {
        for (const auto& file : files_in(directory)) {
            auto candidate = examine(file);
            const bool first = names.insert(candidate.name).second;
            found.push_back({std::move(candidate), !first});
        }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.candidate.name < b.candidate.name; });
    return found;
}

Result<Candidate> Registry::find(std::string_view name) const {
    if (name.find('/') != name.npos) {
        auto candidate = examine(std::filesystem::path(std::string(name)));
        if (candidate.refusal && candidate.refusal->code == Code::not_found) return *candidate.refusal;
        return candidate;
    }
    for (const auto& directory : search_.directories) {
        const auto file = directory / (std::string(name) + ".so");
        if (is_there(file)) return examine(file);
    }
    std::string nearest;
    std::size_t best = 3;
    for (const auto& directory : search_.directories)
        for (const auto& file : files_in(directory))
            if (const auto d = edit_distance(name, file.stem().string()); d < best)
                best = d, nearest = file.stem().string();
    auto fix =
        nearest.empty()
            ? std::string("install the plugin into one of these directories, or name its directory in DSV4_PLUGIN_PATH")
            : fmt::format("did you mean {}?", nearest);
    std::vector<std::string> directories;
    for (const auto& d : search_.directories) directories.push_back(d.string());
    for (const auto& sentence : search_.ignored) fix += fmt::format("; {}", sentence);
    return Error{Code::not_found, fmt::format("there is no plugin {} in {}", name, fmt::join(directories, ", ")),
                 std::move(fix)};
}

Result<std::shared_ptr<Library>> Registry::load(std::string_view name, LoadOptions options) {
    return guard([&] {
        const auto candidate = find(name).value();
        if (candidate.refusal) throw Failure(*candidate.refusal);
        if (candidate.manifest->status == Maturity::wip && !options.allow_wip)
            throw Failure(Code::unsupported,
                          fmt::format("plugin {} is work in progress (status = \"wip\")", candidate.name),
                          "choose another plugin, or allow plugins in progress");
        auto& library = loaded_[candidate.path];
        if (!library) {
            auto loading = Library::load(candidate);
            if (!loading) {
                loaded_.erase(candidate.path);
                throw Failure(loading.error());
            }
            library = std::move(*loading);
        }
        return library;
    });
}

} // namespace dsv4::plugin
