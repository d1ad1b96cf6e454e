// `attend`: one query row against its window and its compressed entries, with an attention sink.
#pragma once

#include <cstdint>

#include "numerics.hpp"
#include "rope.hpp"
#include "rows.hpp"

namespace dsv4::cpu {

struct AttendShape {
    std::size_t heads = 64;
    std::size_t window_slots = 128; // slots of the list that belong to the window, filled or not
    std::size_t chunk_slots = 64;   // slots between two updates of the running maximum
};

// q [H * d]; kv [S, d]: the first `window` rows are window rows, oldest first, the others entries in list order; sink
// [H]. Window rows take list slots 0.., entries take slots from window_slots on, however many rows the window has, and
// slots are processed in chunks. So a single pass, any chunking of a prompt and token-by-token decoding are the same
// computation.
//   l = (q . kv) d^-1/2; per chunk: M = max(M, max l), Z = Z exp(M_old - M) + sum exp(l - M),
//   acc = acc exp(M_old - M) + sum bf16(exp(l - M)) kv;  o = acc / (Z + exp(sink - M))
// then the inverse rotation at the query's position. out [H * d].
void attend(std::span<const float> q, RowsIn kv, std::size_t window, std::span<const float> sink,
            const RopeTable& table, std::int64_t position, const AttendShape& shape, std::span<float> out,
            const Numerics& numerics);

} // namespace dsv4::cpu
