// Compression of closed windows.
#include "compress.hpp"

#include <limits>
#include <vector>

#include "norm.hpp"
#include "query_key.hpp"

namespace dsv4::cpu {

void add_gate_positions(RowsOut z, std::span<const std::int64_t> positions, const Compressor& compressor) {
    for (std::size_t r = 0; r < z.count; ++r) {
        const auto phase = static_cast<std::size_t>(positions[r]) % compressor.ratio;
        const float* ape = &compressor.ape[phase * z.width];
        const auto row = z[r];
        for (std::size_t i = 0; i < row.size(); ++i) row[i] += ape[i];
    }
}

void close_window(std::span<const Partial> tokens, std::int64_t window, const Compressor& compressor,
                  const RopeTable& table, std::span<float> out, const Numerics& numerics) {
    const std::size_t d = compressor.width, slots = tokens.size();
    // Slot s reads channels from `half(s)` on: first halves of the window before, second halves of this one.
    const auto half = [&](std::size_t s) { return compressor.overlaps() && s >= compressor.ratio ? d : 0; };
    with_accumulator(numerics, [&]<class Acc>() {
        std::vector<float> e(slots);
        for (std::size_t c = 0; c < d; ++c) {
            float largest = -std::numeric_limits<float>::infinity();
            for (std::size_t s = 0; s < slots; ++s)
                if (tokens[s].z) largest = std::max(largest, tokens[s].z[half(s) + c]);
            Acc sum = 0;
            for (std::size_t s = 0; s < slots; ++s) {
                e[s] = tokens[s].z ? exp_as<Acc>(tokens[s].z[half(s) + c] - largest) : 0.0f;
                sum += static_cast<Acc>(e[s]);
            }
            const auto total = static_cast<float>(sum);
            Acc pooled = 0;
            for (std::size_t s = 0; s < slots; ++s)
                if (tokens[s].u) pooled += static_cast<Acc>(e[s] / total * tokens[s].u[half(s) + c]);
            out[c] = numerics.round(static_cast<float>(pooled));
        }
    });
    rms_norm(out, compressor.norm_weight, compressor.eps, out, numerics);
    rotate_at(out, table, window * static_cast<std::int64_t>(compressor.ratio), false, numerics);
    if (compressor.kind == EntryKind::index)
        index_round(out, numerics);
    else
        cache_round(out, table.dim(), numerics);
}

} // namespace dsv4::cpu
