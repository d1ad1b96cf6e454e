// Sends a load to a server over HTTP/1.1 and notes what came back when.
#pragma once

#include "bench/load.hpp"
#include "bench/prompts.hpp"
#include "bench/sample.hpp"
#include "bench/url.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dsv4::bench {

struct Server {
    Url url;
    std::string api_key; // empty: no Authorization header
    double connect_timeout_s = 10;
    double request_timeout_s = 600; // from the first byte sent to the last byte received
};

struct Progress {
    std::uint64_t started = 0, answered = 0, failed = 0;
    bool warming_up = false;
};

struct Run {
    std::vector<Sample> samples;       // of requests that ended, in that order; without warm-up
    std::uint64_t interrupted = 0;     // requests that still ran when the user ended the run
    std::uint64_t connections = 0;     // opened, warm-up and probe included
    std::uint64_t warmup_requests = 0; // that ended
    std::uint64_t warmup_failures = 0;
    std::int64_t elapsed_us = 0;  // from the start of the load to the end of its last request
    bool stopped_by_user = false; // by SIGINT or SIGTERM
    bool gave_up = false;         // as the server could not be reached any more
};

// Runs `warmup` requests in a closed loop of the same concurrency, then the load. Connections are kept and used again;
// a request that meets a kept connection which the server has closed in the meantime is sent once more on another.
// After 1000 failed connections in a row (and as many more as run at once) the run gives up. SIGINT and SIGTERM end the
// run early; a second one ends the process. Calls `progress` whenever a request starts or ends. One thread. Throws
// Failure(environment) where no connection can be made at the start.
Run run_load(const Server& server, const LoadSettings& load, std::uint64_t warmup, const Requests& requests,
             const std::function<void(const Progress&)>& progress);

// The body of GET /v1/models. Throws Failure(environment) where the server cannot be reached or answers otherwise.
std::string get_models(const Server& server);

} // namespace dsv4::bench
