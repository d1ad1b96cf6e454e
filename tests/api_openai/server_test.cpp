// The running server over real sockets: answers, streams, errors and headers.
#include "tests/api_openai/server_fixture.hpp"

#include <cmath>

using namespace dsv4::test;
using nlohmann::json;

namespace {

Script hello() {
    Script s;
    s.events = {accepted(), text("think", DSV4_DELTA_REASONING), text("Hel"), text("lo \"w\"\n"), finished()};
    return s;
}

Script tools() {
    Script s;
    s.events = {accepted(),
                text("look", DSV4_DELTA_REASONING),
                tool_begin(0, "get_tide"),
                tool_arguments(0, "{\"harbour\": \"Fa"),
                tool_arguments(0, "ro\"}"),
                tool_begin(1, "get_time"),
                tool_arguments(1, "{}"),
                finished(DSV4_REASON_TOOL_CALLS)};
    return s;
}

void check_usage(const json& usage) {
    CHECK(usage.at("prompt_tokens") == 10);
    CHECK(usage.at("completion_tokens") == 3);
    CHECK(usage.at("total_tokens") == 13);
    CHECK(usage.at("prompt_tokens_details").at("cached_tokens") == 8);
    CHECK(usage.at("completion_tokens_details").at("reasoning_tokens") == 1);
    CHECK(usage.at("completion_tokens_details").at("accepted_prediction_tokens") == 2);
    CHECK(usage.at("completion_tokens_details").at("rejected_prediction_tokens") == 3);
    CHECK(usage.at("prompt_cache_hit_tokens") == 8);
    CHECK(usage.at("prompt_cache_miss_tokens") == 2);
}

} // namespace

TEST_CASE("a chat completion in one piece") {
    TestServer server(always(hello()));
    const HttpAnswer a = server.chat(chat_body(), "X-Request-Id: abc-1\r\n");
    CHECK(a.status == 200);
    CHECK(a.header("Content-Type") == "application/json");
    CHECK(a.header("X-Request-Id") == "abc-1");
    CHECK(a.header("Server-Timing") == "queue;dur=1.500, prefill;dur=20.000, decode;dur=300.000");
    const json j = a.json();
    CHECK(j.at("id") == "chatcmpl-abc-1");
    CHECK(j.at("object") == "chat.completion");
    CHECK(j.at("created") == 1785000000);
    CHECK(j.at("model") == "tiny");
    REQUIRE(j.at("choices").size() == 1);
    const json& choice = j["choices"][0];
    CHECK(choice.at("index") == 0);
    CHECK(choice.at("message") == json({{"role", "assistant"},
                                        {"content", "Hello \"w\"\n"},
                                        {"reasoning_content", "think"},
                                        {"reasoning", "think"}}));
    CHECK(choice.at("finish_reason") == "stop");
    CHECK(choice.at("stop_reason").is_null());
    CHECK(choice.at("logprobs").is_null());
    check_usage(j.at("usage"));
    CHECK(server.service.wait_idle());
    CHECK(server.service.seen().at(0).request_id == "abc-1");
}

TEST_CASE("a chat completion as a stream: one event a delta") {
    TestServer server(always(hello()));
    json body = chat_body(true);
    body["stream_options"] = {{"include_usage", true}};
    const HttpAnswer a = server.chat(body);
    CHECK(a.status == 200);
    CHECK(a.header("Content-Type") == "text/event-stream; charset=utf-8");
    CHECK(a.header("Cache-Control") == "no-cache");
    CHECK(a.header("X-Accel-Buffering") == "no");
    const auto chunks = chunks_of(a.body);
    REQUIRE(chunks.size() == 6);
    for (const json& c : chunks) {
        CHECK(c.at("object") == "chat.completion.chunk");
        CHECK(c.at("id") == chunks[0].at("id"));
        CHECK(c.at("created") == 1785000000);
        CHECK(c.at("model") == "tiny");
    }
    const auto delta = [&](std::size_t i) { return chunks[i].at("choices").at(0).at("delta"); };
    CHECK(delta(0) == json({{"role", "assistant"}, {"content", ""}}));
    CHECK(delta(1) == json({{"reasoning_content", "think"}, {"reasoning", "think"}}));
    CHECK(delta(2) == json({{"content", "Hel"}}));
    CHECK(delta(3) == json({{"content", "lo \"w\"\n"}}));
    CHECK(delta(4) == json::object());
    for (std::size_t i = 0; i < 4; ++i) CHECK(chunks[i]["choices"][0].at("finish_reason").is_null());
    CHECK(chunks[4]["choices"][0].at("finish_reason") == "stop");
    for (std::size_t i = 0; i < 5; ++i) CHECK(chunks[i].at("usage").is_null());
    CHECK(chunks[5].at("choices").empty());
    check_usage(chunks[5].at("usage"));
}

