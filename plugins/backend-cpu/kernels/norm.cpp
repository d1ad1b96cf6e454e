// The weighted RMS norm.
#include "norm.hpp"

#include "dot.hpp"

namespace dsv4::cpu {

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out,
              const Numerics& numerics) {
    with_accumulator(numerics, [&]<class Acc>() {
        const float r = rsqrt_as<Acc>(mean_square<Acc>(x) + eps);
        for (std::size_t i = 0; i < x.size(); ++i) out[i] = numerics.round(weight[i] * (x[i] * r));
    });
}

void norm(RowsIn x, std::span<const float> weight, float eps, RowsOut out, const Numerics& numerics,
          const Parallel& parallel) {
    for_pieces(parallel, x.count, 16, [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) rms_norm(x[r], weight, eps, out[r], numerics);
    });
}

} // namespace dsv4::cpu
