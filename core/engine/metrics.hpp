// What the engine counts, under the names that dashboards for vLLM expect where such a name exists. The engine reports
// through this small interface; core/host puts it into the metric registry.
#pragma once

#include "dsv4/host.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace dsv4::engine {

enum class Metric : std::uint32_t {
    requests_running,
    requests_waiting,
    cache_usage,
    prefix_queries, // tokens
    prefix_hits,    // tokens
    prefix_misses,  // look-ups that stopped early, by reason
    prefix_boundary_states,
    prefix_blocks,
    preemptions,
    prompt_tokens,
    prompt_tokens_cached,
    generation_tokens,
    request_success, // by finished_reason
    time_to_first_token,
    inter_token_latency,
    time_per_output_token,
    e2e_latency,
    queue_time,
    prefill_time,
    decode_time,
    inference_time,
    request_prompt_tokens,
    request_generation_tokens,
    request_max_tokens,
    request_n,
    iteration_tokens,
    request_prefill_computed_tokens,
    paused_readers, // times a full queue paused a completion
    count_
};

struct MetricInfo {
    std::string_view name;
    dsv4_metric_kind kind;
    std::string_view help;
    std::string_view label;          // name of the one label that update's `value_of_label` fills; empty: none
    std::span<const double> buckets; // upper bounds of a histogram, without infinity
};
const MetricInfo& info(Metric metric) noexcept;

// Called from the engine thread, and from submitting threads for what concerns submission.
class Metrics {
  public:
    virtual ~Metrics() = default;
    virtual void update(Metric metric, double value, std::string_view value_of_label = {}) = 0;
};

} // namespace dsv4::engine
