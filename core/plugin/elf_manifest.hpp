// What a plugin file says about itself without being loaded: its embedded manifest and its exported symbols.
//
// Only the ELF headers and three sections are read, each bounded and checked against the file's size, so a hostile file
// yields an error and no code of it runs.
#pragma once

#include "dsv4/sdk/result.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace dsv4::plugin {

inline constexpr std::size_t max_manifest_bytes = std::size_t{1} << 20;

struct ElfFacts {
    std::string manifest;             // bytes of the section .dsv4.manifest
    std::vector<std::string> exports; // defined dynamic symbols that others could bind to, sorted
};

// Errors: not_found (no such file), environment (cannot be read), invalid (no shared library for this machine, or no
// manifest section), corrupt (contradicts the ELF format), exhausted (a section above its limit). Any thread.
Result<ElfFacts> read_elf(const std::filesystem::path& path);

} // namespace dsv4::plugin
