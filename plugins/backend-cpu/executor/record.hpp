// What the backend keeps of each slot between batches.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "../kernels/sample.hpp"
#include "dsv4/backend.h"

namespace dsv4::cpu {

// A copy of dsv4_sampling.
struct Sampling {
    SamplingParameters parameters;
    std::int32_t logprobs = -1;
    bool masked = false;
    std::vector<std::int32_t> stop_ids;
    std::int64_t min_length = 0;
    std::int64_t max_length = std::numeric_limits<std::int64_t>::max();
};

// Checks every member; throws Failure(invalid) naming the first bad one. Token ids are checked where the vocabulary is
// known.
Sampling read_sampling(const dsv4_sampling& from);

struct Draft {
    std::int32_t token = -1;
    Distribution distribution; // empty for a greedy draft
};

struct Record {
    std::int64_t committed = 0; // P
    std::int32_t last = -1;
    bool finished = false;
    Sampling sampling;
    std::vector<Draft> drafts;
    std::vector<TokenCount> counts; // one a token of the vocabulary, or empty where no Program keeps counts
};

} // namespace dsv4::cpu
