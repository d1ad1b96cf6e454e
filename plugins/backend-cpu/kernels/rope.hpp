// Rotary position tables and the rotation of a row's last channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numerics.hpp"

namespace dsv4::cpu {

// Parameters of a table. factor 1 gives the plain table f_i = 1 / theta^(2i/dim). Otherwise YaRN blends f_i / factor
// and f_i over a ramp between the channels that turn beta_fast and beta_slow times within `original_positions`.
// Amplitude 1.
struct RopeParameters {
    std::size_t dim = 64; // rotated channels, even
    double theta = 10000.0;
    double factor = 1.0;
    double original_positions = 65536.0;
    double beta_fast = 32.0;
    double beta_slow = 1.0;
    bool operator==(const RopeParameters&) const = default;
};

// The frequencies f_i of dim / 2 pairs, float32.
class RopeTable {
  public:
    explicit RopeTable(const RopeParameters& parameters);
    std::size_t dim() const { return frequencies_.size() * 2; }
    std::span<const float> frequencies() const { return frequencies_; }

    // cos and sin (dim / 2 each) of the float32 product position * f_i; sin negated for the inverse rotation.
    void angles(std::int64_t position, bool inverse, const Numerics& numerics, std::span<float> cosines,
                std::span<float> sines) const;

  private:
    std::vector<float> frequencies_;
};

// Rotates adjacent pairs (2i, 2i+1) of the last 2 * cosines.size() channels of `row`, one rounding each.
void rotate(std::span<float> row, std::span<const float> cosines, std::span<const float> sines,
            const Numerics& numerics);

// Both steps for one row.
void rotate_at(std::span<float> row, const RopeTable& table, std::int64_t position, bool inverse,
               const Numerics& numerics);

} // namespace dsv4::cpu
