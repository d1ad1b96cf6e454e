// Random tensors and weights for the backend check: the same seed gives the same bytes everywhere.
#pragma once

#include "core/lower/weight_table.hpp"
#include "dsv4/program.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::conformance {

// splitmix64: portable, unlike the standard library's distributions.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits();
    std::uint32_t below(std::uint32_t bound) { return std::uint32_t(((bits() >> 32) * bound) >> 32); }
    float uniform(); // [0, 1)
    float normal();  // sum of four uniforms: mean 0, variance 1, at most 3.5

  private:
    std::uint64_t state_;
};

std::uint64_t seed_of(std::string_view text, std::uint64_t salt);

using Bytes = std::vector<unsigned char>;

// `count` values of F32 or BF16 elements, normal x scale + shift, rounded to the element type.
Bytes random_values(Random& random, dsv4_element element, std::size_t count, float scale = 1, float shift = 0);

struct WeightBytes {
    Bytes data;
    Bytes scale;
};

// A part of a weight with valid blocks, scaled so that a row of the matrix has about unit gain. Names decide the
// distribution: norms around 1, scales around 0.75, tables of expert ids below `experts`.
WeightBytes random_weight(const lower::TableEntry& entry, std::uint32_t part, std::uint64_t seed, std::int64_t experts);

} // namespace dsv4::conformance
