// `linear` and `group_linear`: y = x W^T with weights in any stored format.
#pragma once

#include <cstdint>
#include <vector>

#include "matrix.hpp"
#include "numerics.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace dsv4::cpu {

enum class Quantiser : std::uint8_t { none, fp8_128 };

struct LinearOptions {
    Quantiser quantiser = Quantiser::none; // of the input rows, in `serve` only
    bool round_output = true;              // false keeps float32 (router, compressor, head)
};

// x [N, K], W [M, K] -> y [N, M]. Weights are dequantised exactly, four rows at a time.
void linear(RowsIn x, const Matrix& weight, RowsOut y, const LinearOptions& options, const Numerics& numerics,
            const Parallel& parallel);

// Block-diagonal: x [N, g * K], W [g * rho, K] -> y [N, g * rho]; group i maps its K inputs by rows i*rho ..
// (i+1)*rho-1.
void group_linear(RowsIn x, const Matrix& weight, std::size_t groups, RowsOut y, const LinearOptions& options,
                  const Numerics& numerics, const Parallel& parallel);

// x rounded as the quantiser says (a copy where it changes anything, else x itself); `storage` keeps the copy.
RowsIn quantise_rows(RowsIn x, Quantiser quantiser, const Numerics& numerics, std::vector<float>& storage);

} // namespace dsv4::cpu
