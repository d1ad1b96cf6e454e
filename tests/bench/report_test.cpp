// Measures of samples with known times, and the shape of both reports.
#include "bench/report.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace dsv4::bench;
using nlohmann::json;

namespace {

Sample answered(std::int64_t sent_us, std::vector<std::int64_t> outputs_us, std::int64_t end_us, std::uint64_t tokens) {
    Sample s;
    s.outcome = Outcome::ok;
    s.http_status = 200;
    s.streamed = true;
    s.sent_us = sent_us;
    s.outputs_us = std::move(outputs_us);
    s.end_us = end_us;
    s.usage = Usage{10, tokens};
    return s;
}

Sample failed(Outcome outcome, unsigned status, std::string message) {
    Sample s;
    s.outcome = outcome;
    s.http_status = status;
    s.message = std::move(message);
    return s;
}

Run example() {
    Run run;
    run.samples = {answered(0, {2000, 3000, 5000}, 6000, 5), answered(1000, {5000}, 5500, 1),
                   failed(Outcome::http_status, 503, "busy \033[31m\n"), failed(Outcome::timeout, 0, "\xff late")};
    run.samples[0].scheduled_us = 0;
    run.samples[1].scheduled_us = 250;
    run.interrupted = 2;
    run.connections = 3;
    run.elapsed_us = 2000000;
    run.stopped_by_user = true;
    return run;
}

Conditions conditions() {
    Conditions c;
    c.command = {"dsv4-bench-serve", "--url", "http://127.0.0.1:1"};
    c.url = "http://127.0.0.1:1";
    c.date = "2026-01-02T03:04:05Z";
    c.version = "9.8.7";
    c.commit = "abc";
    c.machine = {"a cpu", 6, "Linux 1"};
    c.load.rate_per_s = 2;
    c.load.concurrency = 0;
    c.load.duration_s = 2;
    c.load.seed = 17;
    c.request.model = "m";
    c.request.prompt = "p";
    c.request.max_tokens = 5;
    c.request.extra_body = R"({"ignore_eos":true})";
    c.request_timeout_s = 30;
    return c;
}

} // namespace

TEST_CASE("latencies are what the formulas say") {
    const Latencies l = latencies(answered(1000, {3000, 4000, 7500}, 9000, 4));
    CHECK(l.ttft_ms == 2.0);
    CHECK(l.e2e_ms == 8.0);
    CHECK(l.tpot_ms == 2.0); // (8 - 2) / (4 - 1)
    CHECK(l.itl_ms == std::vector<double>{1.0, 3.5});
    CHECK_FALSE(l.queue_ms);
    const Latencies single = latencies(answered(0, {500}, 600, 1));
    CHECK(single.ttft_ms == 0.5);
    CHECK_FALSE(single.tpot_ms);
    CHECK(single.itl_ms.empty());
    const Latencies silent = latencies(answered(0, {}, 600, 0));
    CHECK_FALSE(silent.ttft_ms);
    CHECK(silent.e2e_ms == 0.6);
    Sample counted = answered(0, {100, 200, 300}, 400, 0);
    counted.usage.reset();
    CHECK(output_tokens(counted) == 3u);
    counted.streamed = false;
    counted.outputs_us.clear();
    CHECK_FALSE(output_tokens(counted));
}

TEST_CASE("failures are in no distribution and no throughput") {
    const Measures m = measure(example());
    CHECK(m.answered == 2);
    CHECK(m.failed == 2);
    CHECK(m.e2e_ms.count == 2);
    CHECK(m.requests_per_s == 1.0);
    CHECK(m.output_tokens_per_s == 3.0);
    CHECK(m.prompt_tokens_per_s == 10.0);
    CHECK(m.queue_ms.max == 0.75);
    CHECK(m.ttft_ms.max == 4.0);
    CHECK(m.tpot_ms.count == 1);
    CHECK(m.tpot_ms.p50 == 1.0); // (6 - 2) / 4
}