TEST_CASE("without include_usage no chunk speaks of usage") {
    TestServer server(always(hello()));
    for (const json& c : chunks_of(server.chat(chat_body(true)).body)) CHECK(!c.contains("usage"));
}

TEST_CASE("tool calls, streamed and not") {
    TestServer server(always(tools()));
    const json whole = server.chat(chat_body()).json().at("choices").at(0);
    CHECK(whole.at("finish_reason") == "tool_calls");
    const json& message = whole.at("message");
    CHECK(message.at("content").is_null());
    REQUIRE(message.at("tool_calls").size() == 2);
    CHECK(message["tool_calls"][0].at("function") ==
          json({{"name", "get_tide"}, {"arguments", "{\"harbour\": \"Faro\"}"}}));
    CHECK(message["tool_calls"][1].at("function") == json({{"name", "get_time"}, {"arguments", "{}"}}));
    CHECK(message["tool_calls"][0].at("type") == "function");
    CHECK(message["tool_calls"][0].at("id").get<std::string>().size() == 29);
    CHECK(message["tool_calls"][0].at("id") != message["tool_calls"][1].at("id"));

    const auto chunks = chunks_of(server.chat(chat_body(true)).body);
    REQUIRE(chunks.size() == 8);
    const auto call = [&](std::size_t i) { return chunks[i]["choices"][0]["delta"].at("tool_calls").at(0); };
    CHECK(call(2).at("index") == 0);
    CHECK(call(2).at("function") == json({{"name", "get_tide"}, {"arguments", ""}}));
    CHECK(call(2).at("id").get<std::string>().starts_with("call_"));
    CHECK(call(3) == json({{"index", 0}, {"function", {{"arguments", "{\"harbour\": \"Fa"}}}}));
    CHECK(call(4) == json({{"index", 0}, {"function", {{"arguments", "ro\"}"}}}}));
    CHECK(call(5).at("index") == 1);
    CHECK(call(6) == json({{"index", 1}, {"function", {{"arguments", "{}"}}}}));
    CHECK(chunks[7]["choices"][0].at("finish_reason") == "tool_calls");
}

TEST_CASE("parallel_tool_calls false keeps the first call and stops the rest") {
    Script script = tools();
    script.events.insert(script.events.end() - 1, times(tool_arguments(1, "x"), 1'000'000));
    TestServer server(always(script));
    for (const bool stream : {false, true}) {
        json body = chat_body(stream);
        body["parallel_tool_calls"] = false;
        const HttpAnswer a = server.chat(body);
        if (stream) {
            const auto chunks = chunks_of(a.body);
            REQUIRE(chunks.size() == 6);
            CHECK(chunks[5]["choices"][0].at("finish_reason") == "tool_calls");
        } else {
            CHECK(a.json()["choices"][0]["message"]["tool_calls"].size() == 1);
            CHECK(a.json()["choices"][0]["finish_reason"] == "tool_calls");
        }
    }
    CHECK(server.service.cancelled() == 2);
    CHECK(server.service.wait_idle());
}

TEST_CASE("reasoning: fields, left out, or in the content") {
    SECTION("one field") {
        TestServer server(always(hello()),
                          [](FakeHost& h) { h.options.values["reasoning_field"] = std::string("reasoning"); });
        const json m = server.chat(chat_body()).json()["choices"][0]["message"];
        CHECK(m.at("reasoning") == "think");
        CHECK(!m.contains("reasoning_content"));
        const auto chunks = chunks_of(server.chat(chat_body(true)).body);
        CHECK(chunks.at(1)["choices"][0]["delta"] == json({{"reasoning", "think"}}));
    }
    SECTION("left out") {
        TestServer server(always(hello()));
        json body = chat_body();
        body["include_reasoning"] = false;
        CHECK(server.chat(body).json()["choices"][0]["message"] ==
              json({{"role", "assistant"}, {"content", "Hello \"w\"\n"}}));
    }
    SECTION("in the content") {
        TestServer server(always(hello()));
        json body = chat_body();
        body["separate_reasoning"] = false;
        CHECK(server.chat(body).json()["choices"][0]["message"]["content"] == "<think>think</think>Hello \"w\"\n");
        body["stream"] = true;
        std::string content;
        for (const json& c : chunks_of(server.chat(body).body))
            content += c["choices"][0]["delta"].value("content", "");
        CHECK(content == "<think>think</think>Hello \"w\"\n");
    }
}

