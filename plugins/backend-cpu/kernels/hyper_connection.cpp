// Hyper-connections, a row at a time.
#include "hyper_connection.hpp"

#include <array>
#include <vector>

#include "dot.hpp"
#include "norm.hpp"

namespace dsv4::cpu {
namespace {

constexpr std::size_t row_grain = 4;

// m = (fn . row) * rsqrt(mean(row^2) + eps); the scale comes after the dot product.
template <class Acc> void mix(std::span<const float> row, const HyperConnection& site, std::span<float> m) {
    const float r = rsqrt_as<Acc>(mean_square<Acc>(row) + site.norm_eps);
    const std::size_t width = row.size();
    std::size_t i = 0;
    for (; i + 4 <= m.size(); i += 4) {
        const float* rows[4] = {&site.fn[i * width], &site.fn[(i + 1) * width], &site.fn[(i + 2) * width],
                                &site.fn[(i + 3) * width]};
        dot4<Acc>(row.data(), rows, width, &m[i]);
    }
    for (; i < m.size(); ++i) m[i] = dot<Acc>(row.data(), &site.fn[i * width], width);
    for (float& v : m) v *= r;
}

// out = round(sum_j weight_j * row_j): products in float32, one rounding of the sum.
template <class Acc>
void collapse(std::span<const float> row, std::span<const float> weight, std::span<float> out,
              const Numerics& numerics) {
    const std::size_t d = out.size();
    for (std::size_t c = 0; c < d; ++c) {
        Acc sum = 0;
        for (std::size_t j = 0; j < weight.size(); ++j) sum += static_cast<Acc>(weight[j] * row[j * d + c]);
        out[c] = numerics.round(static_cast<float>(sum));
    }
}

template <class Acc> void sinkhorn_as(std::span<float> c, std::size_t n, std::size_t rounds, float eps) {
    const auto row_sum = [&](std::size_t j) {
        Acc sum = 0;
        for (std::size_t k = 0; k < n; ++k) sum += static_cast<Acc>(c[j * n + k]);
        return static_cast<float>(sum);
    };
    const auto normalise_columns = [&] {
        for (std::size_t k = 0; k < n; ++k) {
            Acc sum = 0;
            for (std::size_t j = 0; j < n; ++j) sum += static_cast<Acc>(c[j * n + k]);
            const float by = static_cast<float>(sum) + eps;
            for (std::size_t j = 0; j < n; ++j) c[j * n + k] /= by;
        }
    };
    for (std::size_t j = 0; j < n; ++j) {
        const auto row = c.subspan(j * n, n);
        const float largest = *std::max_element(row.begin(), row.end());
        for (float& v : row) v = exp_as<Acc>(v - largest);
        const float sum = row_sum(j);
        for (float& v : row) v = v / sum + eps;
    }
    normalise_columns();
    for (std::size_t i = 1; i < rounds; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            const float by = row_sum(j) + eps;
            for (std::size_t k = 0; k < n; ++k) c[j * n + k] /= by;
        }
        normalise_columns();
    }
}

} // namespace

void sinkhorn(std::span<float> c, std::size_t n, std::size_t rounds, float eps, const Numerics& numerics) {
    with_accumulator(numerics, [&]<class Acc>() { sinkhorn_as<Acc>(c, n, rounds, eps); });
}

void hc_pre(RowsIn streams, const HyperConnection& site, std::span<const float> norm_weight, RowsOut x, RowsOut post,
            RowsOut comb, const Numerics& numerics, const Parallel& parallel) {
    const std::size_t n = site.streams;
    for_pieces(parallel, streams.count, row_grain, [&](std::size_t begin, std::size_t end) {
        with_accumulator(numerics, [&]<class Acc>() {
            std::vector<float> m(n * (2 + n)), pre(n);
            const auto scaled = [&](std::size_t i, std::size_t s) { return m[i] * site.scale[s] + site.base[i]; };
            for (std::size_t r = begin; r < end; ++r) {
                mix<Acc>(streams[r], site, m);
                for (std::size_t j = 0; j < n; ++j) {
                    pre[j] = sigmoid_as<Acc>(scaled(j, 0)) + site.hc_eps;
                    post[r][j] = 2.0f * sigmoid_as<Acc>(scaled(n + j, 1));
                }
                for (std::size_t i = 0; i < n * n; ++i) comb[r][i] = scaled(2 * n + i, 2);
                sinkhorn_as<Acc>(comb[r], n, site.sinkhorn_rounds, site.hc_eps);
                collapse<Acc>(streams[r], pre, x[r], numerics);
                rms_norm(x[r], norm_weight, site.norm_eps, x[r], numerics);
            }
        });
    });
}

void hc_post(RowsIn y, RowsIn streams, RowsIn post, RowsIn comb, RowsOut out, const Numerics& numerics,
             const Parallel& parallel) {
    const std::size_t n = post.width, d = y.width;
    for_pieces(parallel, y.count, row_grain, [&](std::size_t begin, std::size_t end) {
        with_accumulator(numerics, [&]<class Acc>() {
            std::vector<float> old(n); // the n streams of one channel, so that `out` may be `streams`
            for (std::size_t r = begin; r < end; ++r) {
                const auto from = streams[r];
                const auto to = out[r];
                for (std::size_t c = 0; c < d; ++c) {
                    for (std::size_t j = 0; j < n; ++j) old[j] = from[j * d + c];
                    for (std::size_t k = 0; k < n; ++k) {
                        Acc sum = 0;
                        for (std::size_t j = 0; j < n; ++j) sum += static_cast<Acc>(comb[r][j * n + k] * old[j]);
                        to[k * d + c] = numerics.round(post[r][k] * y[r][c] + static_cast<float>(sum));
                    }
                }
            }
        });
    });
}

void hc_head(RowsIn streams, const HyperConnection& site, RowsOut x, const Numerics& numerics,
             const Parallel& parallel) {
    for_pieces(parallel, streams.count, row_grain, [&](std::size_t begin, std::size_t end) {
        with_accumulator(numerics, [&]<class Acc>() {
            std::vector<float> m(site.streams);
            for (std::size_t r = begin; r < end; ++r) {
                mix<Acc>(streams[r], site, m);
                for (std::size_t j = 0; j < m.size(); ++j)
                    m[j] = sigmoid_as<Acc>(m[j] * site.scale[0] + site.base[j]) + site.hc_eps;
                collapse<Acc>(streams[r], m, x[r], numerics);
            }
        });
    });
}

} // namespace dsv4::cpu