TEST_CASE("the JSON report has every member that its version promises") {
    const json r = json::parse(json_report(conditions(), example(), measure(example())));
    CHECK(r.at("schema") == "dsv4.bench.serve");
    CHECK(r.at("version") == 1);
    CHECK(r.at("command") == json::parse(R"(["dsv4-bench-serve", "--url", "http://127.0.0.1:1"])"));
    CHECK(r.at("url") == "http://127.0.0.1:1");
    CHECK(r.at("endpoint") == "chat");
    CHECK(r.at("date") == "2026-01-02T03:04:05Z");
    CHECK(r.at("program") == json::parse(R"({"version": "9.8.7", "commit": "abc"})"));
    CHECK(r.at("client_machine") == json::parse(R"({"cpu": "a cpu", "cores": 6, "system": "Linux 1"})"));
    CHECK(r.at("load") == json::parse(R"({"kind": "open", "concurrency": null, "rate_per_s": 2.0, "arrivals": "poisson",
        "seed": 17, "requests": null, "duration_s": 2.0})"));
    CHECK(r.at("request") == json::parse(R"({"prompts": {"kind": "text", "text": "p"}, "stream": true,
        "include_usage": true, "max_tokens": 5, "temperature": null, "extra_body": {"ignore_eos": true},
        "timeout_s": 30.0})"));
    CHECK(r.at("requests") == json::parse(R"({"answered": 2, "failed": 2, "interrupted": 2, "without_output": 0})"));
    CHECK(r.at("stopped_by_user") == true);
    CHECK(r.at("gave_up") == false);
    CHECK(r.at("failures").at("http_status") == json::parse(R"({"503": 1})"));
    CHECK(r.at("failures").at("timeout") == 1);
    CHECK(r.at("failures").at("connection") == 0);
    CHECK(r.at("tokens") == json::parse(R"({"source": "usage", "prompt": 20, "output": 6})"));
    CHECK(r.at("throughput").at("output_tokens_per_s") == 3.0);
    CHECK(r.at("metrics").size() == 7);
    for (const auto& [name, metric] : r.at("metrics").items()) {
        INFO(name);
        CHECK(metric.size() == 7);
        for (const char* member : {"count", "mean", "min", "p50", "p95", "p99", "max"}) CHECK(metric.contains(member));
    }
    REQUIRE(r.at("samples").size() == 4);
    CHECK(r.at("samples")[0] == json::parse(R"({"index": 0, "outcome": "ok", "http_status": 200, "scheduled_ms": 0.0,
        "sent_ms": 0.0, "end_ms": 6.0, "ttft_ms": 2.0, "tpot_ms": 1.0, "prompt_tokens": 10, "output_tokens": 5,
        "output_events": 3})"));
    CHECK(r.at("samples")[3].at("outcome") == "timeout");
}

TEST_CASE("a run without answers has nulls, not zeros") {
    Run run;
    run.samples = {failed(Outcome::connection, 0, "refused")};
    run.elapsed_us = 1000;
    const json r = json::parse(json_report(conditions(), run, measure(run)));
    for (const auto& [name, metric] : r.at("metrics").items()) CHECK(metric.is_null());
    CHECK(r.at("tokens").at("source") == "none");
    CHECK(r.at("throughput").at("output_tokens_per_s").is_null());
    CHECK(r.at("throughput").at("requests_per_s") == 0.0);
}

TEST_CASE("the table shows the numbers and no control character of the server") {
    const std::string text = table(conditions(), example(), measure(example()));
    for (const char c : text) CHECK((static_cast<unsigned char>(c) >= ' ' || c == '\n'));
    CHECK_THAT(text, ContainsSubstring("2 answered, 2 failed, 2 interrupted in 2.00 s"));
    CHECK_THAT(text, ContainsSubstring("http_status 503 (1x): busy ?[31m?"));
    CHECK_THAT(text, ContainsSubstring(
                         "TTFT ms                  3.00        2.00        4.00        4.00        4.00         2"));
    CHECK_THAT(text, ContainsSubstring("queue ms"));
}
