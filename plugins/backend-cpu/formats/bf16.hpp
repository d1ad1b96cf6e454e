// bfloat16: the upper half of a float32, rounded to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace dsv4::cpu {

// The nearest bf16 as bits. A NaN stays a (quiet) NaN of the same sign; overflow gives infinity.
inline std::uint16_t bf16_encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline float bf16_decode(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// The nearest bf16, kept in a float32.
inline float bf16_round(float value) { return bf16_decode(bf16_encode(value)); }

} // namespace dsv4::cpu
