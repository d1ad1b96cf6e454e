// Safe starting points for generate requests: a zero is not a safe value of every member.
#pragma once

#include "dsv4/generate.h"

#include <cstdint>
#include <limits>

namespace dsv4::sdk {

// Greedy, nothing penalised, no limits, no log-probabilities.
inline dsv4_sampling default_sampling() noexcept {
    dsv4_sampling s{};
    s.struct_size = sizeof s;
    s.top_p = 1;
    s.repetition_penalty = 1;
    s.logprobs = -1;
    s.max_length = std::numeric_limits<std::int64_t>::max();
    return s;
}

// One completion without limits of its own; the deployment's defaults hold for everything.
inline dsv4_generate_request default_request() noexcept {
    dsv4_generate_request r{};
    r.struct_size = sizeof r;
    r.n = 1;
    r.sampling = default_sampling();
    r.limits = {-1, 0, -1, 0};
    r.prompt_logprobs = -1;
    return r;
}

} // namespace dsv4::sdk
