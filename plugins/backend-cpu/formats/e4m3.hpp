// FP8 E4M3 ("fn"): 1-4-3 bits, bias 7, largest value 448, no infinity, NaN = 0x7F and 0xFF, subnormal step 2^-9.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace dsv4::cpu {

inline float e4m3_decode(std::uint8_t code) {
    const std::uint32_t magnitude = code & 0x7Fu;
    const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-9f;
    const float normal = std::bit_cast<float>((magnitude << 20) + (120u << 23));
    float value = magnitude < 8u ? subnormal : normal;
    value = magnitude == 0x7Fu ? std::numeric_limits<float>::quiet_NaN() : value;
    return (code & 0x80u) != 0 ? -value : value;
}

// Nearest, ties to even, saturating to +-448; a NaN gives the NaN code of its sign.
inline std::uint8_t e4m3_encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 24) & 0x80u;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    const float a = std::bit_cast<float>(magnitude);
    std::uint32_t code;
    if (magnitude > 0x7F800000u) {
        code = 0x7Fu;
    } else if (a >= 448.0f) {
        code = 0x7Eu;
    } else if (a >= 0x1p-6f) {
        code = ((magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u)) >> 20) - (120u << 3);
    } else {
        // Adding 2^14 leaves 2^-9 as the last bit of the mantissa: the addition itself rounds to even.
        code = std::bit_cast<std::uint32_t>(a + 0x1p14f) - std::bit_cast<std::uint32_t>(0x1p14f);
    }
    return static_cast<std::uint8_t>(sign | code);
}

} // namespace dsv4::cpu
