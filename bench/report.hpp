// What a run is told as: a table for people and JSON for programs.
#pragma once

#include "bench/machine.hpp"
#include "bench/measures.hpp"

#include <string>
#include <vector>

namespace dsv4::bench {

// Everything about a run that is not measured.
struct Conditions {
    std::vector<std::string> command; // the arguments as given
    std::string url;
    std::string date;            // of the start, UTC
    std::string version, commit; // of this program
    Machine machine;             // that sent the load
    LoadSettings load;
    RequestSettings request;
    std::uint64_t warmup = 0;
    double request_timeout_s = 0;
};

// A table of up to 100 columns. Text that came from the server has its control characters replaced.
std::string table(const Conditions& conditions, const Run& run, const Measures& measures);

// The members of the object are described in docs/benchmarks.md; their meaning changes only with `version`.
std::string json_report(const Conditions& conditions, const Run& run, const Measures& measures);

} // namespace dsv4::bench
