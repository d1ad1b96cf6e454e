// Matrix products over stored weights: rows of weights are the unit of work, so that each is dequantised once a call.
#include "linear.hpp"

#include <array>

#include "dot.hpp"

namespace dsv4::cpu {
namespace {

constexpr std::size_t tile = 4;            // weight rows that share a pass over x
constexpr std::size_t task_macs = 1 << 17; // multiply-adds worth a task of their own

// y[:, begin..end) of one group: its inputs start at x_offset, its weight rows and outputs at row `begin`.
template <class Acc>
void multiply(RowsIn x, std::size_t x_offset, const Matrix& weight, std::size_t begin, std::size_t end, RowsOut y,
              bool round_output, const Numerics& numerics) {
    const std::size_t k = weight.cols;
    std::vector<float> scratch(tile * k);
    for (std::size_t m = begin; m < end; m += tile) {
        const std::size_t count = std::min(tile, end - m);
        const float* rows[tile];
        for (std::size_t i = 0; i < count; ++i) rows[i] = dequantise_row(weight, m + i, scratch.data() + i * k);
        for (std::size_t r = 0; r < x.count; ++r) {
            const float* in = x.data + r * x.width + x_offset;
            float* out = y.data + r * y.width + m;
            if (count == tile)
                dot4<Acc>(in, rows, k, out);
            else
                for (std::size_t i = 0; i < count; ++i) out[i] = dot<Acc>(in, rows[i], k);
            if (round_output)
                for (std::size_t i = 0; i < count; ++i) out[i] = numerics.round(out[i]);
        }
    }
}

} // namespace

RowsIn quantise_rows(RowsIn x, Quantiser quantiser, const Numerics& numerics, std::vector<float>& storage) {
    if (quantiser == Quantiser::none || !numerics.serve()) return x;
    storage.assign(x.data, x.data + x.count * x.width);
    const RowsOut rounded{storage.data(), x.count, x.width};
    for (std::size_t r = 0; r < x.count; ++r) round_to_fp8(rounded[r], 128);
    return rounded;
}

void linear(RowsIn x, const Matrix& weight, RowsOut y, const LinearOptions& options, const Numerics& numerics,
            const Parallel& parallel) {
    group_linear(x, weight, 1, y, options, numerics, parallel);
}

void group_linear(RowsIn x, const Matrix& weight, std::size_t groups, RowsOut y, const LinearOptions& options,
                  const Numerics& numerics, const Parallel& parallel) {
    if (x.count == 0) return;
    std::vector<float> storage;
    const RowsIn in = quantise_rows(x, options.quantiser, numerics, storage);
    const std::size_t per_group = weight.rows / groups;
    const std::size_t row_macs = std::max<std::size_t>(1, weight.cols * (x.count + 2)); // 2: the cost of dequantising
    const std::size_t grain = (task_macs / row_macs + tile) / tile * tile;
    for_pieces(parallel, weight.rows, grain, [&](std::size_t begin, std::size_t end) {
        with_accumulator(numerics, [&]<class Acc>() {
            while (begin < end) { // a piece may span groups
                const std::size_t group = begin / per_group;
                const std::size_t stop = std::min(end, (group + 1) * per_group);
                multiply<Acc>(in, group * weight.cols, weight, begin, stop, y, options.round_output, numerics);
                begin = stop;
            }
        });
    });
}

} // namespace dsv4::cpu
