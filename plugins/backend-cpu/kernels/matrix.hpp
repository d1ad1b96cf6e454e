// A weight matrix in its stored format, dequantised a row at a time when it is used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dsv4::cpu {

enum class WeightFormat : std::uint8_t {
    f32,
    bf16,
    fp8_block128, // E4M3 codes, one E8M0 scale a 128 x 128 block of the whole stored matrix
    fp4_block32,  // two E2M1 codes a byte (even element low), one E8M0 scale per 32 elements of a row
};

// [rows, cols], row-major, no padding. Non-owning; scales are null for the unscaled formats.
struct Matrix {
    WeightFormat format = WeightFormat::f32;
    std::size_t rows = 0;
    std::size_t cols = 0;
    const void* data = nullptr;
    const std::uint8_t* scales = nullptr;
};

// Bytes of the payload and of the scales of such a matrix; a row of an odd number of FP4 elements ends in half a byte.
std::size_t payload_bytes(WeightFormat format, std::size_t rows, std::size_t cols);
std::size_t scale_bytes(WeightFormat format, std::size_t rows, std::size_t cols);

// Row `row` as exact float32 values. Returns a pointer into the matrix where it is stored as f32, else fills and
// returns `scratch` (cols elements).
const float* dequantise_row(const Matrix& matrix, std::size_t row, float* scratch);

} // namespace dsv4::cpu
