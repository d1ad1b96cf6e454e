// Experts: rows are gathered by expert, each expert's weights are read once a call.
#include "experts.hpp"

#include <algorithm>
#include <cstring>

namespace dsv4::cpu {
namespace {

// xq: quantised rows. row_weights: one a row, or empty. y [rows, D].
template <class Acc>
void run_expert(RowsIn xq, std::span<const float> row_weights, const Expert& expert, RowsOut y,
                const ExpertsOptions& options, const Numerics& numerics, const Parallel& parallel) {
    const std::size_t f = expert.w1.rows;
    std::vector<float> gate(xq.count * f), up(xq.count * f);
    const RowsOut g{gate.data(), xq.count, f}, u{up.data(), xq.count, f};
    linear(xq, expert.w1, g, {}, numerics, parallel);
    linear(xq, expert.w3, u, {}, numerics, parallel);
    for (std::size_t r = 0; r < xq.count; ++r) {
        for (std::size_t i = 0; i < f; ++i) {
            const float limited = std::min(g[r][i], options.clamp);
            float a = silu_as<Acc>(limited) * std::clamp(u[r][i], -options.clamp, options.clamp);
            if (!row_weights.empty()) a = row_weights[r] * a;
            g[r][i] = numerics.round(a);
        }
    }
    linear(g, expert.w2, y, {.quantiser = options.quantiser, .round_output = true}, numerics, parallel);
}

// One (row, expert) pair; the output of expert pairs lands in `slot` of a buffer.
struct Pair {
    std::int32_t expert;
    std::size_t row;
    float weight;
};

// The pairs sorted by expert, then row; of a repeated pair the last weight.
std::vector<Pair> pairs_of(std::span<const std::int32_t> ids, RowsIn weights) {
    std::vector<Pair> pairs;
    pairs.reserve(ids.size());
    const std::size_t k = weights.width;
    for (std::size_t r = 0; r < weights.count; ++r)
        for (std::size_t j = k; j-- > 0;) pairs.push_back({ids[r * k + j], r, weights[r][j]});
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
        return a.expert != b.expert ? a.expert < b.expert : a.row < b.row;
    });
    const auto same = [](const Pair& a, const Pair& b) { return a.expert == b.expert && a.row == b.row; };
    pairs.erase(std::unique(pairs.begin(), pairs.end(), same), pairs.end());
    return pairs;
}

} // namespace

void experts(RowsIn x, std::span<const std::int32_t> ids, RowsIn weights, std::span<const Expert> routed,
             const std::optional<Expert>& shared, RowsOut y, const ExpertsOptions& options, const Numerics& numerics,
             const Parallel& parallel) {
    if (x.count == 0) return;
    std::vector<float> storage;
    const RowsIn xq = quantise_rows(x, options.quantiser, numerics, storage);
    const std::size_t d = x.width;

    const auto pairs = pairs_of(ids, weights);
    std::vector<std::size_t> starts; // where each expert's pairs begin
    for (std::size_t i = 0; i < pairs.size(); ++i)
        if (i == 0 || pairs[i].expert != pairs[i - 1].expert) starts.push_back(i);
    std::vector<float> outputs(pairs.size() * d);
    const RowsOut out{outputs.data(), pairs.size(), d};

    parallel.run(starts.size(), [&](std::size_t group) {
        with_accumulator(numerics, [&]<class Acc>() {
            const std::size_t begin = starts[group];
            const std::size_t count = (group + 1 < starts.size() ? starts[group + 1] : pairs.size()) - begin;
            std::vector<float> rows(count * d), row_weights(count);
            for (std::size_t i = 0; i < count; ++i) {
                std::memcpy(&rows[i * d], xq[pairs[begin + i].row].data(), d * sizeof(float));
                row_weights[i] = pairs[begin + i].weight;
            }
            const auto& expert = routed[static_cast<std::size_t>(pairs[begin].expert)];
            run_expert<Acc>({rows.data(), count, d}, row_weights, expert, {out[begin].data(), count, d}, options,
                            numerics, Serial{});
        });
    });

    std::fill(y.data, y.data + y.count * y.width, 0.0f);
    for (std::size_t i = 0; i < pairs.size(); ++i) { // ascending expert for every row
        const auto to = y[pairs[i].row];
        const auto from = out[i];
        for (std::size_t c = 0; c < d; ++c) to[c] += from[c];
    }
    if (shared) {
        outputs.resize(std::max(outputs.size(), x.count * d));
        const RowsOut s{outputs.data(), x.count, d};
        with_accumulator(numerics,
                         [&]<class Acc>() { run_expert<Acc>(xq, {}, *shared, s, options, numerics, parallel); });
        for (std::size_t i = 0; i < x.count * d; ++i) y.data[i] += outputs[i];
    }
    numerics.round(y.all());
}

} // namespace dsv4::cpu
