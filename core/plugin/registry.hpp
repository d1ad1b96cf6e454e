// Finds plugins on the search path and loads them by name.
#pragma once

#include "core/plugin/library.hpp"
#include "core/plugin/search_path.hpp"

#include <map>
#include <memory>
#include <string_view>
#include <vector>

namespace dsv4::plugin {

struct Found {
    Candidate candidate;
    bool shadowed = false; // a directory searched earlier has a file of the same name
};

struct LoadOptions {
    bool allow_wip = false; // plugins whose manifest says status = "wip" load only with this
};

// Control thread.
class Registry {
  public:
    explicit Registry(SearchPath search = standard_search_path()) : search_(std::move(search)) {}
    const SearchPath& search_path() const noexcept { return search_; }

    // Every file *.so in the directories, judged without running it; ordered by name, then by directory. Directories
    // that do not exist are skipped.
    std::vector<Found> scan() const;
    // The file that `load` would take, judged. Errors: not_found, naming the directories and close names. An argument
    // with a slash is a path to a file.
    Result<Candidate> find(std::string_view name) const;
    // The library, loaded once a registry. Errors: those of find and Library::load, and unsupported for wip.
    Result<std::shared_ptr<Library>> load(std::string_view name, LoadOptions options = {});

  private:
    SearchPath search_;
    std::map<std::filesystem::path, std::shared_ptr<Library>> loaded_;
};

} // namespace dsv4::plugin
