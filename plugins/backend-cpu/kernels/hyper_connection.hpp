// `hc_pre`, `hc_post`, `hc_head`: the hyper-connections that mix the n residual streams around every sublayer.
#pragma once

#include "numerics.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace dsv4::cpu {

// Weights of one site, float32. fn [m, n * D], base [m]; m = n (2 + n), rows: n pre, n post, then comb[j][k]; scale
// [3]. The head's site has m = n and one scale.
struct HyperConnection {
    std::span<const float> fn;
    std::span<const float> base;
    std::span<const float> scale;
    std::size_t streams = 4;          // n
    std::size_t sinkhorn_rounds = 20; // row and column normalisations, the last one of columns
    float norm_eps = 1e-6f;           // inside the mean-square root
    float hc_eps = 1e-6f;             // added to `pre` and inside the Sinkhorn divisions
};

// C [n, n] in place: softmax over each row plus eps, columns divided by their sums, then rounds-1 times rows and
// columns.
void sinkhorn(std::span<float> c, std::size_t n, std::size_t rounds, float eps, const Numerics& numerics);

// r = rsqrt(mean(R^2) + eps) over all n * D; m = (fn . R) r; pre = sigmoid(m s0 + b) + eps; post = 2 sigmoid(m s1 + b);
// comb = sinkhorn(m s2 + b); x = norm(round(sum_j pre_j R_j)) with the RMS norm that always follows.
// streams [N, n * D] -> x [N, D], post [N, n], comb [N, n * n].
void hc_pre(RowsIn streams, const HyperConnection& site, std::span<const float> norm_weight, RowsOut x, RowsOut post,
            RowsOut comb, const Numerics& numerics, const Parallel& parallel);

// out_k = round(post_k y + sum_j comb[j][k] R_j). `out` may be `streams`.
void hc_post(RowsIn y, RowsIn streams, RowsIn post, RowsIn comb, RowsOut out, const Numerics& numerics,
             const Parallel& parallel);

// x = round(sum_j pre_j R_j), pre_j = sigmoid(m_j scale + base_j) + eps. No norm.
void hc_head(RowsIn streams, const HyperConnection& site, RowsOut x, const Numerics& numerics,
             const Parallel& parallel);

} // namespace dsv4::cpu
