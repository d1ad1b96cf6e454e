// Metrics: identity by name and labels, bounds, and the text format.
#include "core/host/metrics.hpp"
#include "tests/support/catch.hpp"

#include <cmath>

using namespace dsv4::host;

TEST_CASE("the same name and labels give the same metric") {
    Metrics m;
    auto* a = m.metric(DSV4_METRIC_COUNTER, "dsv4_requests_total", "Requests.", {{"method", "chat"}, {"code", "200"}});
    REQUIRE(a);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "dsv4_requests_total", "Requests.", {{"code", "200"}, {"method", "chat"}}) ==
          a);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "dsv4_requests_total", "Requests.", {{"code", "400"}, {"method", "chat"}}) !=
          a);
    CHECK(m.metric(DSV4_METRIC_GAUGE, "dsv4_requests_total", "Requests.", {{"code", "200"}, {"method", "chat"}}) ==
          nullptr);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "dsv4_requests_total", "Requests.", {{"code", "200"}}) == nullptr);
}

TEST_CASE("values appear in the Prometheus text format") {
    Metrics m;
    auto* counter = m.metric(DSV4_METRIC_COUNTER, "dsv4_tokens_total", "Tokens.", {});
    Metrics::update(counter, 2);
    Metrics::update(counter, 3);
    Metrics::update(counter, -7);
    Metrics::update(counter, std::nan(""));
    Metrics::update(m.metric(DSV4_METRIC_GAUGE, "vllm:num_requests_running", "Running.", {{"model", "a\"b"}}), 4);
    auto* seconds = m.metric(DSV4_METRIC_HISTOGRAM, "dsv4_prefill_seconds", "Prefill.", {});
    Metrics::update(seconds, 0.03);
    Metrics::update(seconds, 1000);
    Metrics::update(nullptr, 1);
    const auto text = m.expose();
    for (const auto* line :
         {"# HELP dsv4_tokens_total Tokens.\n", "# TYPE dsv4_tokens_total counter\n", "\ndsv4_tokens_total 5\n",
          "\nvllm:num_requests_running{model=\"a\\\"b\"} 4\n", "dsv4_prefill_seconds_bucket{le=\"0.02\"} 0\n",
          "dsv4_prefill_seconds_bucket{le=\"0.05\"} 1\n", "dsv4_prefill_seconds_bucket{le=\"600\"} 1\n",
          "dsv4_prefill_seconds_bucket{le=\"+Inf\"} 2\n", "dsv4_prefill_seconds_count 2\n"}) {
        INFO(text);
        CHECK_THAT(text, ContainsSubstring(line));
    }
}

TEST_CASE("label sets are bounded and names are checked") {
    Metrics m;
    for (std::size_t i = 0; i < max_series_per_metric; ++i)
        REQUIRE(m.metric(DSV4_METRIC_COUNTER, "dsv4_by_user_total", "", {{"user", std::to_string(i)}}));
    CHECK(m.metric(DSV4_METRIC_COUNTER, "dsv4_by_user_total", "", {{"user", "one more"}}) == nullptr);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "dsv4_by_user_total", "", {{"user", "7"}}) != nullptr);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "with space", "", {}) == nullptr);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "", "", {}) == nullptr);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "9lives", "", {}) == nullptr);
    CHECK(m.metric(DSV4_METRIC_HISTOGRAM, "x_seconds", "", {{"le", "1"}}) == nullptr);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "x", "", {{"__name__", "1"}}) == nullptr);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "x", "", {{"a", "1"}, {"a", "2"}}) == nullptr);
    CHECK(m.metric(DSV4_METRIC_COUNTER, "x", "", {{"a", std::string(201, 'v')}}) == nullptr);
    CHECK(m.metric(9, "x", "", {}) == nullptr);
}
