// Index scores and the selection of the best entries.
#include "index_select.hpp"

#include <algorithm>
#include <numeric>

#include "dot.hpp"

namespace dsv4::cpu {

void scale_head_weights(std::span<float> weights, std::size_t index_dim, const Numerics& numerics) {
    const double d = static_cast<double>(index_dim), h = static_cast<double>(weights.size());
    const auto scale = static_cast<float>(std::pow(d, -0.5) * std::pow(h, -0.5));
    for (float& w : weights) w = numerics.round(w * scale);
}

std::vector<std::int32_t> top_k(std::span<const float> scores, std::size_t k) {
    std::vector<std::int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    k = std::min(k, order.size());
    const auto better = [&](std::int32_t a, std::int32_t b) {
        const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
        const bool x_nan = std::isnan(x), y_nan = std::isnan(y);
        if (x_nan != y_nan) return y_nan;
        if (!x_nan && x != y) return x > y;
        return a < b;
    };
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(), better);
    order.resize(k);
    return order;
}

std::vector<std::int32_t> index_select(std::span<const float> iq, std::span<const float> head_weights, RowsIn keys,
                                       std::size_t k, const Numerics& numerics) {
    const std::size_t heads = head_weights.size(), d = keys.width;
    std::vector<float> scores(keys.count);
    with_accumulator(numerics, [&]<class Acc>() {
        std::vector<float> dots(heads + 4);
        for (std::size_t w = 0; w < keys.count; ++w) {
            const float* key = keys[w].data();
            std::size_t h = 0;
            for (; h + 4 <= heads; h += 4) {
                const float* q[4] = {&iq[h * d], &iq[(h + 1) * d], &iq[(h + 2) * d], &iq[(h + 3) * d]};
                dot4<Acc>(key, q, d, &dots[h]);
            }
            for (; h < heads; ++h) dots[h] = dot<Acc>(key, &iq[h * d], d);
            Acc sum = 0;
            for (h = 0; h < heads; ++h) {
                const float s = std::max(numerics.round(dots[h]), 0.0f);
                sum += static_cast<Acc>(numerics.round(s * head_weights[h]));
            }
            scores[w] = numerics.round(static_cast<float>(sum));
        }
    });
    return top_k(scores, k);
}

} // namespace dsv4::cpu
