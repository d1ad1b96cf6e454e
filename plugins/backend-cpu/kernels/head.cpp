// Logits and taps.
#include "head.hpp"

#include <algorithm>

namespace dsv4::cpu {

void head(RowsIn x, std::span<const std::size_t> wanted, const Matrix& weight, RowsOut logits, const Numerics& numerics,
          const Parallel& parallel) {
    std::vector<float> gathered(wanted.size() * x.width);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto row = x[wanted[i]];
        std::copy(row.begin(), row.end(), gathered.begin() + static_cast<std::ptrdiff_t>(i * x.width));
    }
    linear({gathered.data(), wanted.size(), x.width}, weight, logits,
           {.quantiser = Quantiser::none, .round_output = false}, numerics, parallel);
}

void tap(std::span<const RowsIn> streams, std::size_t n, RowsOut out, const Numerics& numerics) {
    with_accumulator(numerics, [&]<class Acc>() {
        for (std::size_t i = 0; i < streams.size(); ++i) {
            const std::size_t d = streams[i].width / n;
            for (std::size_t r = 0; r < out.count; ++r) {
                for (std::size_t c = 0; c < d; ++c) {
                    Acc sum = 0;
                    for (std::size_t j = 0; j < n; ++j) sum += static_cast<Acc>(streams[i][r][j * d + c]);
                    out[r][i * d + c] = numerics.round(static_cast<float>(sum) / static_cast<float>(n));
                }
            }
        }
    });
}

} // namespace dsv4::cpu
