// How the kernels round: the precision of a Program and the width of the accumulators.
//
// Every activation is held as float32. In `serve` it holds what the publisher's rounding allows (bf16 values, FP8 and
// FP4 grids); in `score` nothing is rounded below float32. Accumulators:
//   f32  float32 sums, several lanes added in a fixed order; float32 functions.
//   f64  ("strict") sums in double rounded once to float32, functions in double rounded once, every other operation a
//   single
//        float32 operation in the order of tests/oracle/reference_serve.py, so that results are bit-equal to that
//        reference.
// `score` always uses f64. No result of a row depends on the other rows of a batch or on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "../formats/bf16.hpp"
#include "../formats/quantise.hpp"

namespace dsv4::cpu {

enum class Precision : std::uint8_t { score, serve };
enum class Accum : std::uint8_t { f32, f64 };

struct Numerics {
    Precision precision = Precision::serve;
    Accum accum = Accum::f32;

    bool serve() const { return precision == Precision::serve; }
    bool wide() const { return accum == Accum::f64 || precision == Precision::score; }
    // One rounding to bf16, where the precision asks for it.
    float round(float value) const { return serve() ? bf16_round(value) : value; }
    void round(std::span<float> values) const {
        if (!serve()) return;
        for (float& v : values) v = bf16_round(v);
    }
};

// Calls f.template operator()<Acc>() with Acc = float or double.
template <class F> decltype(auto) with_accumulator(const Numerics& numerics, F&& f) {
    if (numerics.wide()) return f.template operator()<double>();
    return f.template operator()<float>();
}

// Functions evaluated in Acc and rounded once to float32.
template <class Acc> float exp_as(float x) { return static_cast<float>(std::exp(static_cast<Acc>(x))); }
template <class Acc> float sigmoid_as(float x) {
    return static_cast<float>(Acc{1} / (Acc{1} + std::exp(-static_cast<Acc>(x))));
}
template <class Acc> float rsqrt_as(float x) { return static_cast<float>(Acc{1} / std::sqrt(static_cast<Acc>(x))); }
template <class Acc> float silu_as(float x) {
    return static_cast<float>(static_cast<Acc>(x) / (Acc{1} + std::exp(-static_cast<Acc>(x))));
}
// sqrt(log(1 + exp(x))), rounded to float32 after each of the two functions.
template <class Acc> float sqrt_softplus_as(float x) {
    const Acc v = x;
    const auto soft = static_cast<float>(v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v)));
    return static_cast<float>(std::sqrt(static_cast<Acc>(soft)));
}

} // namespace dsv4::cpu
