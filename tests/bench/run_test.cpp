// Whole loads against a scripted server: counts, failures by kind and usage. Nothing here depends on how long it takes.
#include "bench/client.hpp"
#include "bench/measures.hpp"
#include "dsv4/sdk/result.hpp"
#include "tests/bench/scripted_server.hpp"
#include "tests/support/catch.hpp"

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

using namespace dsv4::bench;
using dsv4::test::Reply;
using dsv4::test::ScriptedServer;
using dsv4::test::streamed;
using dsv4::test::whole;

namespace {

const std::string word = "data: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\r\n\r\n";
const std::string usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":4}}\n\n";
const std::string done = "data: [DONE]\n\n";
const std::string good = ": hello\n\n" + word + word + word + usage + done;

Server at(const ScriptedServer& server) {
    Server s;
    s.url = parse_url("http://127.0.0.1:" + std::to_string(server.port()));
    return s;
}

RequestSettings asking(bool stream = true) {
    RequestSettings s;
    s.model = "m";
    s.random_words = 4;
    s.stream = stream;
    return s;
}

LoadSettings load(std::uint64_t concurrency, std::uint64_t requests) {
    LoadSettings s;
    s.concurrency = concurrency;
    s.requests = requests;
    return s;
}

Run run_with(ScriptedServer& server, std::uint64_t concurrency, std::uint64_t requests, bool stream = true) {
    return run_load(at(server), load(concurrency, requests), 0, Requests(asking(stream)), {});
}

// One request with that reply; its sample.
Sample one(Reply reply, bool stream = true) {
    ScriptedServer server([&](auto, auto&, auto&) { return reply; });
    const Run run = run_with(server, 1, 1, stream);
    REQUIRE(run.samples.size() == 1);
    return run.samples.front();
}

} // namespace

TEST_CASE("many requests at once, each asked once, over kept connections") {
    std::set<std::string> prompts;
    bool well_formed = true;
    ScriptedServer server([&](std::uint64_t number, const std::string& head, const std::string& body) {
        const auto json = nlohmann::json::parse(body);
        prompts.insert(json.at("messages").at(0).at("content").get<std::string>());
        well_formed = well_formed && head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n") &&
                      json.at("stream_options").at("include_usage") == true;
        return Reply{streamed(good, 1 + number % 40)};
    });
    std::uint64_t most_started = 0;
    const Run run = run_load(at(server), load(8, 300), 0, Requests(asking()),
                             [&](const Progress& p) { most_started = std::max(most_started, p.started); });
    const Measures m = measure(run);
    CHECK(m.answered == 300);
    CHECK(m.failed == 0);
    CHECK(prompts.size() == 300);
    CHECK(well_formed);
    CHECK(server.requests() == 300);
    CHECK(most_started == 300);
    CHECK(run.connections <= 8);
    CHECK(m.output_tokens == 1200u); // as reported, not the three events of each
    CHECK(m.prompt_tokens == 1500u);
    CHECK(m.itl_ms.count == 600);
    CHECK(m.ttft_ms.count == 300);
    CHECK(m.tpot_ms.count == 300);
    CHECK(m.e2e_ms.count == 300);
    CHECK(m.queue_ms.count == 0);
    CHECK(m.ttft_ms.min >= 0);
    CHECK(m.ttft_ms.min <= m.e2e_ms.max);
}

TEST_CASE("events count as tokens where no usage comes") {
    ScriptedServer server([&](auto, auto&, auto&) { return Reply{streamed(word + word + word + done, 9)}; });
    const Measures m = measure(run_with(server, 2, 10));
    CHECK(m.output_tokens == 30u);
    CHECK_FALSE(m.prompt_tokens);
    CHECK(m.with_usage == 0);
}

