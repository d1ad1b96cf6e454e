// The two loops as one state: the closed loop is a schedule in which every request is due at once.
#include "bench/load.hpp"

#include "dsv4/sdk/result.hpp"

#include <cmath>

namespace dsv4::bench {

void check(const LoadSettings& s) {
    if (!s.requests && !s.duration_s)
        throw Failure(Code::invalid, "the load has no end", "give a number of requests or a duration");
    if (s.requests && *s.requests == 0) throw Failure(Code::invalid, "the load has 0 requests", "ask for 1 or more");
    if (s.duration_s && !(*s.duration_s > 0 && *s.duration_s <= 1e7))
        throw Failure(Code::invalid, "the duration is not above 0 and at most 1e7 seconds");
    if (s.rate_per_s && !(*s.rate_per_s >= 1e-6 && *s.rate_per_s <= 1e6))
        throw Failure(Code::invalid, "the rate is not from 1e-6 to 1e6 requests a second");
    if (!s.rate_per_s && s.concurrency == 0)
        throw Failure(Code::invalid, "a closed loop needs a concurrency of 1 or more",
                      "raise the concurrency or give a rate");
}

PoissonArrivals::PoissonArrivals(double rate_per_s, std::uint64_t seed) : random_(seed), rate_per_s_(rate_per_s) {}

std::int64_t PoissonArrivals::next_us() {
    const double u = double(random_() >> 11) * 0x1p-53;
    at_s_ += -std::log1p(-u) / rate_per_s_;
    return std::int64_t(at_s_ * 1e6);
}

Schedule::Schedule(const LoadSettings& settings) : settings_(settings) {
    check(settings_);
    if (settings_.rate_per_s) arrivals_.emplace(*settings_.rate_per_s, settings_.seed);
    advance();
}

void Schedule::advance() {
    if (settings_.requests && started_ >= *settings_.requests) exhausted_ = true;
    if (exhausted_ || !arrivals_) return;
    due_us_ = arrivals_->next_us();
    if (settings_.duration_s && double(due_us_) >= *settings_.duration_s * 1e6) exhausted_ = true;
}

std::optional<Start> Schedule::take(std::int64_t now_us) {
    // Arrivals of an open loop within the duration start even when they had to wait past its end.
    if (!arrivals_ && settings_.duration_s && double(now_us) >= *settings_.duration_s * 1e6) exhausted_ = true;
    if (exhausted_ || full() || due_us_ > now_us) return {};
    Start start{started_, {}};
    if (arrivals_) start.scheduled_us = due_us_;
    ++started_;
    ++running_;
    advance();
    return start;
}

void Schedule::finished() { --running_; }

std::optional<std::int64_t> Schedule::next_us() const {
    if (exhausted_ || full()) return {};
    return due_us_;
}

} // namespace dsv4::bench
