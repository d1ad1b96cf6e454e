// What the checkpoint tests share: temporary folders, hand-made safetensors files, and the published shapes.
#pragma once

#include "core/model/geometry.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::test {

// A folder that is removed with its content.
class TempDir {
  public:
    TempDir();
    ~TempDir();
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

std::filesystem::path source_dir();
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view content);
void replace_in_file(const std::filesystem::path& path, const std::string& from, const std::string& to);

// Length, header and payload as they stand, right or wrong.
std::string container(std::string_view header, std::string_view payload);
std::string sha256_hex(std::span<const std::byte> bytes);

// The published config.json of V4-Flash-0731, field by field, and the preview's: no dspark_* fields, one draft layer.
std::string flash_0731_config();
std::string preview_config();
model::Geometry geometry_of(const std::string& config);

} // namespace dsv4::test