TEST_CASE("an open loop answers every arrival and tells how long each waited") {
    ScriptedServer server([&](auto, auto&, auto&) { return Reply{streamed(good, 50)}; });
    LoadSettings settings = load(0, 40);
    settings.rate_per_s = 5000;
    const Run run = run_load(at(server), settings, 0, Requests(asking()), {});
    const Measures m = measure(run);
    CHECK(m.answered == 40);
    CHECK(m.queue_ms.count == 40);
    CHECK(m.queue_ms.min >= 0); // none was sent before it was due
}

TEST_CASE("warm-up is asked, not measured, and asks other prompts") {
    std::set<std::string> prompts;
    ScriptedServer server([&](std::uint64_t number, const std::string&, const std::string& body) {
        prompts.insert(body);
        return number < 2 ? Reply{whole("500 Internal Server Error", "text/plain", "cold")} : Reply{streamed(good, 99)};
    });
    const Run run = run_load(at(server), load(1, 6), 3, Requests(asking()), {});
    CHECK(server.requests() == 9);
    CHECK(prompts.size() == 9);
    CHECK(run.warmup_requests == 3);
    CHECK(run.warmup_failures == 2);
    CHECK(measure(run).answered == 6);
    CHECK(measure(run).failed == 0);
}

TEST_CASE("answers without a stream") {
    const std::string body =
        R"({"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":2,"completion_tokens":9}})";
    ScriptedServer server([&](auto, auto&, const std::string& request) {
        return nlohmann::json::parse(request).at("stream") == false ? Reply{whole("200 OK", "application/json", body)}
                                                                    : Reply{"", true};
    });
    const Measures m = measure(run_with(server, 3, 12, false));
    CHECK(m.answered == 12);
    CHECK(m.output_tokens == 108u);
    CHECK(m.ttft_ms.count == 0);
    CHECK(m.e2e_ms.count == 12);
    CHECK(m.without_output == 0);
}

