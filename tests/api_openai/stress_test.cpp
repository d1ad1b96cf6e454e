// Many clients at once, slow ones, killed ones, and the end of the server.
#include "tests/api_openai/server_fixture.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

using namespace dsv4::test;
using nlohmann::json;

namespace {

constexpr auto ms = [](int n) { return std::chrono::milliseconds(n); };

Script paced(std::uint64_t tokens, std::uint64_t gap_us) {
    Script s;
    s.events = {accepted(), times(text("tok "), tokens), finished()};
    s.gap_us = gap_us;
    return s;
}

} // namespace

TEST_CASE("300 streams run side by side and all arrive whole") {
    TestServer server(always(paced(50, 10'000)), [](FakeHost& h) { h.options.values["io_threads"] = std::int64_t{2}; });
    std::vector<RawClient> clients;
    const std::string request = post("/v1/chat/completions", chat_body(true).dump());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 300; ++i) clients.emplace_back(server.port).send(request);
    std::size_t whole = 0;
    for (RawClient& client : clients) {
        const auto chunks = chunks_of(read_answer(client, 10'000).body);
        std::string all;
        for (const json& c : chunks) all += c["choices"][0]["delta"].value("content", "");
        whole += chunks.size() == 52 && all.size() == 200;
    }
    const auto took = std::chrono::steady_clock::now() - begin;
    CHECK(whole == 300);
    // A stream alone takes 0.52 s; one after the other they would take 156 s.
    CHECK(took < std::chrono::seconds(20));
    WARN("300 streams of 50 tokens at 100 tokens/s took "
         << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms");
    CHECK(server.service.wait_idle());
}

TEST_CASE("a slow reader pauses its own sequence and no other") {
    const std::uint64_t endless = 1'000'000'000;
    TestServer server(
        [&](const dsv4_generate_request& r) { return r.limits.max_tokens == 1 ? paced(20, 1000) : paced(endless, 0); },
        [](FakeHost& h) { h.options.values["send_timeout"] = 60.0; });
    RawClient slow(server.port);
    slow.send(post("/v1/chat/completions", chat_body(true).dump()));
    CHECK(slow.read_until("tok ").ends_with("tok "));
    // The socket's buffers fill; then nothing more is taken from the service.
    std::uint64_t taken = 0;
    for (int i = 0; i < 100 && taken != server.service.taken(); ++i) {
        taken = server.service.taken();
        std::this_thread::sleep_for(ms(100));
    }
    CHECK(taken == server.service.taken());
    CHECK(taken < 200'000);
    json other = chat_body(true);
    other["max_tokens"] = 1;
    const auto begin = std::chrono::steady_clock::now();
    CHECK(chunks_of(server.chat(other).body).size() == 22);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
    const std::uint64_t paused = server.service.taken();
    // Reading on lets it go on.
    for (int i = 0; i < 500 && server.service.taken() <= paused; ++i) slow.read_exactly(100'000);
    CHECK(server.service.taken() > paused);
    slow.close();
    CHECK(server.service.wait_idle());
}

TEST_CASE("a reader that takes nothing for too long is dropped") {
    TestServer server(always(paced(1'000'000'000, 0)), [](FakeHost& h) { h.options.values["send_timeout"] = 0.3; });
    RawClient slow(server.port);
    slow.shrink_receive_buffer();
    slow.send(post("/v1/chat/completions", chat_body(true).dump()));
    CHECK(slow.read_until("tok ").ends_with("tok "));
    for (int i = 0; i < 200 && server.service.running() > 0; ++i) std::this_thread::sleep_for(ms(20));
    CHECK(server.service.running() == 0);
    CHECK(server.host.metric("dsv4_http_slow_readers_total") == 1);
}

TEST_CASE("clients killed in every state leave nothing behind") {
    TestServer server(always(paced(40, 2000)), [](FakeHost& h) { h.options.values["io_threads"] = std::int64_t{2}; });
    const std::string stream = post("/v1/chat/completions", chat_body(true).dump());
    const std::string whole = post("/v1/chat/completions", chat_body(false).dump());
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (unsigned i = 0; i < 60; ++i) {
                RawClient client(server.port);
                const std::string& request = (i + t) % 2 ? stream : whole;
                // Cut the request itself short now and then.
                client.send(
                    std::string_view(request).substr(0, i % 5 == 0 ? request.size() * (i % 7) / 7 : request.size()));
                std::this_thread::sleep_for(std::chrono::microseconds((i * 7919 + t * 104729) % 30'000));
                if (i % 3 == 0)
                    client.reset();
                else
                    client.close();
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(server.service.wait_idle());
    CHECK(chunks_of(server.chat(chat_body(true)).body).size() == 42);
}

TEST_CASE("connections beyond the limit are answered 503") {
    TestServer server(always(paced(1, 0)), [](FakeHost& h) { h.options.values["max_connections"] = std::int64_t{3}; });
    std::vector<RawClient> open;
    for (int i = 0; i < 3; ++i) {
        open.emplace_back(server.port).send("GET /health HTTP/1.1\r\nHost: t\r\n\r\n");
        CHECK(read_answer(open.back()).status == 200);
    }
    RawClient fourth(server.port);
    const std::string refused = fourth.read_all();
    CHECK(refused.starts_with("HTTP/1.1 503"));
    CHECK(refused.find("Connection: close") != std::string::npos);
    open.clear();
    int status = 0;
    for (int i = 0; i < 100 && status != 200; ++i) {
        std::this_thread::sleep_for(ms(20));
        status = ask(server.port, "GET /health HTTP/1.1\r\nHost: t\r\n\r\n").status;
    }
    CHECK(status == 200);
}

TEST_CASE("a drain lets running requests end and turns new ones away") {
    TestServer server(always(paced(40, 10'000)));
    RawClient running(server.port), idle(server.port);
    running.send(post("/v1/chat/completions", chat_body(true).dump()));
    CHECK(running.read_until("tok ").ends_with("tok "));
    idle.send("GET /health HTTP/1.1\r\nHost: t\r\n\r\n");
    CHECK(read_answer(idle).status == 200);
    auto drained = std::async(std::launch::async, [&] { server.api->drain(5'000'000); });
    std::this_thread::sleep_for(ms(50));
    idle.send(post("/v1/chat/completions", chat_body().dump()));
    const HttpAnswer refused = read_answer(idle);
    CHECK(refused.status == 503);
    CHECK(refused.json()["error"]["code"] == "service_unavailable");
    CHECK(idle.closed_by_peer());
    CHECK(ask(server.port, "GET /health HTTP/1.1\r\nHost: t\r\n\r\n").json() == json({{"status", "draining"}}));
    const std::string rest = running.read_until("[DONE]\n\n");
    CHECK(rest.find("data: [DONE]\n\n") != std::string::npos);
    drained.get();
    CHECK(server.service.running() == 0);
    CHECK(server.service.cancelled() == 0);
}

TEST_CASE("a drain past its deadline cancels, and the stream says so") {
    Script endless = paced(1, 0);
    endless.events.pop_back();
    endless.never_ends = true;
    TestServer server(always(endless));
    RawClient stream(server.port), whole(server.port);
    stream.send(post("/v1/chat/completions", chat_body(true).dump()));
    CHECK(stream.read_until("tok ").ends_with("tok "));
    whole.send(post("/v1/chat/completions", chat_body().dump()));
    for (int i = 0; i < 100 && server.service.running() < 2; ++i) std::this_thread::sleep_for(ms(10));
    const auto begin = std::chrono::steady_clock::now();
    server.api->drain(200'000);
    CHECK(std::chrono::steady_clock::now() - begin > ms(150));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
    CHECK(server.service.running() == 0);
    const std::string rest = stream.read_all();
    CHECK(rest.find("service_unavailable") != std::string::npos);
    CHECK(rest.find("[DONE]") == std::string::npos);
    CHECK(read_answer(whole).status == 503);
}

TEST_CASE("stop closes everything while streams run, and no call follows") {
    for (int round = 0; round < 5; ++round) {
        TestServer server(always(paced(1'000'000, 500)));
        std::vector<RawClient> clients;
        const std::string request = post("/v1/chat/completions", chat_body(true).dump());
        for (int i = 0; i < 20; ++i) clients.emplace_back(server.port).send(request);
        std::this_thread::sleep_for(ms(10 * round));
        server.api->stop();
        CHECK(server.service.running() == 0);
        const std::uint64_t taken = server.service.taken();
        for (RawClient& client : clients) CHECK(client.closed_by_peer());
        CHECK(taken == server.service.taken());
    }
}

TEST_CASE("the port is taken: an error that says where") {
    TestServer server(always(paced(1, 0)));
    FakeHost host(nullptr);
    host.options.values["port"] = std::int64_t{server.port};
    LoadedApi second(host);
    CHECK_THROWS_WITH(second.start(), ContainsSubstring("cannot listen on 127.0.0.1:" + std::to_string(server.port)));
}
