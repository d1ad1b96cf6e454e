// `head`: logits of the rows that want them, and `tap`: the streams a draft model reads.
#pragma once

#include <cstdint>

#include "linear.hpp"

namespace dsv4::cpu {

// x [N, D]; wanted: row numbers; logits [M, V] float32, never rounded.
void head(RowsIn x, std::span<const std::size_t> wanted, const Matrix& weight, RowsOut logits, const Numerics& numerics,
          const Parallel& parallel);

// out [N, m * D]: for each of the m streams values [N, n * D] the mean over its n streams, rounded, side by side.
void tap(std::span<const RowsIn> streams, std::size_t n, RowsOut out, const Numerics& numerics);

} // namespace dsv4::cpu
