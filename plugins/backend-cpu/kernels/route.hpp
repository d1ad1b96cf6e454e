// `route`: which experts a row uses, and with what weights.
#pragma once

#include <cstdint>

#include "linear.hpp"

namespace dsv4::cpu {

// One of `bias` (score-routed: the k largest of score + bias, best first, lower id first on a tie) and `table`
// (hash-routed: row `token` of [vocabulary, k] expert ids) is given.
struct Router {
    Matrix gate;                              // [experts, D]
    std::span<const float> bias = {};         // [experts], for the selection only
    std::span<const std::int32_t> table = {}; // [vocabulary, k]
    std::size_t picks = 6;                    // k
    float scaling = 1.5f;
};

// score = sqrt(softplus(gate . x)), float32; weight = score / (sum of the picked scores) * scaling.
// x [N, D], token ids [N] (read only for a table) -> ids [N * k], weights [N, k].
void route(RowsIn x, std::span<const std::int32_t> tokens, const Router& router, std::span<std::int32_t> ids,
           RowsOut weights, const Numerics& numerics, const Parallel& parallel);

} // namespace dsv4::cpu
