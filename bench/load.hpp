// When requests start: a closed loop keeps a number of them running, an open loop starts them at random times that do
// not depend on the answers. Pure: time is what the caller says it is.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

namespace dsv4::bench {

struct LoadSettings {
    std::optional<double> rate_per_s;      // set: open loop; from 1e-6 to 1e6
    std::uint64_t concurrency = 1;         // most requests at once; 0: no limit, open loop only
    std::optional<std::uint64_t> requests; // start no more than these
    std::optional<double> duration_s;      // start none from then on; one of the two is set
    std::uint64_t seed = 0;                // of the arrival times
};

// Throws Failure(invalid) where the settings contradict each other or are out of range.
void check(const LoadSettings& settings);

// Arrival times of a Poisson process: gaps of -ln(1 - u) / rate seconds, u = (x >> 11) / 2^53 for each x of
// std::mt19937_64(seed). The same seed gives the same times on every machine.
class PoissonArrivals {
  public:
    PoissonArrivals(double rate_per_s, std::uint64_t seed);
    std::int64_t next_us();

  private:
    std::mt19937_64 random_;
    double rate_per_s_;
    double at_s_ = 0;
};

struct Start {
    std::uint64_t index = 0;
    std::optional<std::int64_t> scheduled_us; // open loop: when it was due, since the start of the load
};

// The state of a load. Not thread safe.
class Schedule {
  public:
    explicit Schedule(const LoadSettings& settings);
    // A request that is due at `now_us` and may start; it counts as running from here. Call until there is none.
    std::optional<Start> take(std::int64_t now_us);
    // One running request has ended.
    void finished();
    // After take() found none: when to ask again, or nothing where only finished() can change the answer.
    std::optional<std::int64_t> next_us() const;
    // Every request was started and has ended.
    bool over() const { return exhausted_ && running_ == 0; }
    std::uint64_t started() const { return started_; }
    std::uint64_t running() const { return running_; }

  private:
    bool full() const { return settings_.concurrency != 0 && running_ >= settings_.concurrency; }
    void advance();

    LoadSettings settings_;
    std::optional<PoissonArrivals> arrivals_;
    std::int64_t due_us_ = 0;
    std::uint64_t started_ = 0;
    std::uint64_t running_ = 0;
    bool exhausted_ = false;
};

} // namespace dsv4::bench
