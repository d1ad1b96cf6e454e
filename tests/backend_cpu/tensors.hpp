// Reads safetensors files whole, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dsv4::test {

struct Tensor {
    std::string dtype; // "BF16", "F32", "I32", ...
    std::vector<std::size_t> shape;
    std::vector<std::uint8_t> bytes;

    std::size_t count() const;
    // Converted: BF16 and F32 to float; I32 and I64 to int32.
    std::vector<float> floats() const;
    std::vector<std::int32_t> ints() const;
};

using Tensors = std::map<std::string, Tensor>;

void read_safetensors(const std::string& path, Tensors& into);

} // namespace dsv4::test
