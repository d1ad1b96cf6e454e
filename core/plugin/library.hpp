// A loaded plugin library: the only place that maps plugin code into the process.
#pragma once

#include "core/plugin/candidate.hpp"

#include <memory>

namespace dsv4::plugin {

// Any thread. The library is unmapped with its last owner, unless an instance was ever made: then it stays for the life
// of the process, because its threads, statics and unwinding may outlive the instance.
class Library {
  public:
    // Examines the file, loads it and holds the descriptor against the manifest. Runs the file's initialisers and its
    // entry function. Errors: those of examine, and environment (the loader's own words), invalid, unsupported.
    static Result<std::shared_ptr<Library>> load(const std::filesystem::path& file);
    static Result<std::shared_ptr<Library>> load(const Candidate& candidate);
    ~Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    const Manifest& manifest() const noexcept { return manifest_; }
    const dsv4_plugin& descriptor() const noexcept { return *descriptor_; }
    // Called when create succeeded.
    void keep_loaded() noexcept;

  private:
    struct Handle;
    Library(const Candidate& candidate);
    void check_descriptor(const Candidate& candidate) const;

    std::filesystem::path path_;
    Manifest manifest_;
    std::unique_ptr<Handle> handle_;
    const dsv4_plugin* descriptor_ = nullptr;
};

} // namespace dsv4::plugin