TEST_CASE("logprobs of a chat belong to content or reasoning; markup has none") {
    Script script = hello();
    FakeToken control;
    control.id = 259;
    control.part = 0;
    control.is_control = true;
    script.events[1].tokens.push_back(control);
    TestServer server(always(script));
    json body = chat_body();
    body["logprobs"] = true;
    body["top_logprobs"] = 2;
    const json logprobs = server.chat(body).json()["choices"][0].at("logprobs");
    REQUIRE(logprobs.at("content").size() == 2);
    REQUIRE(logprobs.at("reasoning_content").size() == 1);
    const json& first = logprobs["content"][0];
    CHECK(first.at("token") == "Hel");
    CHECK(first.at("logprob") == -0.5);
    CHECK(first.at("bytes") == json({72, 101, 108}));
    REQUIRE(first.at("top_logprobs").size() == 2);
    CHECK(first["top_logprobs"][1] == json({{"token", "B"}, {"logprob", -1.25}, {"bytes", {66}}}));
    body["stream"] = true;
    std::size_t content = 0, reasoning = 0;
    for (const json& c : chunks_of(server.chat(body).body)) {
        const json& l = c["choices"][0]["logprobs"];
        if (l.is_null()) continue;
        content += l.at("content").size();
        if (l.contains("reasoning_content")) reasoning += l["reasoning_content"].size();
    }
    CHECK(content == 2);
    CHECK(reasoning == 1);
}

TEST_CASE("text completions: several prompts, legacy logprobs, streams") {
    const auto play = [](const dsv4_generate_request& r) {
        Script s;
        s.events = {accepted(4, 0)};
        for (std::uint32_t i = 0; i < r.n; ++i) {
            FakeEvent e = text("é" + std::string(r.prompt_text.data, r.prompt_text.size), DSV4_DELTA_CONTENT, i);
            s.events.push_back(e);
            s.events.push_back(text("!", DSV4_DELTA_CONTENT, i));
        }
        for (std::uint32_t i = 0; i < r.n; ++i) s.events.push_back(finished(DSV4_REASON_LENGTH, i));
        return s;
    };
    TestServer server(play);
    const std::string body = R"({"prompt":["a","b"],"n":2,"logprobs":1,"return_token_ids":true)";
    const json j = ask_post(server.port, "/v1/completions", body + "}").json();
    CHECK(j.at("object") == "text_completion");
    CHECK(j.at("id").get<std::string>().starts_with("cmpl-"));
    REQUIRE(j.at("choices").size() == 4);
    const char* expected[] = {"éa!", "éa!", "éb!", "éb!"};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(j["choices"][i].at("index") == i);
        CHECK(j["choices"][i].at("text") == expected[i]);
        CHECK(j["choices"][i].at("finish_reason") == "length");
        const json& l = j["choices"][i].at("logprobs");
        CHECK(l.at("tokens") == json({std::string("é") + (i < 2 ? "a" : "b"), "!"}));
        CHECK(l.at("token_logprobs") == json({-0.5, -0.5}));
        CHECK(l.at("text_offset") == json({0, 2}));
        CHECK(l.at("top_logprobs")[0] == json({{"A", -0.5}, {"B", -1.25}}));
        CHECK(j["choices"][i].at("token_ids") == json({65, 65}));
    }
    // FINISHED reports 10 prompt tokens a prompt and 3 generated a choice.
    CHECK(j.at("usage").at("prompt_tokens") == 20);
    CHECK(j.at("usage").at("completion_tokens") == 12);

    std::map<std::size_t, std::string> texts;
    std::map<std::size_t, int> endings;
    for (const json& c : chunks_of(ask_post(server.port, "/v1/completions", body + R"(,"stream":true})").body)) {
        const json& choice = c.at("choices").at(0);
        texts[choice.at("index")] += choice.at("text");
        endings[choice.at("index")] += choice.at("finish_reason") == "length";
    }
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(texts[i] == expected[i]);
        CHECK(endings[i] == 1);
    }
}

