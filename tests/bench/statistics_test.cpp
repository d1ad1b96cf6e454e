// Distributions against NumPy (tests/tools/bench_reference.py).
#include "bench/statistics.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace dsv4::bench;

TEST_CASE("distributions agree with NumPy") {
    std::ifstream file(DSV4_SOURCE_DIR "/tests/bench/data/reference.json");
    const auto cases = nlohmann::json::parse(file).at("percentiles");
    REQUIRE(cases.size() == 11);
    for (const auto& c : cases) {
        const auto values = c.at("values").get<std::vector<double>>();
        const Distribution d = distribution(values);
        INFO(values.size() << " values");
        CHECK(d.count == values.size());
        CHECK(d.p50 == c.at("p50").get<double>()); // a value of the set: equal, not close
        CHECK(d.p95 == c.at("p95").get<double>());
        CHECK(d.p99 == c.at("p99").get<double>());
        CHECK(d.min == c.at("min").get<double>());
        CHECK(d.max == c.at("max").get<double>());
        if (!(std::abs(d.mean - c.at("mean").get<double>()) <= 1e-9)) FAIL("mean " << d.mean);
    }
}

TEST_CASE("the rank is exact where a product of floats is not") {
    std::vector<double> hundred;
    for (int i = 1; i <= 100; ++i) hundred.push_back(i);
    for (unsigned p = 1; p <= 100; ++p) CHECK(percentile(hundred, p) == double(p));
    CHECK(percentile(hundred, 0) == 1.0);
}

TEST_CASE("no values make an empty distribution") { CHECK(distribution({}).count == 0); }
