// `norm`: the weighted RMS norm.
#pragma once

#include "numerics.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace dsv4::cpu {

// out = w * (x * rsqrt(mean(x^2) + eps)), one rounding at the end. `out` may be `x`.
void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out,
              const Numerics& numerics);
void norm(RowsIn x, std::span<const float> weight, float eps, RowsOut out, const Numerics& numerics,
          const Parallel& parallel);

} // namespace dsv4::cpu
