// Writes safetensors files.
#pragma once

#include "core/model/dtype.hpp"
#include "dsv4/sdk/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace dsv4::checkpoint {

// A tensor in the caller's memory, row-major and little-endian.
struct TensorView {
    std::string name;
    model::Dtype dtype = model::Dtype::f32;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes;
};

// Writes all tensors, wider element types first and by name within one width, so that every tensor is aligned to its
// elements. The file appears under `path` complete or not at all: it is written beside it, flushed, then renamed.
// Errors: repeated or empty names, sizes that do not match the shape, text that is not UTF-8, I/O.
Status write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata = {});

} // namespace dsv4::checkpoint