TEST_CASE("usage in every chunk where that is asked for") {
    TestServer server(always(hello()));
    json body = chat_body(true);
    body["stream_options"] = {{"continuous_usage_stats", true}};
    const auto chunks = chunks_of(server.chat(body).body);
    CHECK(chunks.at(1).at("usage").at("completion_tokens") == 1);
    CHECK(chunks.at(2).at("usage").at("completion_tokens") == 2);
    CHECK(chunks.at(2).at("usage").at("prompt_tokens") == 10);
}

TEST_CASE("stop reasons and lengths") {
    Script s = hello();
    s.events.back().stop = "END";
    TestServer server(always(s));
    const json choice = server.chat(chat_body()).json()["choices"][0];
    CHECK(choice.at("finish_reason") == "stop");
    CHECK(choice.at("stop_reason") == "END");
    s.events.back() = finished(DSV4_REASON_LENGTH);
    server.service.set_play(always(s));
    CHECK(server.chat(chat_body()).json()["choices"][0].at("finish_reason") == "length");
}

TEST_CASE("errors of the service have their status") {
    struct Case {
        std::int32_t code;
        const char* message;
        int status;
        json error_code, param;
    };
    const std::vector<Case> cases = {
        {DSV4_INVALID, "messages[2].content: must be a string", 400, nullptr, "messages"},
        {DSV4_INVALID, "This model's maximum context length is 4096 tokens. However, your prompt has 5000 tokens.", 400,
         "context_length_exceeded", nullptr},
        {DSV4_UNSUPPORTED, "grammar: not offered", 400, "unsupported_parameter", "grammar"},
        {DSV4_EXHAUSTED, "the queue is full", 429, "rate_limit_exceeded", nullptr},
        {DSV4_ENVIRONMENT, "the engine is loading", 503, "service_unavailable", nullptr},
        {DSV4_INTERNAL, "secret detail of the engine", 500, "internal_error", nullptr},
    };
    TestServer server(always(hello()));
    for (const Case& c : cases)
        for (const int when : {0, 1, 2}) { // at submit, as first event, as first event of a stream
            INFO(c.message << " " << when);
            Script s;
            s.refuse_code = when == 0 ? c.code : 0;
            s.refuse_message = c.message;
            s.events = {failed(c.code, c.message)};
            server.service.set_play(always(s));
            const HttpAnswer a = server.chat(chat_body(when == 2));
            CHECK(a.status == c.status);
            const json e = a.json().at("error");
            CHECK(e.at("code") == c.error_code);
            CHECK(e.at("param") == c.param);
            CHECK(e.at("status") == c.status);
            if (c.status == 500) CHECK(a.body.find("secret") == std::string::npos);
            CHECK(a.header("Retry-After") == (c.status == 429 || c.status == 503 ? "1" : ""));
            if (c.error_code == "context_length_exceeded") {
                CHECK(e.at("n_ctx") == 4096);
                CHECK(e.at("n_prompt_tokens") == 5000);
            }
        }
    CHECK(server.service.wait_idle());
}

TEST_CASE("an error after the stream began is an event, and no [DONE] follows") {
    Script s;
    s.events = {accepted(), text("par"), failed(DSV4_INTERNAL, "lost")};
    s.gap_us = 30'000;
    TestServer server(always(s));
    RawClient client(server.port);
    client.send(post("/v1/chat/completions", chat_body(true).dump()));
    const std::string all = client.read_all();
    CHECK(all.starts_with("HTTP/1.1 200"));
    CHECK(all.find("\"par\"") != std::string::npos);
    CHECK(all.find("data: {\"error\":{") != std::string::npos);
    CHECK(all.find("[DONE]") == std::string::npos);
    CHECK(all.find("\r\n0\r\n") == std::string::npos);
}

