// `head_norm_rope` and `kv_store`: the row-wise parts of attention between the projections and the cache.
#pragma once

#include <cstdint>

#include "numerics.hpp"
#include "parallel.hpp"
#include "rope.hpp"
#include "rows.hpp"

namespace dsv4::cpu {

// Cache rows and compressed entries: E4M3 per 64 over the channels that are not rotated, in `serve` only.
void cache_round(std::span<float> row, std::size_t rotated, const Numerics& numerics);

// q [N, H * d], in place: each head times rsqrt(mean(q^2) + eps), without a weight, then rotated at the row's position.
// In `serve` the norm is the publisher's chain of bf16 tensors: bf16(q q), bf16(mean), bf16(+ eps), bf16(rsqrt), bf16(q
// .). eps < 0 leaves the norm out (index queries).
void head_norm_rope(RowsOut q, std::size_t heads, float eps, const RopeTable& table,
                    std::span<const std::int64_t> positions, const Numerics& numerics, const Parallel& parallel);

// kv [N, d] -> cache rows [N, d]: weighted norm, rotation, cache rounding. The caller writes them to the window pages.
void kv_rows(RowsIn kv, std::span<const float> norm_weight, float eps, const RopeTable& table,
             std::span<const std::int64_t> positions, RowsOut rows, const Numerics& numerics, const Parallel& parallel);

// Times the natural-order Hadamard matrix / sqrt(n), one rounding. n must be a power of two.
void hadamard(std::span<float> row, const Numerics& numerics);

// Index queries and keys in `serve`: hadamard, then FP4 per 32. The orthonormal transform changes no dot product, so
// `score` leaves rows as they are.
void index_round(std::span<float> row, const Numerics& numerics);

} // namespace dsv4::cpu
