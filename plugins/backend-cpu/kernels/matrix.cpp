// Dequantisation of stored weight rows.
#include "matrix.hpp"

#include <algorithm>
#include <cstring>

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
// Sixteen codes at a time, in vectors that the compiler lowers to the target's registers. By reference: the calling
// convention of such types would depend on the target.
constexpr std::size_t lanes = 16;
using Bytes = std::uint8_t __attribute__((vector_size(lanes)));
using Words = std::uint32_t __attribute__((vector_size(lanes * 4)));
using Signed = std::int32_t __attribute__((vector_size(lanes * 4)));
using Floats = float __attribute__((vector_size(lanes * 4)));

DSV4_CPU_INLINE void load_codes(const std::uint8_t* in, Words& codes) {
    Bytes bytes;
    std::memcpy(&bytes, in, sizeof bytes);
    codes = __builtin_convertvector(bytes, Words);
}

// The arithmetic of e4m3_decode, lane by lane, times a scale.
DSV4_CPU_INLINE void decode_e4m3(const Words& codes, float scale, Floats& out) {
    const Words magnitude = codes & 0x7Fu;
    const Floats small = __builtin_convertvector(reinterpret_cast<Signed>(magnitude), Floats) * 0x1p-9f;
    Words bits = (magnitude << 20) + (120u << 23);
    bits = magnitude < 8u ? reinterpret_cast<Words>(small) : bits;
    bits = magnitude == 0x7Fu ? Words{} + 0x7FC00000u : bits;
    bits |= (codes & 0x80u) << 24;
    out = reinterpret_cast<Floats>(bits) * scale;
}

DSV4_CPU_INLINE void decode_e2m1(const Words& codes, float scale, Floats& out) {
    const Words magnitude = codes & 7u;
    const Floats small = __builtin_convertvector(reinterpret_cast<Signed>(magnitude), Floats) * 0.5f;
    Words bits = (magnitude << 22) + (126u << 23);
    bits = magnitude < 2u ? reinterpret_cast<Words>(small) : bits;
    bits |= (codes & 8u) << 28;
    out = reinterpret_cast<Floats>(bits) * scale;
}

// A whole row, block by block. Every value is the exact product of element and scale, in vectors or not.
DSV4_CPU_CLONES void from_e4m3(const std::uint8_t* in, const std::uint8_t* scales, float* out, std::size_t cols) {
    Words codes;
    Floats values;
    for (std::size_t at = 0; at < cols; at += fp8_block) {
        const float scale = e8m0_decode(scales[at / fp8_block]);
        const std::size_t end = std::min(at + fp8_block, cols);
        std::size_t i = at;
        for (; i + lanes <= end; i += lanes) {
            load_codes(in + i, codes);
            decode_e4m3(codes, scale, values);
            std::memcpy(out + i, &values, sizeof values);
        }
        for (; i < end; ++i) out[i] = e4m3_decode(in[i]) * scale;
    }
}

DSV4_CPU_CLONES void from_e2m1(const std::uint8_t* in, const std::uint8_t* scales, float* out, std::size_t cols) {
    static_assert(fp4_block == 2 * lanes);
    Words codes;
    Floats low, high;
    std::size_t at = 0;
    for (; at + fp4_block <= cols; at += fp4_block) { // a block is one vector of bytes
        const float scale = e8m0_decode(scales[at / fp4_block]);
        load_codes(in + at / 2, codes);
        decode_e2m1(codes & 15u, scale, low);
        decode_e2m1(codes >> 4, scale, high);
        const Floats first = __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        const Floats second =
            __builtin_shufflevector(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        std::memcpy(out + at, &first, sizeof first);
        std::memcpy(out + at + lanes, &second, sizeof second);
    }
    for (; at < cols; ++at) {
        const std::uint8_t byte = in[at / 2];
        const auto code = static_cast<std::uint8_t>(at % 2 == 0 ? byte & 15u : byte >> 4);
        out[at] = e2m1_decode(code) * e8m0_decode(scales[at / fp4_block]);
    }
}

} // namespace

std::size_t payload_bytes(WeightFormat format, std::size_t rows, std::size_t cols) {
    switch (format) {
    case WeightFormat::f32: return rows * cols * 4;
    case WeightFormat::bf16: return rows * cols * 2;
    case WeightFormat::fp8_block128: return rows * cols;
    case WeightFormat::fp4_block32: return rows * ((cols + 1) / 2);
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
    case WeightFormat::fp8_block128:
        from_e4m3(static_cast<const std::uint8_t*>(matrix.data) + row * cols,
                  matrix.scales + row / fp8_block * blocks(cols, fp8_block), scratch, cols);
        return scratch;
    case WeightFormat::fp4_block32:
        from_e2m1(static_cast<const std::uint8_t*>(matrix.data) + row * ((cols + 1) / 2),
                  matrix.scales + row * blocks(cols, fp4_block), scratch, cols);
        return scratch;
    }
    return scratch;
}

} // namespace dsv4::cpu
