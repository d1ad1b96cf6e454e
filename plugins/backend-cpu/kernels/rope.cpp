// Rotary tables: frequencies in the arithmetic of the reference, angles as float32 products.
#include "rope.hpp"

#include <numbers>

namespace dsv4::cpu {

RopeTable::RopeTable(const RopeParameters& p) : frequencies_(p.dim / 2) {
    const auto dim = static_cast<double>(p.dim);
    for (std::size_t i = 0; i < frequencies_.size(); ++i)
        frequencies_[i] = 1.0f / static_cast<float>(std::pow(p.theta, static_cast<double>(2 * i) / dim));
    if (p.factor == 1.0) return;

    // The channel at which `turns` full turns fit into the original context.
    const auto channel = [&](double turns) {
        return dim * std::log(p.original_positions / (turns * 2 * std::numbers::pi)) / (2 * std::log(p.theta));
    };
    const double low = std::max(std::floor(channel(p.beta_fast)), 0.0);
    const double high = std::min(std::ceil(channel(p.beta_slow)), dim - 1);
    const auto factor = static_cast<float>(p.factor);
    for (std::size_t i = 0; i < frequencies_.size(); ++i) {
        const auto at = static_cast<float>((static_cast<double>(i) - low) / std::max(high - low, 1e-3));
        const float ramp = std::clamp(at, 0.0f, 1.0f);
        const float f = frequencies_[i];
        frequencies_[i] = f / factor * ramp + f * (1.0f - ramp);
    }
}

void RopeTable::angles(std::int64_t position, bool inverse, const Numerics& numerics, std::span<float> cosines,
                       std::span<float> sines) const {
    with_accumulator(numerics, [&]<class Acc>() {
        for (std::size_t i = 0; i < frequencies_.size(); ++i) {
            const float angle = static_cast<float>(position) * frequencies_[i];
            cosines[i] = static_cast<float>(std::cos(static_cast<Acc>(angle)));
            const auto sine = static_cast<float>(std::sin(static_cast<Acc>(angle)));
            sines[i] = inverse ? -sine : sine;
        }
    });
}

void rotate(std::span<float> row, std::span<const float> cosines, std::span<const float> sines,
            const Numerics& numerics) {
    float* pair = row.data() + row.size() - 2 * cosines.size();
    for (std::size_t i = 0; i < cosines.size(); ++i, pair += 2) {
        const float a = pair[0], b = pair[1], c = cosines[i], s = sines[i];
        pair[0] = numerics.round(a * c - b * s);
        pair[1] = numerics.round(a * s + b * c);
    }
}

void rotate_at(std::span<float> row, const RopeTable& table, std::int64_t position, bool inverse,
               const Numerics& numerics) {
    std::vector<float> angles(table.dim());
    const std::span<float> cosines{angles.data(), table.dim() / 2},
        sines{angles.data() + table.dim() / 2, table.dim() / 2};
    table.angles(position, inverse, numerics, cosines, sines);
    rotate(row, cosines, sines, numerics);
}

} // namespace dsv4::cpu
