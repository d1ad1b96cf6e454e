// The block quantisers; each walks a row group by group.
#include "quantise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "e2m1.hpp"
#include "e4m3.hpp"
#include "e8m0.hpp"

namespace dsv4::cpu {
namespace {

int scale_exponent(std::span<const float> group, float floor, float reciprocal_of_top) {
    float largest = floor;
    for (const float v : group) {
        const float a = std::fabs(v);
        largest = a > largest ? a : largest; // false for NaN
    }
    return exp_ceil(std::min(largest, std::numeric_limits<float>::max()) * reciprocal_of_top);
}

template <class Exponent, class Each>
void for_groups(std::size_t size, std::size_t group, Exponent&& exponent, Each&& each) {
    for (std::size_t begin = 0, g = 0; begin < size; begin += group, ++g) {
        const std::size_t end = std::min(begin + group, size);
        const int k = exponent(begin, end - begin);
        const float down = exp2_int(-k), up = exp2_int(k);
        for (std::size_t i = begin; i < end; ++i) each(g, i, k, down, up);
    }
}

} // namespace

int fp8_scale_exponent(std::span<const float> group) { return scale_exponent(group, 1e-4f, 1.0f / 448.0f); }
int fp4_scale_exponent(std::span<const float> group) { return scale_exponent(group, 6.0f * 0x1p-126f, 1.0f / 6.0f); }

void quant_fp8(std::span<const float> x, std::size_t group, std::span<std::uint8_t> codes, std::span<int> exponents) {
    for_groups(
        x.size(), group, [&](std::size_t at, std::size_t n) { return fp8_scale_exponent(x.subspan(at, n)); },
        [&](std::size_t g, std::size_t i, int k, float down, float) {
            exponents[g] = k;
            codes[i] = e4m3_encode(x[i] * down);
        });
}

void quant_fp4(std::span<const float> x, std::span<std::uint8_t> codes, std::span<int> exponents) {
    for_groups(
        x.size(), fp4_group, [&](std::size_t at, std::size_t n) { return fp4_scale_exponent(x.subspan(at, n)); },
        [&](std::size_t g, std::size_t i, int k, float down, float) {
            exponents[g] = k;
            codes[i] = e2m1_encode(x[i] * down);
        });
}

void round_to_fp8(std::span<float> x, std::size_t group) {
    for_groups(
        x.size(), group, [&](std::size_t at, std::size_t n) { return fp8_scale_exponent(x.subspan(at, n)); },
        [&](std::size_t, std::size_t i, int, float down, float up) {
            x[i] = e4m3_decode(e4m3_encode(x[i] * down)) * up;
        });
}

void round_to_fp4(std::span<float> x) {
    for_groups(
        x.size(), fp4_group, [&](std::size_t at, std::size_t n) { return fp4_scale_exponent(x.subspan(at, n)); },
        [&](std::size_t, std::size_t i, int, float down, float up) {
            if (!std::isnan(x[i])) x[i] = e2m1_decode(e2m1_encode(x[i] * down)) * up;
        });
}

} // namespace dsv4::cpu
