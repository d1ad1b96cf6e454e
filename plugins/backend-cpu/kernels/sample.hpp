// `sample`: from a row of logits to a token. Order: bias, repetition, frequency and presence penalties, stop ids, mask,
// temperature, top_k, top_p, min_p, softmax; float32; ties to the lowest id.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "philox.hpp"

namespace dsv4::cpu {

struct SamplingParameters {
    float temperature = 0.0f; // 0: argmax
    std::int32_t top_k = 0;   // 0: off
    float top_p = 1.0f;       // 1: off
    float min_p = 0.0f;       // 0: off
    float presence_penalty = 0.0f;
    float frequency_penalty = 0.0f;
    float repetition_penalty = 1.0f;
    std::uint64_t seed = 0;
    std::vector<std::pair<std::int32_t, float>> bias;

    bool penalises() const { return presence_penalty != 0 || frequency_penalty != 0 || repetition_penalty != 1; }
};

// Occurrences of a token: generated ones in the low bits, "stood in the prompt" in the top bit.
using TokenCount = std::uint32_t;
inline constexpr TokenCount in_prompt = 0x80000000u;

// Bias, penalties, and -infinity for `forbidden` ids. counts: one a token, or empty (no penalties).
void adjust_logits(std::span<float> logits, const SamplingParameters& parameters, std::span<const TokenCount> counts,
                   std::span<const std::int32_t> forbidden);

// What is left after temperature and the filters: ids ascending, probabilities of sum 1.
struct Distribution {
    std::vector<std::int32_t> ids;
    std::vector<float> probabilities;

    float of(std::int32_t id) const; // 0 for a token that was filtered out
};

// Of adjusted logits. Temperature 0 gives the best token alone. Throws Failure(invalid) when no logit is finite or one
// is NaN or +infinity.
Distribution distribution(std::span<const float> logits, const SamplingParameters& parameters);

// argmax over the kept ids v of log p_v - log(-log u_v), lowest id on a tie.
std::int32_t draw(const Distribution& from, std::uint64_t seed, std::int64_t position, Stream stream);

// The residual max(p - q, 0), normalised; p itself where its sum is at most 1e-8.
Distribution residual(const Distribution& p, const Distribution& q);

// Log-softmax of one token and of the k best (best first, lowest id on a tie).
struct LogProbabilities {
    float token = 0.0f;
    std::vector<std::pair<std::int32_t, float>> best;
};
LogProbabilities log_probabilities(std::span<const float> logits, std::int32_t token, std::size_t k);

} // namespace dsv4::cpu
