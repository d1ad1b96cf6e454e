// `experts`: the routed experts of each row and the shared expert that every row uses.
#pragma once

#include <cstdint>
#include <optional>

#include "linear.hpp"

namespace dsv4::cpu {

// w1 = gate, w3 = up [F, D]; w2 = down [D, F].
struct Expert {
    Matrix w1, w2, w3;
};

struct ExpertsOptions {
    float clamp = 10.0f; // gate from above only, up on both sides, before silu
    Quantiser quantiser = Quantiser::fp8_128;
};

// y = round(sum over the row's experts in ascending id of E(x, w), float32, then + shared(x)), with
// E(x, w) = w2 . round(w * silu(min(w1 x, c)) * clamp(w3 x, -c, c)); inputs of every product quantised as the options
// say. A row that names an expert twice adds it once, with the later weight. x [N, D]; ids [N * k]; weights [N, k]; y
// [N, D].
void experts(RowsIn x, std::span<const std::int32_t> ids, RowsIn weights, std::span<const Expert> routed,
             const std::optional<Expert>& shared, RowsOut y, const ExpertsOptions& options, const Numerics& numerics,
             const Parallel& parallel);

} // namespace dsv4::cpu
