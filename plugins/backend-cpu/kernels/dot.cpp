// The inner loops, written once over an accumulator vector of sixteen lanes.
#include "dot.hpp"

#include <cstring>

#include "clones.hpp"

namespace dsv4::cpu {
namespace {

constexpr std::size_t lanes = 16;

// GCC and Clang vector types: lowered to whatever registers the target has.
using Floats = float __attribute__((vector_size(lanes * sizeof(float))));
using Doubles = double __attribute__((vector_size(lanes * sizeof(double))));
template <class Acc> struct VectorOf { using Type = Floats; };
template <> struct VectorOf<double> { using Type = Doubles; };

// Vectors go by reference: their calling convention would depend on the target.
DSV4_CPU_INLINE void load(const float* p, Floats& out) { std::memcpy(&out, p, sizeof out); }
DSV4_CPU_INLINE void widen(const Floats& in, Floats& out) { out = in; }
DSV4_CPU_INLINE void widen(const Floats& in, Doubles& out) { out = __builtin_convertvector(in, Doubles); }

// The last n % 16 elements, zeros behind them: adding +0 products leaves a lane as it is.
DSV4_CPU_INLINE void load_tail(const float* p, std::size_t n, Floats& out) {
    out = Floats{};
    std::memcpy(&out, p, n * sizeof(float));
}

template <class Vector> DSV4_CPU_INLINE float add_lanes(const Vector& v) {
    auto a = v[0];
    decltype(a) part[lanes];
    std::memcpy(part, &v, sizeof part);
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) part[i] += part[i + half];
    return static_cast<float>(part[0]);
}

template <class Acc, std::size_t count>
DSV4_CPU_INLINE void dots(const float* x, const float* const* w, std::size_t n, float* out) {
    using Vector = typename VectorOf<Acc>::Type;
    Vector acc[count] = {};
    Floats narrow;
    Vector xs, ws;
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        load(x + i, narrow);
        widen(narrow, xs);
        for (std::size_t r = 0; r < count; ++r) {
            load(w[r] + i, narrow);
            widen(narrow, ws);
            acc[r] += xs * ws;
        }
    }
    if (i < n) {
        load_tail(x + i, n - i, narrow);
        widen(narrow, xs);
        for (std::size_t r = 0; r < count; ++r) {
            load_tail(w[r] + i, n - i, narrow);
            widen(narrow, ws);
            acc[r] += xs * ws;
        }
    }
    for (std::size_t r = 0; r < count; ++r) out[r] = add_lanes(acc[r]);
}

template <class Acc> DSV4_CPU_INLINE float squares(const float* x, std::size_t n) {
    using Vector = typename VectorOf<Acc>::Type;
    Vector acc = {};
    Floats narrow;
    Vector wide;
    for (std::size_t i = 0; i < n; i += lanes) {
        if (i + lanes <= n)
            load(x + i, narrow);
        else
            load_tail(x + i, n - i, narrow);
        narrow *= narrow;
        widen(narrow, wide);
        acc += wide;
    }
    return add_lanes(acc);
}

} // namespace

DSV4_CPU_CLONES float dot_f32(const float* x, const float* w, std::size_t n) {
    float out;
    dots<float, 1>(x, &w, n, &out);
    return out;
}
DSV4_CPU_CLONES float dot_f64(const float* x, const float* w, std::size_t n) {
    float out;
    dots<double, 1>(x, &w, n, &out);
    return out;
}
DSV4_CPU_CLONES void dot4_f32(const float* x, const float* const w[4], std::size_t n, float out[4]) {
    dots<float, 4>(x, w, n, out);
}
DSV4_CPU_CLONES void dot4_f64(const float* x, const float* const w[4], std::size_t n, float out[4]) {
    dots<double, 4>(x, w, n, out);
}
DSV4_CPU_CLONES void add_scaled_f32(float* acc, float a, const float* x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) acc[i] += a * x[i];
}
DSV4_CPU_CLONES void add_scaled_f64(double* acc, float a, const float* x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) acc[i] += static_cast<double>(a) * static_cast<double>(x[i]);
}
DSV4_CPU_CLONES float sum_squares_f32(const float* x, std::size_t n) { return squares<float>(x, n); }
DSV4_CPU_CLONES float sum_squares_f64(const float* x, std::size_t n) { return squares<double>(x, n); }

} // namespace dsv4::cpu
