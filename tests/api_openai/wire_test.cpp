// Hostile and unlucky clients: malformed HTTP, oversized and endless requests, pipelining, disconnects.
#include "tests/api_openai/server_fixture.hpp"

#include <chrono>
#include <thread>

using namespace dsv4::test;
using nlohmann::json;

namespace {

Script quick() {
    Script s;
    s.events = {accepted(), text("ok"), finished()};
    return s;
}
// Says something and then stays silent until it is cancelled.
Script silent() {
    Script s;
    s.events = {accepted(), text("first")};
    s.never_ends = true;
    return s;
}

bool until(const std::function<bool()>& what, int timeout_ms = 3000) {
    for (int waited = 0; waited < timeout_ms; waited += 5) {
        if (what()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return what();
}

void small_timeouts(FakeHost& h) {
    h.options.values["header_timeout"] = 0.2;
    h.options.values["body_timeout"] = 0.2;
    h.options.values["idle_timeout"] = 0.3;
    h.options.values["max_body_bytes"] = std::int64_t{4096};
    h.options.values["max_header_bytes"] = std::int64_t{2048};
}

} // namespace

TEST_CASE("malformed HTTP gets an error or a closed connection, and harms nobody") {
    TestServer server(always(quick()), small_timeouts);
    const std::vector<std::string> requests = {
        "\r\n\r\n\r\n",
        "nonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET /health HTTP/9.9\r\n\r\n",
        "GET /health HTTP/1.1\r\nbad header\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost : t\r\n\r\n",
        std::string("GET /he\0alth HTTP/1.1\r\n\r\n", 26),
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 5x\r\n\r\nabcde",
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
        "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03hello tls",
        std::string(100000, 'A'),
    };
    for (const std::string& request : requests) {
        INFO(request.substr(0, 80));
        RawClient client(server.port);
        client.send(request);
        const std::string answer = client.read_all(1500);
        CHECK((answer.empty() || answer.starts_with("HTTP/1.1 4")));
        if (!answer.empty()) {
            const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
            CHECK(json::parse(body).at("error").at("type") == "invalid_request_error");
        }
    }
    CHECK(server.chat(chat_body()).status == 200);
    CHECK(server.service.seen().size() == 1);
}

TEST_CASE("limits on body and header") {
    TestServer server(always(quick()), small_timeouts);
    json body = chat_body();
    body["user"] = std::string(5000, 'x');
    const HttpAnswer large = server.chat(body);
    CHECK(large.status == 413);
    CHECK(large.json()["error"]["code"] == "request_too_large");
    // The same in chunks, whose sum is known only as they come.
    std::string chunked = "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < 10; ++i) chunked += "200\r\n" + std::string(512, ' ') + "\r\n";
    CHECK(ask(server.port, chunked + "0\r\n\r\n").status == 413);
    const HttpAnswer head =
        ask(server.port, "GET /health HTTP/1.1\r\nHost: t\r\nX-Pad: " + std::string(3000, 'x') + "\r\n\r\n");
    CHECK(head.status == 431);
    CHECK(server.chat(chat_body()).status == 200);
}

TEST_CASE("a chunked body is read, and 100-continue is answered") {
    TestServer server(always(quick()));
    const std::string body = chat_body().dump();
    const auto hex = [](std::size_t n) {
        char text[20];
        std::snprintf(text, sizeof text, "%zx", n);
        return std::string(text);
    };
    const std::string half = body.substr(0, 20), rest = body.substr(20);
    CHECK(ask(server.port, "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n" +
                               hex(half.size()) + "\r\n" + half + "\r\n" + hex(rest.size()) + ";x=y\r\n" + rest +
                               "\r\n0\r\n\r\n")
              .status == 200);
    RawClient client(server.port);
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n");
    CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(body);
    CHECK(read_answer(client).status == 200);
}

TEST_CASE("bad UTF-8 and bad JSON are the client's mistake") {
    TestServer server(always(quick()));
    for (const char* body : {"{\"messages\":[\"\xff\"]}", "{", "", "[]", "{\"messages\":[1e999]}"}) {
        const HttpAnswer a = ask_post(server.port, "/v1/chat/completions", body);
        CHECK(a.status == 400);
        CHECK(a.json()["error"]["type"] == "invalid_request_error");
    }
    CHECK(ask_post(server.port, "/tokenize", "{\"prompt\":\"\xc0\xaf\"}").status == 400);
}

TEST_CASE("bytes may come one by one, and requests back to back") {
    TestServer server(always(quick()));
    const std::string one = post("/v1/chat/completions", chat_body().dump());
    RawClient slow(server.port);
    for (const char c : one) slow.send(std::string_view(&c, 1));
    CHECK(read_answer(slow).status == 200);

    RawClient client(server.port);
    const std::string stream = post("/v1/chat/completions", chat_body(true).dump());
    client.send(one + stream + one + "GET /health HTTP/1.1\r\nHost: t\r\n\r\n" + stream);
    CHECK(read_answer(client).json()["choices"][0]["message"]["content"] == "ok");
    CHECK(chunks_of(read_answer(client).body).size() == 3);
    CHECK(read_answer(client).status == 200);
    CHECK(read_answer(client).json().at("status") == "ok");
    CHECK(chunks_of(read_answer(client).body).size() == 3);
}

TEST_CASE("HTTP/1.0 and Connection: close end the connection") {
    TestServer server(always(quick()));
    const std::string body = chat_body(true).dump();
    RawClient old(server.port);
    old.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
             body);
    const std::string all = old.read_all();
    CHECK(all.find("Transfer-Encoding") == std::string::npos);
    CHECK(all.ends_with("\n\ndata: [DONE]\n\n"));
    CHECK(chunks_of(all.substr(all.find("\r\n\r\n") + 4)).size() == 3);
    RawClient close(server.port);
    close.send("GET /health HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    CHECK(close.read_all().find("Connection: close") != std::string::npos);
}

TEST_CASE("silent clients are dropped: no request, half a header, half a body, nothing after an answer") {
    TestServer server(always(quick()), small_timeouts);
    RawClient nothing(server.port), half_head(server.port), half_body(server.port), idle(server.port);
    half_head.send("POST /v1/chat/comp");
    half_body.send("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 500\r\n\r\n{\"mess");
    idle.send("GET /health HTTP/1.1\r\nHost: t\r\n\r\n");
    CHECK(read_answer(idle).status == 200);
    CHECK(nothing.closed_by_peer());
    CHECK(half_head.closed_by_peer());
    CHECK(half_body.closed_by_peer());
    CHECK(idle.closed_by_peer());
    // One that sends a byte of its header now and then does not live longer.
    RawClient drip(server.port);
    const auto begin = std::chrono::steady_clock::now();
    drip.send("GET /health HTTP/1.1\r\nX: ");
    bool closed = false;
    for (int i = 0; i < 40 && !closed; ++i) {
        drip.send("a");
        closed = drip.closed_by_peer(50);
    }
    CHECK(closed);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
}

TEST_CASE("a client that goes away frees its request at once") {
    TestServer server(always(silent()));
    enum Way { close, reset, half_close };
    for (const bool stream : {false, true})
        for (const Way way : {close, reset, half_close}) {
            INFO(stream << " " << way);
            const std::uint64_t before = server.service.cancelled();
            RawClient client(server.port);
            client.send(post("/v1/chat/completions", chat_body(stream).dump()));
            if (stream) CHECK(client.read_until("first").ends_with("first"));
            REQUIRE(until([&] { return server.service.running() == 1; }));
            const auto begin = std::chrono::steady_clock::now();
            if (way == close) client.close();
            if (way == reset) client.reset();
            if (way == half_close) client.half_close();
            CHECK(server.service.wait_idle());
            CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(500));
            CHECK(server.service.cancelled() == before + 1);
        }
    CHECK(until([&] { return server.host.metric("dsv4_http_disconnects_total") == 6; }));
}

TEST_CASE("pipelined bytes do not hide that a client went away, nor count as going away") {
    TestServer server(always(silent()));
    RawClient client(server.port);
    const std::string request = post("/v1/chat/completions", chat_body(true).dump());
    client.send(request + request);
    CHECK(client.read_until("first").ends_with("first"));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    CHECK(server.service.running() == 1);
    CHECK(server.service.cancelled() == 0);
    client.reset();
    CHECK(server.service.wait_idle());
}

TEST_CASE("a half-closed client keeps its request where the option says so") {
    Script slow = quick();
    slow.gap_us = 150'000;
    TestServer server(always(slow), [](FakeHost& h) { h.options.values["ignore_half_close"] = true; });
    RawClient client(server.port);
    client.send(post("/v1/chat/completions", chat_body(true).dump()));
    client.half_close();
    CHECK(chunks_of(read_answer(client).body).size() == 3);
}

TEST_CASE("a silent stream carries comments, and its head comes without waiting for a token") {
    Script late = quick();
    late.first_us = 400'000;
    TestServer server(always(late), [](FakeHost& h) { h.options.values["sse_keepalive"] = 0.1; });
    const std::vector<std::string> events = events_of(server.chat(chat_body(true)).body);
    REQUIRE(events.size() >= 6);
    CHECK(events[0] == ": keep-alive");
    CHECK(events[1] == ": keep-alive");
    CHECK(events.back() == "[DONE]");
}

TEST_CASE("bodies of all connections together are limited") {
    TestServer server(always(quick()), [](FakeHost& h) {
        h.options.values["max_body_bytes"] = std::int64_t{256 * 1024};
        h.options.values["max_body_memory"] = std::int64_t{256 * 1024};
        h.options.values["body_timeout"] = 1.0;
    });
    const std::string head = "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n\r\n";
    RawClient first(server.port);
    first.send(head + std::string(190'000, ' '));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const HttpAnswer second = ask(server.port, head + std::string(199'999, ' ') + "x");
    CHECK(second.status == 503);
    first.close();
    CHECK(until([&] { return server.chat(chat_body()).status == 200; }));
}
