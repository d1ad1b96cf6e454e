// One plugin file judged without running it.
#pragma once

#include "core/plugin/manifest.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace dsv4::plugin {

struct Candidate {
    std::string name;                 // the file's base name
    std::filesystem::path path;       // absolute
    std::optional<Manifest> manifest; // absent only when refused
    std::string manifest_sha256;      // lower-case hex; empty when there is no manifest section
    std::optional<Error> refusal;     // why it cannot be loaded
};

// Never fails: what is wrong becomes the refusal. Refused are files that others could replace (world-writable, or in a
// world-writable directory without the sticky bit), what is no ELF library of this machine, a missing or wrong
// manifest, a name other than the file's, exports other than the entry symbol, another ABI major and a newer minor. Any
// thread.
Candidate examine(const std::filesystem::path& file);

// The refusal for an ABI that this program cannot load; nothing for one that it can.
std::optional<Error> refuse_abi(std::string_view name, std::uint32_t major, std::uint32_t minor);

} // namespace dsv4::plugin