TEST_CASE("failures by kind") {
    const auto outcome = [](const Reply& reply) { return one(reply).outcome; };
    const Sample refused = one({whole("429 Too Many Requests", "application/json", R"({"error":{"message":"full"}})")});
    CHECK(refused.outcome == Outcome::http_status);
    CHECK(refused.http_status == 429);
    CHECK(refused.message == "full");
    CHECK(outcome({whole("204 No Content", "text/plain", "")}) == Outcome::http_status);
    CHECK(outcome({whole("503 No", "text/plain", std::string(1 << 20, 'x')), true}) == Outcome::http_status);
    CHECK(outcome({"", true}) == Outcome::connection);                                // closed unanswered
    CHECK(outcome({"HTTP/1.1 200 O", true}) == Outcome::connection);                  // in the head
    CHECK(outcome({streamed(good, 20).substr(0, 200), true}) == Outcome::connection); // in a chunk
    CHECK(outcome({"SMTP ready\r\n\r\n", true}) == Outcome::malformed);
    CHECK(outcome({"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                   true}) == Outcome::malformed);
    CHECK(outcome({whole("200 OK", "application/json", "{}")}) == Outcome::malformed); // no stream
    CHECK(outcome({streamed(word + word, 20)}) == Outcome::malformed);                 // no [DONE]
    CHECK(outcome({streamed(word + "data: {oops\n\n" + done, 20)}) == Outcome::malformed);
    CHECK(outcome({streamed(word + "data: {\"error\":{\"message\":\"m\"}}\n\n", 20)}) == Outcome::stream_error);
    CHECK(one({whole("200 OK", "application/json", "no JSON")}, false).outcome == Outcome::malformed);
}

TEST_CASE("failures are counted beside what was answered") {
    ScriptedServer server([&](std::uint64_t number, auto&, auto&) {
        switch (number % 4) {
        case 0: return Reply{whole("503 Service Unavailable", "text/plain", "busy")};
        case 1: return Reply{whole("400 Bad Request", "text/plain", "no")};
        default: return Reply{streamed(good, 30)};
        }
    });
    const Measures m = measure(run_with(server, 4, 80));
    CHECK(m.answered == 40);
    CHECK(m.failed == 40);
    CHECK(m.http_statuses == std::map<unsigned, std::uint64_t>{{400, 20}, {503, 20}});
    CHECK(m.output_tokens == 160u);
}

TEST_CASE("a stream that ends by closing, and one whose body goes on after [DONE]") {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n";
    CHECK(one({head + "Connection: close\r\n\r\n" + good, true}).outcome == Outcome::ok);
    CHECK(one({head + "Transfer-Encoding: chunked\r\n\r\n" + "e\r\n" + done + "\r\n"}).outcome == Outcome::ok);
}

TEST_CASE("a kept connection that the server closed is replaced, and the request asked again") {
    ScriptedServer server([&](auto, auto&, auto&) { return Reply{streamed(good, 50), true}; }); // unannounced
    const Run run = run_with(server, 1, 20);
    CHECK(measure(run).answered == 20);
    CHECK(server.requests() == 20);
    CHECK(run.connections == 20);
}

TEST_CASE("a server that does not answer times out") {
    ScriptedServer server([&](auto, auto&, auto&) { return Reply{"", false, true}; });
    Server silent = at(server);
    silent.request_timeout_s = 0.05;
    const Run run = run_load(silent, load(2, 4), 0, Requests(asking()), {});
    CHECK(measure(run).failures == std::map<Outcome, std::uint64_t>{{Outcome::timeout, 4}});
}

TEST_CASE("a server that is gone is not asked for ever") {
    ScriptedServer server([&](std::uint64_t number, auto&, auto&) {
        return number < 10 ? Reply{streamed(good, 50)} : Reply{"", true};
    });
    const Run run = run_with(server, 1, 5000);
    CHECK(run.gave_up);
    CHECK_FALSE(run.stopped_by_user);
    CHECK(measure(run).answered == 10);
    CHECK(measure(run).failed == 1001);
}

TEST_CASE("an interrupt ends the run with what was measured") {
    ScriptedServer server([&](std::uint64_t number, auto&, auto&) {
        return number < 5 ? Reply{streamed(good, 50)} : Reply{"", false, true};
    });
    bool raised = false;
    const Run run = run_load(at(server), load(3, 100), 0, Requests(asking()), [&](const Progress& p) {
        if (p.answered == 5 && !raised) raised = std::raise(SIGINT) == 0;
    });
    CHECK(run.stopped_by_user);
    const Measures m = measure(run);
    CHECK(m.answered == 5);
    CHECK(m.failed == 0);
    CHECK(m.interrupted >= 2);
    CHECK(m.interrupted <= 3);
}

TEST_CASE("a server that is not there") {
    std::uint16_t port;
    {
        ScriptedServer server([](auto, auto&, auto&) { return Reply{}; });
        port = server.port();
    }
    Server gone;
    gone.url = parse_url("http://127.0.0.1:" + std::to_string(port));
    try {
        run_load(gone, load(1, 1), 0, Requests(asking()), {});
        FAIL("it was reached");
    } catch (const dsv4::Failure& f) {
        CHECK(f.error().code == dsv4::Code::environment);
        CHECK_THAT(f.error().message, ContainsSubstring("127.0.0.1:" + std::to_string(port)));
    }
    CHECK_THROWS_AS(get_models(gone), dsv4::Failure);
}

TEST_CASE("the key and the prefix are sent; models are asked for") {
    std::string seen;
    ScriptedServer server([&](auto, const std::string& head, auto&) {
        seen = head;
        return Reply{whole("200 OK", "application/json", "{\"data\":[]}")};
    });
    Server s = at(server);
    s.url.prefix = "/api";
    s.api_key = "secret";
    CHECK(get_models(s) == "{\"data\":[]}");
    CHECK(seen.starts_with("GET /api/v1/models HTTP/1.1\r\n"));
    CHECK_THAT(seen, ContainsSubstring("Authorization: Bearer secret\r\n"));
    CHECK_THAT(seen, ContainsSubstring("Host: 127.0.0.1:" + std::to_string(server.port()) + "\r\n"));
}
