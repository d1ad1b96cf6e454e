// Sampling parameters of one request: checked, completed from the deployment's defaults, owning their lists.
#pragma once

#include "dsv4/generate.h"
#include "dsv4/sdk/result.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace dsv4::sampling {

// Where the request says nothing.
struct Defaults {
    double temperature = 1.0;
    double top_p = 1.0;
    std::int64_t top_k = 0;
    double min_p = 0.0;
};

// A logit this far down is never chosen, and sums stay finite.
inline constexpr float never_bias = -1e30f;
// And this far up always is.
inline constexpr float always_bias = 1e9f;

inline constexpr std::int32_t max_logprobs = 20;
inline constexpr std::uint32_t max_biases = 1024;
inline constexpr std::uint32_t max_stop_ids = 128;

// Value type; owns what view() points to.
struct Sampling {
    float temperature = 1.0f;
    std::int32_t top_k = 0;
    float top_p = 1.0f;
    float min_p = 0.0f;
    float presence_penalty = 0.0f;
    float frequency_penalty = 0.0f;
    float repetition_penalty = 1.0f;
    std::uint64_t seed = 0;
    std::int32_t logprobs = -1;
    bool masked = false;
    std::vector<dsv4_bias> bias; // one entry a token, ascending
    std::vector<std::int32_t> stop_ids;
    std::int64_t min_length = 0; // total tokens
    std::int64_t max_length = 0;

    bool penalised() const noexcept {
        return presence_penalty != 0.0f || frequency_penalty != 0.0f || repetition_penalty != 1.0f;
    }
    bool stops_at(std::int32_t token) const noexcept;
    // Points into this object.
    dsv4_sampling view() const noexcept;
    // The same, except that `token` is certain to come next.
    Sampling forcing(std::int32_t token) const;
};

// Checks every field against its range and completes the rest. `stop_ids` are the model's own, `banned` must not be
// sampled, `random_seed` serves requests without a seed. Lengths are left 0: they depend on the prompt.
// Code::invalid names the field as the APIs spell it.
Result<Sampling> resolve(const dsv4_generate_request& request, const Defaults& defaults, std::int64_t vocab_size,
                         std::span<const std::int32_t> stop_ids, std::span<const std::int32_t> banned,
                         std::uint64_t random_seed);

} // namespace dsv4::sampling
