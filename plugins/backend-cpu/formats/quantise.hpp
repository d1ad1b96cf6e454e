// Block quantisers of activations and cache rows: groups along a row, each with a power-of-two scale rounded up.
//
//   fp8: a = max(max|x|, 1e-4);       k = ceil(log2(a / 448)); q = E4M3(x / 2^k)
//   fp4: a = max(max|x|, 6 * 2^-126); k = ceil(log2(a / 6));   q = E2M1(x / 2^k)
//
// Groups start at element 0; the last one may be short. The divisions are float32 products with the rounded reciprocal.
// NaN elements do not count for the maximum and stay NaN (fp4 in code form saturates them); infinities saturate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dsv4::cpu {

inline constexpr std::size_t fp4_group = 32;

// Scale exponent k of one group.
int fp8_scale_exponent(std::span<const float> group);
int fp4_scale_exponent(std::span<const float> group);

// codes: one byte an element; exponents: one k a group.
void quant_fp8(std::span<const float> x, std::size_t group, std::span<std::uint8_t> codes, std::span<int> exponents);
void quant_fp4(std::span<const float> x, std::span<std::uint8_t> codes, std::span<int> exponents);

// Quantises and dequantises in place; for bf16 inputs the result is exact in bf16.
void round_to_fp8(std::span<float> x, std::size_t group);
void round_to_fp4(std::span<float> x);

} // namespace dsv4::cpu
