// Schedules with a clock that the test moves; arrivals against an independent generator.
#include "bench/load.hpp"
#include "dsv4/sdk/result.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

using namespace dsv4::bench;

namespace {

LoadSettings closed(std::uint64_t concurrency, std::uint64_t requests) {
    LoadSettings s;
    s.concurrency = concurrency;
    s.requests = requests;
    return s;
}

LoadSettings open(double rate_per_s, std::uint64_t seed) {
    LoadSettings s;
    s.concurrency = 0;
    s.rate_per_s = rate_per_s;
    s.seed = seed;
    return s;
}

std::uint64_t take_all(Schedule& schedule, std::int64_t now_us) {
    std::uint64_t n = 0;
    while (schedule.take(now_us)) ++n;
    return n;
}

} // namespace

TEST_CASE("arrivals agree with an independent generator") {
    std::ifstream file(DSV4_SOURCE_DIR "/tests/bench/data/reference.json");
    const auto cases = nlohmann::json::parse(file).at("arrivals");
    REQUIRE(cases.size() == 3);
    for (const auto& c : cases) {
        PoissonArrivals arrivals(c.at("rate_per_s").get<double>(), c.at("seed").get<std::uint64_t>());
        // The logarithms of two libraries may differ in their last bit.
        for (const auto& expected : c.at("us")) {
            const std::int64_t got = arrivals.next_us();
            if (!(std::abs(got - expected.get<std::int64_t>()) <= 1)) FAIL(got << " instead of " << expected);
        }
    }
}

TEST_CASE("the mean and the spread of the gaps are those of the rate") {
    PoissonArrivals arrivals(50, 3);
    constexpr int n = 100000;
    double sum = 0, squares = 0;
    std::int64_t last = 0;
    for (int i = 0; i < n; ++i) {
        const std::int64_t at = arrivals.next_us();
        const double gap = double(at - last) / 1e6;
        sum += gap, squares += gap * gap;
        last = at;
    }
    const double mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
    // Five standard errors: of the mean 0.02/sqrt(n), of the deviation of an exponential about sqrt(2) times that.
    CHECK(std::abs(mean - 0.02) <= 5 * 0.02 / std::sqrt(double(n)));
    CHECK(std::abs(deviation - 0.02) <= 8 * 0.02 / std::sqrt(double(n)));
}

TEST_CASE("a closed loop keeps its number running") {
    Schedule s(closed(3, 7));
    CHECK(take_all(s, 0) == 3);
    CHECK_FALSE(s.next_us());
    s.finished();
    s.finished();
    CHECK(take_all(s, 5) == 2);
    CHECK(s.running() == 3);
    for (int i = 0; i < 3; ++i) s.finished();
    const auto next = s.take(9);
    REQUIRE(next);
    CHECK(next->index == 5);
    CHECK_FALSE(next->scheduled_us);
    CHECK(take_all(s, 9) == 1);
    CHECK_FALSE(s.over());
    s.finished();
    CHECK_FALSE(s.over());
    s.finished();
    CHECK(s.over());
    CHECK(s.started() == 7);
}

TEST_CASE("a closed loop of a duration starts nothing from its end on") {
    LoadSettings settings;
    settings.concurrency = 1;
    settings.duration_s = 1;
    Schedule s(settings);
    CHECK(s.take(999999));
    CHECK_FALSE(s.take(999999));
    s.finished();
    CHECK_FALSE(s.take(1000000));
    CHECK(s.over());
}

TEST_CASE("an open loop starts at its arrivals whatever runs") {
    LoadSettings settings = open(100, 11);
    settings.duration_s = 2;
    PoissonArrivals arrivals(100, 11);
    Schedule s(settings);
    std::uint64_t n = 0;
    for (std::int64_t due = arrivals.next_us(); due < 2000000; due = arrivals.next_us(), ++n) {
        REQUIRE(s.next_us() == due);
        CHECK_FALSE(s.take(due - 1));
        const auto start = s.take(due);
        REQUIRE(start);
        CHECK(start->index == n);
        CHECK(start->scheduled_us == due);
    }
    CHECK(n > 100);
    CHECK_FALSE(s.take(10000000));
    CHECK(s.running() == n);
    while (n-- > 0) s.finished();
    CHECK(s.over());
}

TEST_CASE("an open loop with a limit starts late what had to wait, with its own time") {
    LoadSettings settings = open(1000, 5);
    settings.concurrency = 2;
    settings.duration_s = 0.1;
    Schedule s(settings);
    PoissonArrivals arrivals(1000, 5);
    std::vector<std::int64_t> due;
    for (std::int64_t at = arrivals.next_us(); at < 100000; at = arrivals.next_us()) due.push_back(at);
    REQUIRE(due.size() > 10);
    std::vector<std::int64_t> started;
    for (std::int64_t now = 1000000; !s.over(); now += 1000000) { // each takes a second: all wait past the end
        while (const auto start = s.take(now)) started.push_back(*start->scheduled_us);
        CHECK(s.running() <= 2);
        s.finished();
    }
    CHECK(started == due);
}

TEST_CASE("a number of requests ends an open loop") {
    LoadSettings settings = open(1000, 5);
    settings.requests = 4;
    Schedule s(settings);
    CHECK(take_all(s, 1000000000) == 4);
    CHECK_FALSE(s.next_us());
}

TEST_CASE("settings that make no load are refused") {
    const auto refused = [](LoadSettings s) { CHECK_THROWS_AS(check(s), dsv4::Failure); };
    refused({});           // no end
    refused(closed(0, 5)); // a closed loop of nobody
    refused(closed(1, 0));
    for (const double rate : {0.0, -1.0, 1e7, std::numeric_limits<double>::quiet_NaN()}) {
        LoadSettings s = open(rate, 0);
        s.requests = 1;
        refused(s);
    }
    for (const double seconds : {0.0, -1.0, 1e8, std::numeric_limits<double>::quiet_NaN()}) {
        LoadSettings s;
        s.duration_s = seconds;
        refused(s);
    }
    LoadSettings fine = open(1, 0);
    fine.requests = 1;
    CHECK_NOTHROW(check(fine));
}
