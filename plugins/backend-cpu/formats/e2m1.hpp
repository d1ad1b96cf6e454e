// FP4 E2M1: codes 0..7 = {0, 0.5, 1, 1.5, 2, 3, 4, 6}, 8..15 the negatives. Two a byte, the even element in the low
// nibble.
#pragma once

#include <bit>
#include <cstdint>

namespace dsv4::cpu {

inline float e2m1_decode(std::uint8_t code) {
    const std::uint32_t magnitude = code & 7u;
    const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0.5f;
    const float normal = std::bit_cast<float>((magnitude << 22) + (126u << 23));
    const float value = magnitude < 2u ? subnormal : normal;
    return (code & 8u) != 0 ? -value : value;
}

// Nearest, ties to the even code, saturating to +-6. The format has no NaN: a NaN gives 6 with its sign.
inline std::uint8_t e2m1_encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 28) & 8u;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    const float a = std::bit_cast<float>(magnitude);
    std::uint32_t code;
    if (!(a < 6.0f)) {
        code = 7u;
    } else if (a >= 1.0f) {
        code = ((magnitude + 0x1FFFFFu + ((magnitude >> 22) & 1u)) >> 22) - (126u << 1);
    } else {
        code = std::bit_cast<std::uint32_t>(a + 0x1p22f) - std::bit_cast<std::uint32_t>(0x1p22f); // steps of 0.5
    }
    return static_cast<std::uint8_t>(sign | code);
}

} // namespace dsv4::cpu
