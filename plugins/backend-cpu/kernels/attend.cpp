// Attention of one query row over gathered rows.
#include "attend.hpp"

#include <limits>
#include <vector>

#include "dot.hpp"

namespace dsv4::cpu {
namespace {

struct Chunk {
    std::size_t begin, end; // rows of kv
};

// Rows whose list slots fall into the same chunk.
std::vector<Chunk> cut(std::size_t rows, std::size_t window, const AttendShape& shape) {
    std::vector<Chunk> chunks;
    std::size_t last = std::numeric_limits<std::size_t>::max();
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t slot = i < window ? i : shape.window_slots + (i - window);
        const std::size_t chunk = slot / shape.chunk_slots;
        if (chunk != last) chunks.push_back({i, i});
        chunks.back().end = i + 1;
        last = chunk;
    }
    return chunks;
}

template <class Acc>
void attend_head(std::span<const float> q, RowsIn kv, std::span<const Chunk> chunks, float sink, std::span<float> out,
                 std::span<Acc> weighted, std::vector<float>& p, const Numerics& numerics) {
    const std::size_t d = q.size();
    const auto scale = static_cast<float>(std::pow(static_cast<double>(d), -0.5));
    float largest = -std::numeric_limits<float>::infinity(), total = 0.0f;
    std::fill(out.begin(), out.end(), 0.0f);
    for (const Chunk& chunk : chunks) {
        const std::size_t n = chunk.end - chunk.begin;
        p.resize(n);
        float next = largest;
        std::size_t j = 0;
        for (; j + 4 <= n; j += 4) {
            const float* rows[4];
            for (std::size_t i = 0; i < 4; ++i) rows[i] = kv[chunk.begin + j + i].data();
            dot4<Acc>(q.data(), rows, d, &p[j]);
        }
        for (; j < n; ++j) p[j] = dot<Acc>(q.data(), kv[chunk.begin + j].data(), d);
        for (float& l : p) next = std::max(next, l *= scale);

        const float fade = exp_as<Acc>(largest - next);
        Acc sum = 0;
        std::fill(weighted.begin(), weighted.end(), Acc{0});
        for (j = 0; j < n; ++j) {
            const float e = exp_as<Acc>(p[j] - next);
            sum += static_cast<Acc>(e);
            add_scaled(weighted.data(), numerics.round(e), kv[chunk.begin + j].data(), d);
        }
        total = total * fade + static_cast<float>(sum);
        for (std::size_t c = 0; c < d; ++c) out[c] = out[c] * fade + static_cast<float>(weighted[c]);
        largest = next;
    }
    const float by = total + exp_as<Acc>(sink - largest);
    for (float& v : out) v = numerics.round(v / by);
}

} // namespace

void attend(std::span<const float> q, RowsIn kv, std::size_t window, std::span<const float> sink,
            const RopeTable& table, std::int64_t position, const AttendShape& shape, std::span<float> out,
            const Numerics& numerics) {
    const std::size_t d = kv.width;
    const auto chunks = cut(kv.count, window, shape);
    std::vector<float> cosines(table.dim() / 2), sines(table.dim() / 2);
    table.angles(position, true, numerics, cosines, sines);
    with_accumulator(numerics, [&]<class Acc>() {
        std::vector<Acc> weighted(d);
        std::vector<float> p;
        for (std::size_t h = 0; h < shape.heads; ++h) {
            const auto head = out.subspan(h * d, d);
            attend_head<Acc>(q.subspan(h * d, d), kv, chunks, sink[h], head, weighted, p, numerics);
            rotate(head, cosines, sines, numerics);
        }
    });
}

} // namespace dsv4::cpu
