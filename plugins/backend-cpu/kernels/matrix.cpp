// Dequantisation of stored weight rows.
#include "matrix.hpp"

#include <algorithm>

#include "../formats/bf16.hpp"
#include "../formats/e2m1.hpp"
#include "../formats/e4m3.hpp"
#include "../formats/e8m0.hpp"
#include "clones.hpp"

namespace dsv4::cpu {
namespace {

constexpr std::size_t fp8_block = 128;
constexpr std::size_t fp4_block = 32;
std::size_t blocks(std::size_t n, std::size_t block) { return (n + block - 1) / block; }

DSV4_CPU_CLONES void from_bf16(const std::uint16_t* in, float* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = bf16_decode(in[i]);
}
DSV4_CPU_CLONES void from_e4m3(const std::uint8_t* in, float scale, float* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = e4m3_decode(in[i]) * scale;
}
DSV4_CPU_CLONES void from_e2m1(const std::uint8_t* in, float scale, float* out, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
        out[2 * i] = e2m1_decode(in[i] & 15u) * scale;
        out[2 * i + 1] = e2m1_decode(static_cast<std::uint8_t>(in[i] >> 4)) * scale;
    }
}

} // namespace

std::size_t payload_bytes(WeightFormat format, std::size_t rows, std::size_t cols) {
    switch (format) {
    case WeightFormat::f32: return rows * cols * 4;
    case WeightFormat::bf16: return rows * cols * 2;
    case WeightFormat::fp8_block128: return rows * cols;
    case WeightFormat::fp4_block32: return rows * (cols / 2);
    }
    return 0;
}

std::size_t scale_bytes(WeightFormat format, std::size_t rows, std::size_t cols) {
    switch (format) {
    case WeightFormat::fp8_block128: return blocks(rows, fp8_block) * blocks(cols, fp8_block);
    case WeightFormat::fp4_block32: return rows * blocks(cols, fp4_block);
    default: return 0;
    }
}

const float* dequantise_row(const Matrix& matrix, std::size_t row, float* scratch) {
    const std::size_t cols = matrix.cols;
    switch (matrix.format) {
    case WeightFormat::f32: return static_cast<const float*>(matrix.data) + row * cols;
    case WeightFormat::bf16:
        from_bf16(static_cast<const std::uint16_t*>(matrix.data) + row * cols, scratch, cols);
        return scratch;
    case WeightFormat::fp8_block128: {
        const auto* codes = static_cast<const std::uint8_t*>(matrix.data) + row * cols;
        const auto* scales = matrix.scales + row / fp8_block * blocks(cols, fp8_block);
        for (std::size_t at = 0; at < cols; at += fp8_block)
            from_e4m3(codes + at, e8m0_decode(scales[at / fp8_block]), scratch + at, std::min(fp8_block, cols - at));
        return scratch;
    }
    case WeightFormat::fp4_block32: {
        const auto* codes = static_cast<const std::uint8_t*>(matrix.data) + row * (cols / 2);
        const auto* scales = matrix.scales + row * blocks(cols, fp4_block);
        for (std::size_t at = 0; at < cols; at += fp4_block)
            from_e2m1(codes + at / 2, e8m0_decode(scales[at / fp4_block]), scratch + at,
                      std::min(fp4_block, cols - at) / 2);
        return scratch;
    }
    }
    return scratch;
}

} // namespace dsv4::cpu
