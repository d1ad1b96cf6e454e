// E8M0 block scales: a byte b stands for 2^(b-127), 255 for NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace dsv4::cpu {

inline float e8m0_decode(std::uint8_t code) {
    if (code == 255) return std::numeric_limits<float>::quiet_NaN();
    return std::bit_cast<float>(code == 0 ? 0x00400000u
                                          : static_cast<std::uint32_t>(code) << 23); // 2^-127 is subnormal
}

// ceil(log2(value)) for a normal positive value, from its bits.
inline int exp_ceil(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<int>((bits >> 23) & 255u) - 127 + ((bits & 0x7FFFFFu) != 0 ? 1 : 0);
}

// 2^exponent for exponents of normal float32 numbers (-126..127).
inline float exp2_int(int exponent) { return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23); }

} // namespace dsv4::cpu
