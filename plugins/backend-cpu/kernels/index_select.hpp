// `index_select`: which compressed entries a query attends to.
#pragma once

#include <cstdint>
#include <vector>

#include "numerics.hpp"
#include "rows.hpp"

namespace dsv4::cpu {

// Head weights as the selection uses them: round(w * (d * heads)^-1/2), one float32 scalar. In place.
void scale_head_weights(std::span<float> weights, std::size_t index_dim, const Numerics& numerics);

// One query: iq [H * d] (rotated, in the index format), head_weights [H] (scaled), keys [n, d] of the n finished
// windows. score_w = sum_h relu(iq_h . key_w) * weight_h, rounded to bf16 after each of dot, product and sum in
// `serve`. Returns min(k, n) window numbers, best first; of equal scores the lower number first.
std::vector<std::int32_t> index_select(std::span<const float> iq, std::span<const float> head_weights, RowsIn keys,
                                       std::size_t k, const Numerics& numerics);

// The same order over any scores: the first min(k, n) indices by descending score, lower index first; NaN last.
std::vector<std::int32_t> top_k(std::span<const float> scores, std::size_t k);

} // namespace dsv4::cpu
