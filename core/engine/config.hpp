// What the engine is told once: limits, defaults and budgets, taken from the serving plan.
#pragma once

#include "core/model/geometry.hpp"
#include "core/plan/serving_plan.hpp"
#include "core/sampling/sampling.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dsv4::engine {

struct EngineConfig {
    std::string model_name; // as describe() reports it
    // Model.
    std::int64_t vocab_size = 0;
    std::int64_t sliding_window = 0;        // tokens
    std::int64_t max_model_len = 0;         // tokens, prompt and answer; clamped to what the pages hold
    std::vector<std::int32_t> stop_ids;     // the model's own
    std::int32_t begin_id = -1;             // token that text prompts begin with when asked; -1: none
    std::string reasoning_end = "</think>"; // control token that closes reasoning
    // Scheduling.
    std::uint32_t max_sequences = 16;
    std::uint32_t max_batched_tokens = 2048; // rows of a step
    bool chunked_prefill = true;
    std::size_t max_waiting = 4096;  // completions that may wait for a slot
    std::size_t queue_tokens = 1024; // unread tokens of a request at which it pauses
    // State.
    bool prefix_caching = true;
    std::uint32_t boundary_every_blocks = 16; // every n-th block boundary is retained; 0: only ends
    std::uint64_t cache_bytes = 0;            // for all pools and slots together
    std::vector<std::uint32_t> pool_pages;    // not empty: these sizes, in the backend's order of paged kinds
    std::uint32_t boundary_states = 0;        // with pool_pages: how many to retain
    // Defaults of requests.
    sampling::Defaults sampling;
    bool thinking = false;
    std::string effort;
    std::int64_t default_max_tokens = -1; // -1: as far as the context allows
};

// Everything but the budget of bytes, which depends on the device: see cache_budget.
EngineConfig config_from(const plan::ServingPlan& plan, const model::Geometry& geometry);

} // namespace dsv4::engine
