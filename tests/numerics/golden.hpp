// Golden files, and distances that treat NaN as infinitely far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace dsv4::numerics {

// Throw Failure for an absent tensor or one of another type. floats: F32 and BF16; ints: I32.
std::vector<float> floats(const std::filesystem::path& safetensors, const std::string& name);
std::vector<std::int32_t> ints(const std::filesystem::path& safetensors, const std::string& name);

// Row `index` of a matrix of `width` columns.
template <class T> std::span<const T> row(const std::vector<T>& values, std::size_t index, std::size_t width) {
    return std::span(values).subspan(index * width, width);
}

// Largest |a - b|; infinity when a value is NaN or the sizes differ.
double largest_difference(std::span<const float> a, std::span<const float> b);
// rms(a - b) / rms(b); infinity for NaN.
double relative_rms(std::span<const float> a, std::span<const float> b);
// True when sizes and all bit patterns are equal; NaN equals itself, 0 differs from -0.
bool same_bits(std::span<const float> a, std::span<const float> b);
std::vector<double> log_softmax(std::span<const float> logits);
// Sum of p_b (log p_b - log p_a) over the vocabulary, p the softmax of the logits.
double kl_divergence(std::span<const float> a, std::span<const float> b);
// Element floor(q * n) of the sorted values, as the table of tests/vectors/model/README.md was made.
double quantile(std::vector<double> values, double q);

} // namespace dsv4::numerics
