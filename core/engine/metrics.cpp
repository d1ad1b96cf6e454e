// The table of metric families.
#include "core/engine/metrics.hpp"

#include <array>

namespace dsv4::engine {
namespace {

constexpr double fine_seconds[] = {0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05,
                                   0.075, 0.1,   0.15,  0.2,   0.3,    0.5,  0.75,  1,    2.5,  5,    10};
constexpr double first_token_seconds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
                                          0.75,  1,     2.5,  5,    7.5,  10,   20,   40,  80,   160};
constexpr double request_seconds[] = {0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,
                                      10,   15,   20,  30,  40,  50,  60, 120, 240, 480, 960};
constexpr double token_counts[] = {1,    2,    5,     10,    20,    50,     100,    200,    500,    1000,
                                   2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000};
constexpr double step_tokens[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr double completions[] = {1, 2, 5, 10, 20, 50, 100};

constexpr auto counter = DSV4_METRIC_COUNTER;
constexpr auto gauge = DSV4_METRIC_GAUGE;
constexpr auto histogram = DSV4_METRIC_HISTOGRAM;

const std::array<MetricInfo, std::size_t(Metric::count_)> families{{
    {"vllm:num_requests_running", gauge, "Completions that hold a slot", {}, {}},
    {"vllm:num_requests_waiting", gauge, "Completions that wait for a slot", {}, {}},
    {"vllm:kv_cache_usage_perc", gauge, "Part of the growing state pages in use, 0 to 1", {}, {}},
    {"vllm:prefix_cache_queries_total", counter, "Prompt tokens looked up in the prefix cache", {}, {}},
    {"vllm:prefix_cache_hits_total", counter, "Prompt tokens taken from the prefix cache", {}, {}},
    {"dsv4_prefix_misses_total", counter, "Look-ups that stopped before the end of the prompt", "reason", {}},
    {"dsv4_prefix_boundary_states", gauge, "Boundary states retained in the prefix cache", {}, {}},
    {"dsv4_prefix_blocks", gauge, "Blocks known to the prefix cache", {}, {}},
    {"vllm:num_preemptions_total", counter, "Completions that lost their pages to others", {}, {}},
    {"vllm:prompt_tokens_total", counter, "Prompt tokens of admitted requests", {}, {}},
    {"vllm:prompt_tokens_cached_total", counter, "Prompt tokens not computed again", {}, {}},
    {"vllm:generation_tokens_total", counter, "Tokens generated", {}, {}},
    {"vllm:request_success_total", counter, "Completions that ended", "finished_reason", {}},
    {"vllm:time_to_first_token_seconds", histogram, "From submission to the first token", {}, first_token_seconds},
    {"vllm:inter_token_latency_seconds", histogram, "Between tokens of one completion", {}, fine_seconds},
    {"vllm:request_time_per_output_token_seconds", histogram, "Mean time a token after the first", {}, fine_seconds},
    {"vllm:e2e_request_latency_seconds", histogram, "From submission to the end", {}, request_seconds},
    {"vllm:request_queue_time_seconds", histogram, "From submission to admission", {}, request_seconds},
    {"vllm:request_prefill_time_seconds", histogram, "From admission to the first token", {}, request_seconds},
    {"vllm:request_decode_time_seconds", histogram, "From the first token to the end", {}, request_seconds},
    {"vllm:request_inference_time_seconds", histogram, "From admission to the end", {}, request_seconds},
    {"vllm:request_prompt_tokens", histogram, "Prompt tokens of a request", {}, token_counts},
    {"vllm:request_generation_tokens", histogram, "Tokens generated for a completion", {}, token_counts},
    {"vllm:request_params_max_tokens", histogram, "max_tokens of a request", {}, token_counts},
    {"vllm:request_params_n", histogram, "n of a request", {}, completions},
    {"vllm:iteration_tokens_total", histogram, "Rows of a step", {}, step_tokens},
    {"vllm:request_prefill_kv_computed_tokens", histogram, "Prompt tokens computed for a completion", {}, token_counts},
    {"dsv4_paused_readers_total", counter, "Times a reader that fell behind paused its completions", {}, {}},
}};

} // namespace

const MetricInfo& info(Metric metric) noexcept { return families[std::size_t(metric)]; }

} // namespace dsv4::engine
