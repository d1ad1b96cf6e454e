// `compress`: gates of each token, and the compressed row of a window of tokens that has just closed.
#pragma once

#include <cstdint>

#include "linear.hpp"
#include "numerics.hpp"
#include "rope.hpp"
#include "rows.hpp"

namespace dsv4::cpu {

// What a window closes into: an attention row (FP8 per 64 on unrotated channels) or an index key (Hadamard, FP4).
enum class EntryKind : std::uint8_t { attention, index };

// Parameters of a compressor. ratio 4 overlaps: a token has 2 d values; the first half serves the next window's entry
// and the second half its own. Other ratios have d values a token.
struct Compressor {
    std::size_t ratio = 4;
    std::size_t width = 512; // d
    EntryKind kind = EntryKind::attention;
    std::span<const float> ape;         // [ratio, c d], added to the gate by position in the window
    std::span<const float> norm_weight; // [d]
    float eps = 1e-6f;

    bool overlaps() const { return ratio == 4; }
    std::size_t token_width() const { return width * (overlaps() ? 2 : 1); }
    std::size_t slots() const { return ratio * (overlaps() ? 2 : 1); } // tokens an entry reads
};

// z += ape[position mod ratio]; z [N, c d] holds wgate . x. Values u need nothing.
void add_gate_positions(RowsOut z, std::span<const std::int64_t> positions, const Compressor& compressor);

// One token's values and gates (c d each), float32.
struct Partial {
    const float* u = nullptr;
    const float* z = nullptr;
};

// Entry of window w from the partials of its tokens in order; an overlapping compressor reads `slots()` tokens, those
// of window w-1 first, null pointers for w = 0. Per channel: softmax over slots of z, weighted sum of u, one rounding;
// then norm, rotation at position w * ratio, and the kind's format. out [d].
void close_window(std::span<const Partial> tokens, std::int64_t window, const Compressor& compressor,
                  const RopeTable& table, std::span<float> out, const Numerics& numerics);

} // namespace dsv4::cpu
