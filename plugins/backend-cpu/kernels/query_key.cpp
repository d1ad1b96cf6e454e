// Head norm, rotations and the cache formats.
#include "query_key.hpp"

#include <vector>

#include "dot.hpp"
#include "norm.hpp"

namespace dsv4::cpu {
namespace {

template <class Acc> void head_norm(std::span<float> head, float eps, const Numerics& numerics) {
    if (numerics.serve()) {
        Acc sum = 0;
        for (const float v : head) sum += static_cast<Acc>(bf16_round(v * v));
        const float mean = bf16_round(static_cast<float>(sum) / static_cast<float>(head.size()));
        const float r = bf16_round(rsqrt_as<Acc>(bf16_round(mean + eps)));
        for (float& v : head) v = bf16_round(v * r);
    } else {
        const float r = rsqrt_as<Acc>(mean_square<Acc>(head) + eps);
        for (float& v : head) v *= r;
    }
}

// In place, natural (Sylvester) order.
template <class Acc> void transform(std::span<float> row) {
    std::vector<Acc> v(row.begin(), row.end());
    for (std::size_t half = 1; half < v.size(); half *= 2)
        for (std::size_t i = 0; i < v.size(); i += 2 * half)
            for (std::size_t j = i; j < i + half; ++j) {
                const Acc a = v[j], b = v[j + half];
                v[j] = a + b;
                v[j + half] = a - b;
            }
    const auto scale = static_cast<float>(std::pow(static_cast<double>(row.size()), -0.5));
    for (std::size_t i = 0; i < v.size(); ++i) row[i] = static_cast<float>(v[i]) * scale;
}

} // namespace

void cache_round(std::span<float> row, std::size_t rotated, const Numerics& numerics) {
    if (numerics.serve()) round_to_fp8(row.first(row.size() - rotated), 64);
}

void head_norm_rope(RowsOut q, std::size_t heads, float eps, const RopeTable& table,
                    std::span<const std::int64_t> positions, const Numerics& numerics, const Parallel& parallel) {
    const std::size_t d = q.width / heads;
    for_pieces(parallel, q.count, 4, [&](std::size_t begin, std::size_t end) {
        std::vector<float> cosines(table.dim() / 2), sines(table.dim() / 2);
        for (std::size_t r = begin; r < end; ++r) {
            table.angles(positions[r], false, numerics, cosines, sines);
            for (std::size_t h = 0; h < heads; ++h) {
                const auto head = q[r].subspan(h * d, d);
                if (!(eps < 0)) with_accumulator(numerics, [&]<class Acc>() { head_norm<Acc>(head, eps, numerics); });
                rotate(head, cosines, sines, numerics);
            }
        }
    });
}

void kv_rows(RowsIn kv, std::span<const float> norm_weight, float eps, const RopeTable& table,
             std::span<const std::int64_t> positions, RowsOut rows, const Numerics& numerics,
             const Parallel& parallel) {
    for_pieces(parallel, kv.count, 16, [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) {
            rms_norm(kv[r], norm_weight, eps, rows[r], numerics);
            rotate_at(rows[r], table, positions[r], false, numerics);
            cache_round(rows[r], table.dim(), numerics);
        }
    });
}

void hadamard(std::span<float> row, const Numerics& numerics) {
    with_accumulator(numerics, [&]<class Acc>() { transform<Acc>(row); });
    numerics.round(row);
}

void index_round(std::span<float> row, const Numerics& numerics) {
    if (!numerics.serve()) return;
    hadamard(row, numerics);
    round_to_fp4(row);
}

} // namespace dsv4::cpu
