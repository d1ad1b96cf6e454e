// From samples to the numbers of a report. The formulas are in docs/benchmarks.md.
#pragma once

#include "bench/client.hpp"
#include "bench/statistics.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dsv4::bench {

// Of one answered request. Times in milliseconds; nothing where the request does not have the quantity.
struct Latencies {
    std::optional<double> queue_ms; // open loop
    std::optional<double> ttft_ms;  // streams with output
    std::optional<double> tpot_ms;  // streams with output and two tokens or more
    double e2e_ms = 0;
    std::vector<double> itl_ms; // gaps between events that carried output
};
Latencies latencies(const Sample& sample);

// Usage where the server reported it, else the events that carried output, else (without a stream) nothing.
std::optional<std::uint64_t> output_tokens(const Sample& sample);

struct Measures {
    double elapsed_s = 0;
    std::uint64_t answered = 0, failed = 0, interrupted = 0;
    std::uint64_t without_output = 0;                // answered streams that carried no output
    std::map<unsigned, std::uint64_t> http_statuses; // failures by status
    std::map<Outcome, std::uint64_t> failures;       // by kind
    std::map<Outcome, std::string> first_message;
    // Sums over answered requests; nothing where one of them has no number.
    std::optional<std::uint64_t> prompt_tokens, output_tokens;
    std::uint64_t with_usage = 0; // answered requests with tokens that the server reported
    std::optional<double> requests_per_s, prompt_tokens_per_s, output_tokens_per_s; // nothing where no time passed
    Distribution queue_ms, ttft_ms, tpot_ms, itl_ms, e2e_ms, prompt_length_tokens, output_length_tokens;
};
Measures measure(const Run& run);

} // namespace dsv4::bench