TEST_CASE("routes, methods, media types, paths") {
    TestServer server(always(hello()));
    const auto get = [&](std::string_view path, std::string_view method = "GET") {
        return ask(server.port, std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n\r\n");
    };
    const json list = get("/v1/models").json();
    CHECK(list.at("object") == "list");
    CHECK(list.at("data").at(0).at("id") == "tiny");
    CHECK(list["data"][0].at("max_model_len") == 4096);
    CHECK(get("/v1/models/tiny").json().at("object") == "model");
    CHECK(get("/v1/models/no%2Fne").status == 404);
    CHECK(get("/v1/models/none").json()["error"]["code"] == "model_not_found");
    CHECK(get("/health").json() == json({{"status", "ok"}}));
    CHECK(get("/ready").status == 200);
    CHECK(get("/ping").status == 200);
    CHECK(get("/version").json().at("version") == "1.0.0");
    CHECK(get("/load").json() == json({{"server_load", 3}}));
    CHECK(get("/metrics").body == "# TYPE a gauge\na 1\n");
    CHECK(get("/nothing").status == 404);
    CHECK(get("/v1/chat/completions").status == 405);
    CHECK(get("/v1/chat/completions").header("Allow") == "POST");
    CHECK(get("/health", "DELETE").status == 405);
    CHECK(get("/health", "BREW").status == 405);
    RawClient head(server.port);
    head.send("HEAD /health HTTP/1.1\r\nHost: t\r\n\r\nGET /health HTTP/1.1\r\nHost: t\r\n\r\n");
    CHECK(head.read_until("\r\n\r\n").find("Content-Length: 15") != std::string::npos);
    CHECK(head.read_until("\r\n\r\n").starts_with("HTTP/1.1 200"));
    server.service.ready = false;
    CHECK(get("/health").status == 503);
    CHECK(get("/health").json() == json({{"status", "loading"}}));
    server.service.ready = true;

    const std::string body = chat_body().dump();
    const auto typed = [&](const std::string& header) {
        return ask(server.port, "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\n" + header +
                                    "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body)
            .status;
    };
    CHECK(typed("") == 200);
    CHECK(typed("Content-Type: Application/JSON; charset=utf-8\r\n") == 200);
    CHECK(typed("Content-Type: text/plain\r\n") == 415);
    CHECK(typed("Content-Encoding: gzip\r\n") == 415);
    CHECK(ask_post(server.port, "/chat/completions", body).status == 200);
    CHECK(ask_post(server.port, "/beta/chat/completions?a=b", body).status == 200);
    CHECK(server.chat({{"model", "gpt-4"}, {"messages", json::array()}}).status == 404);
    CHECK(server.host.metric("dsv4_http_requests_total{route=chat_completions,status=200}") >= 4);
}

TEST_CASE("tokens") {
    TestServer server(always(hello()));
    const json t = ask_post(server.port, "/tokenize", R"({"prompt":"a<think>b","return_token_strs":true})").json();
    CHECK(t.at("tokens") == json({256, 97, 258, 98}));
    CHECK(t.at("count") == 4);
    CHECK(t.at("max_model_len") == 4096);
    CHECK(t.at("token_strs") == json({"<｜begin▁of▁sentence｜>", "a", "<think>", "b"}));
    const json plain =
        ask_post(server.port, "/v1/tokenize", R"({"prompt":"<think","add_special_tokens":false,"parse_special":false})")
            .json();
    CHECK(plain.at("count") == 6);
    CHECK(ask_post(server.port, "/tokenize", R"({"content":"ab"})").json().at("tokens") == json({97, 98}));
    const json pieces = ask_post(server.port, "/tokenize", R"({"content":"a","with_pieces":true})").json();
    CHECK(pieces.at("tokens") == json::array({{{"id", 97}, {"piece", "a"}}}));
    const json chat = ask_post(server.port, "/tokenize", R"({"messages":[1]})").json();
    CHECK(chat.at("count") == 3);
    const json d = ask_post(server.port, "/detokenize", R"({"tokens":[97,258,98,255]})").json();
    CHECK(d.at("prompt") == "a<think>b\uFFFD");
    CHECK(ask_post(server.port, "/detokenize", R"({"tokens":[261]})").status == 400);
    CHECK(ask_post(server.port, "/tokenize", "{}").status == 400);
    const json r = ask_post(server.port, "/v1/chat/completions/render", R"({"messages":[1]})").json();
    CHECK(r.at("prompt") == "[1]");
    CHECK(r.at("prompt_token_ids") == json({91, 49, 93}));
}

TEST_CASE("keys guard everything but health") {
    TestServer server(always(hello()), [](FakeHost& h) {
        h.secrets["env:KEYS"] = "key-one-123\n key-two-456 \n";
        h.options.values["api_key"] = std::string("env:KEYS");
        h.options.values["cache_salt"] = std::string("api_key");
    });
    CHECK(server.chat(chat_body()).status == 401);
    CHECK(server.chat(chat_body()).header("WWW-Authenticate") == "Bearer");
    CHECK(server.chat(chat_body()).json()["error"]["code"] == "invalid_api_key");
    CHECK(server.chat(chat_body(), "Authorization: Bearer key-one-124\r\n").status == 401);
    CHECK(server.chat(chat_body(), "Authorization: Basic key-one-123\r\n").status == 401);
    CHECK(server.chat(chat_body(), "Authorization: Bearer \r\n").status == 401);
    CHECK(server.chat(chat_body(), "Authorization: Bearer key-one-123\r\n").status == 200);
    CHECK(server.chat(chat_body(), "authorization: bearer key-two-456\r\n").status == 200);
    CHECK(server.chat(chat_body(), "x-api-key: key-two-456\r\n").status == 200);
    CHECK(server.service.seen().at(0).cache_salt != server.service.seen().at(1).cache_salt);
    CHECK(server.service.seen().at(1).cache_salt == server.service.seen().at(2).cache_salt);
    const auto get = [&](std::string_view path) {
        return ask(server.port, "GET " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n\r\n").status;
    };
    CHECK(get("/health") == 200);
    CHECK(get("/metrics") == 401);
    CHECK(get("/v1/models") == 401);
    CHECK(get("/nothing") == 401);
}

TEST_CASE("browsers of other origins: off, listed, any") {
    const std::string origin = "Origin: https://a.example\r\n";
    const std::string preflight = "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: t\r\n" + origin + "\r\n";
    {
        TestServer server(always(hello()));
        CHECK(server.chat(chat_body(), origin).header("Access-Control-Allow-Origin").empty());
        CHECK(server.chat(chat_body(), origin).status == 403);
        CHECK(server.chat(chat_body(), "Origin: null\r\n").status == 403);
        CHECK(server.chat(chat_body(), "Origin: http://test\r\n").status == 200);
        CHECK(ask(server.port, preflight).status == 403);
    }
    {
        TestServer server(always(hello()), [](FakeHost& h) {
            h.options.values["allowed_origins"] = std::string("https://a.example,https://b.example");
        });
        CHECK(server.chat(chat_body(), origin).header("Access-Control-Allow-Origin") == "https://a.example");
        CHECK(server.chat(chat_body(), "Origin: https://c.example\r\n").header("Access-Control-Allow-Origin").empty());
        const HttpAnswer a = ask(server.port, preflight);
        CHECK(a.status == 204);
        CHECK(a.header("Access-Control-Allow-Headers").find("authorization") != std::string::npos);
    }
    {
        TestServer server(always(hello()), [](FakeHost& h) { h.options.values["cors"] = true; });
        CHECK(server.chat(chat_body(true), origin).header("Access-Control-Allow-Origin") == "*");
    }
}

TEST_CASE("trace context and odd request ids") {
    TestServer server(always(hello()));
    const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    server.chat(chat_body(), "traceparent: " + trace + "\r\n");
    CHECK(server.service.seen().at(0).traceparent == trace);
    server.chat(chat_body(), "traceparent: nonsense\r\n");
    CHECK(server.service.seen().at(1).traceparent.empty());
    const HttpAnswer a = server.chat(chat_body(), "X-Request-Id: " + std::string(129, 'a') + "\r\n");
    CHECK(a.header("X-Request-Id").size() == 24);
    const HttpAnswer quote = server.chat(chat_body(), "X-Request-Id: a\"b\\c\r\n");
    CHECK(quote.json().at("id") == "chatcmpl-a\"b\\c");
}

TEST_CASE("what cannot be enforced is refused where an engine runs without grammars") {
    TestServer server(always(hello()));
    json body = chat_body();
    body["response_format"] = {{"type", "json_object"}};
    const HttpAnswer refused = server.chat(body);
    CHECK(refused.status == 400);
    CHECK(refused.json()["error"]["param"] == "response_format");
    body.erase("response_format");
    body["tools"] = json::parse(R"([{"type":"function","function":{"name":"f"}}])");
    body["tool_choice"] = "required";
    CHECK(server.chat(body).status == 400);
    body["tool_choice"] = "auto";
    CHECK(server.chat(body).status == 200);
    TestServer able(always(hello()), [](FakeHost& h) { h.with_grammar(); });
    body["tool_choice"] = "required";
    CHECK(able.chat(body).status == 200);
    CHECK(able.service.seen().at(0).tool_choice == "\"required\"");
}

TEST_CASE("unknown fields are said once in the log, by name") {
    TestServer server(always(hello()));
    json body = chat_body();
    body["wat"] = 1;
    body["prompt text; not a name"] = 1;
    server.chat(body);
    server.chat(body);
    std::size_t said = 0;
    for (const std::string& line : server.host.log()) {
        said += line.find("`wat`") != std::string::npos;
        CHECK(line.find("prompt text") == std::string::npos);
    }
    CHECK(said == 1);
}
