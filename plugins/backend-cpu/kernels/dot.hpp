// The inner loops: dot products, sums and scaled additions with accumulators of a fixed shape.
//
// Sixteen lanes, element i in lane i mod 16, lanes added as a fixed tree: the result depends on the operands alone,
// never on the instruction set (built for AVX-512, AVX2 and the base set; the machine picks) nor on how many rows go
// together.
#pragma once

#include <cstddef>
#include <span>

namespace dsv4::cpu {

float dot_f32(const float* x, const float* w, std::size_t n);
float dot_f64(const float* x, const float* w, std::size_t n); // double inside, one rounding

// Four dot products of one x: out[r] = x . w[r]; each bit-equal to a single one.
void dot4_f32(const float* x, const float* const w[4], std::size_t n, float out[4]);
void dot4_f64(const float* x, const float* const w[4], std::size_t n, float out[4]);

// acc += a * x
void add_scaled_f32(float* acc, float a, const float* x, std::size_t n);
void add_scaled_f64(double* acc, float a, const float* x, std::size_t n);

// sum of squares, the squares in float32.
float sum_squares_f32(const float* x, std::size_t n);
float sum_squares_f64(const float* x, std::size_t n);

template <class Acc> float dot(const float* x, const float* w, std::size_t n) {
    if constexpr (sizeof(Acc) == 8) return dot_f64(x, w, n);
    return dot_f32(x, w, n);
}
template <class Acc> void dot4(const float* x, const float* const w[4], std::size_t n, float out[4]) {
    if constexpr (sizeof(Acc) == 8)
        dot4_f64(x, w, n, out);
    else
        dot4_f32(x, w, n, out);
}
inline void add_scaled(double* acc, float a, const float* x, std::size_t n) { add_scaled_f64(acc, a, x, n); }
inline void add_scaled(float* acc, float a, const float* x, std::size_t n) { add_scaled_f32(acc, a, x, n); }
// mean(x^2): the sum rounded to float32, then a float32 division.
template <class Acc> float mean_square(std::span<const float> x) {
    const float sum = sizeof(Acc) == 8 ? sum_squares_f64(x.data(), x.size()) : sum_squares_f32(x.data(), x.size());
    return sum / static_cast<float>(x.size());
}

} // namespace dsv4::cpu
