// The host table as a plugin sees it: options, clock, secrets, spans, metrics and the model services.
#include "core/host/host_table.hpp"
#include "core/host/span.hpp"
#include "dsv4/sdk/error.hpp"
#include "dsv4/sdk/host.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::host;

namespace {

struct FakeLowering final : Lowering {
    std::string lower_layer(std::string_view prefix, std::string_view options) override {
        if (prefix != "mtp.0") throw Failure(Code::not_found, "there is no layer " + std::string(prefix));
        return std::string("program\0of ", 11) + std::string(options);
    }
    std::string_view config_json() const noexcept override { return "{\"a\":1}"; }
};

struct FakeGenerate final : Generate {
    int cancelled = 0, released = 0;
    dsv4_event event{};
    dsv4_request_handle* submit(const dsv4_generate_request& r) override {
        if (r.n == 0) throw Failure(Code::exhausted, "the queue is full");
        return reinterpret_cast<dsv4_request_handle*>(this);
    }
    void on_events(dsv4_request_handle*, void (*wake)(void*), void* arg) noexcept override { wake(arg); }
    const dsv4_event* next(dsv4_request_handle*, std::uint64_t timeout_us) override {
        return timeout_us ? &event : nullptr;
    }
    void cancel(dsv4_request_handle*) noexcept override { ++cancelled; }
    void release(dsv4_request_handle*) noexcept override { ++released; }
    std::vector<std::int32_t> tokenize(const dsv4_chat_request&) override { return {5, 6, 7}; }
    std::string describe() override { return "{\"ready\":true}"; }
};

struct Fixture {
    std::vector<std::string> lines;
    host::Host host{[this] {
        HostOptions o;
        o.threads = 2;
        o.log.level = LogLevel::debug;
        o.log.sink = [this](std::string_view line) { lines.emplace_back(line); };
        return o;
    }()};
};

} // namespace

TEST_CASE_METHOD(Fixture, "options answer by type and name") {
    const OptionValues values{{"n", std::int64_t{7}}, {"x", 0.5}, {"b", true}, {"s", std::string("text")}};
    HostTable table(host, "parser-x");
    const sdk::Options options(table.table(), as_options(values));
    CHECK(options.integer("n") == 7);
    CHECK(options.number("x") == 0.5);
    CHECK(options.flag("b"));
    CHECK(options.text("s") == "text");
    try {
        options.text("other");
        FAIL("no error");
    } catch (const Failure& f) {
        CHECK(f.error().code == Code::not_found);
        CHECK(f.error().message == "the manifest declares no option \"other\"");
    }
    try {
        options.integer("s");
        FAIL("no error");
    } catch (const Failure& f) {
        CHECK(f.error().code == Code::invalid);
        CHECK(f.error().message == "option \"s\" is not a whole number");
    }
}

TEST_CASE_METHOD(Fixture, "without services the table has none") {
    HostTable table(host, "parser-x");
    const auto* t = table.table();
    CHECK(t->struct_size == sizeof(dsv4_host));
    CHECK(t->tokenizer == nullptr);
    CHECK(t->grammar == nullptr);
    CHECK(t->lowering == nullptr);
    CHECK(t->generate == nullptr);
    CHECK(t->thread_count(t->ctx) == 2);
    const auto before = t->monotonic_us(t->ctx);
    CHECK(t->monotonic_us(t->ctx) >= before);
    CHECK(t->unix_us(t->ctx) > 1'700'000'000'000'000u);
}

TEST_CASE_METHOD(Fixture, "the tokenizer service is the checkpoint's tokenizer") {
    const auto tokenizer =
        tokenizer::Tokenizer::load(std::string(DSV4_SOURCE_DIR) + "/models/dsv4-tiny/tokenizer.json").value();
    host.set_tokenizer(tokenizer);
    HostTable table(host, "parser-x");
    const auto* t = table.table();
    REQUIRE(t->tokenizer);
    CHECK(t->tokenizer->vocab_size == tokenizer.vocab_size());
    const auto expected = tokenizer.encode("hello world").value();
    std::size_t count = 0;
    sdk::check(t->tokenizer->encode(t->ctx, sdk::str("hello world"), nullptr, 0, &count));
    REQUIRE(count == expected.size());
    std::vector<std::int32_t> ids(count + 1, -9);
    sdk::check(t->tokenizer->encode(t->ctx, sdk::str("hello world"), ids.data(), 1, &count));
    CHECK(count == expected.size());
    CHECK(ids[0] == expected[0]);
    CHECK(ids[1] == -9); // not written beyond the capacity
    std::string joined;
    for (const auto id : expected) joined += sdk::view(t->tokenizer->bytes(t->ctx, id));
    CHECK(joined == "hello world");
    const auto& control = tokenizer.added_tokens().front();
    CHECK(t->tokenizer->control_id(t->ctx, sdk::str(control.content)) == control.id);
    CHECK(t->tokenizer->is_control(t->ctx, control.id) == 1);
    CHECK(t->tokenizer->is_control(t->ctx, expected[0]) == 0);
    CHECK(t->tokenizer->control_id(t->ctx, sdk::str("no such token")) == -1);
    CHECK(t->tokenizer->bytes(t->ctx, -1).size == 0);
    auto* error = t->tokenizer->encode(t->ctx, sdk::str("\xff"), nullptr, 0, &count);
    REQUIRE(error);
    CHECK(sdk::take_error(error).code == Code::invalid);
}

TEST_CASE_METHOD(Fixture, "lowering and generation are reached through the table") {
    FakeLowering lowering;
    FakeGenerate generate;
    host.set_lowering(&lowering);
    host.set_generate(&generate);
    HostTable table(host, "api-x");
    const auto* t = table.table();
    REQUIRE(t->lowering);
    dsv4_str program{};
    sdk::check(t->lowering->lower_layer(t->ctx, sdk::str("mtp.0"), sdk::str("{}"), &program));
    CHECK(sdk::view(program) == std::string_view("program\0of {}", 13));
    t->lowering->release_program(t->ctx, program);
    CHECK(sdk::take_error(t->lowering->lower_layer(t->ctx, sdk::str("x"), sdk::str("{}"), &program)).message ==
          "there is no layer x");
    CHECK(sdk::view(t->lowering->config_json(t->ctx)) == "{\"a\":1}");

    REQUIRE(t->generate);
    const auto* g = t->generate;
    dsv4_generate_request request{};
    dsv4_request_handle* handle = nullptr;
    CHECK(sdk::take_error(g->submit(t->ctx, &request, &handle)).code == Code::exhausted);
    request.n = 1;
    sdk::check(g->submit(t->ctx, &request, &handle));
    bool woken = false;
    g->on_events(
        t->ctx, handle, [](void* arg) { *static_cast<bool*>(arg) = true; }, &woken);
    CHECK(woken);
    const dsv4_event* event = nullptr;
    sdk::check(g->next(t->ctx, handle, 0, &event));
    CHECK(event == nullptr);
    sdk::check(g->next(t->ctx, handle, 1, &event));
    CHECK(event == &generate.event);
    g->cancel(t->ctx, handle);
    g->release(t->ctx, handle);
    CHECK(generate.cancelled == 1);
    CHECK(generate.released == 1);
    std::int32_t ids[2] = {};
    std::size_t count = 0;
    const dsv4_chat_request chat{};
    sdk::check(g->tokenize(t->ctx, &chat, ids, 2, &count));
    CHECK(count == 3);
    CHECK(ids[1] == 6);
    std::string json;
    g->describe(
        t->ctx, [](void* arg, dsv4_str s) { *static_cast<std::string*>(arg) = sdk::view(s); }, &json);
    CHECK(json == "{\"ready\":true}");
}

TEST_CASE_METHOD(Fixture, "spans keep the trace of their caller") {
    HostTable table(host, "api-x");
    const auto* t = table.table();
    auto* span = t->span_begin(t->ctx, sdk::str("prefill"), sdk::str("req-1"),
                               sdk::str("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    REQUIRE(span);
    t->span_end(t->ctx, span);
    t->span_end(t->ctx, nullptr);
    REQUIRE(lines.size() == 1);
    for (const auto* part : {"[api-x] span name=prefill request_id=req-1 trace_id=0af7651916cd43dd8448eb211c80319c",
                             "parent_id=b7ad6b7169203331", "duration_us="})
        CHECK_THAT(lines[0], ContainsSubstring(part));
    host::Host quiet;
    HostTable silent(quiet, "api-x");
    CHECK(silent.table()->span_begin(silent.table()->ctx, sdk::str("x"), {}, {}) == nullptr);
    for (const auto* bad :
         {"", "00-00000000000000000000000000000000-b7ad6b7169203331-01",
          "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
          "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c"}) {
        const auto ids = trace_ids(bad);
        CHECK(ids.trace_id.size() == 32);
        CHECK(ids.trace_id != "0af7651916cd43dd8448eb211c80319c");
        CHECK(ids.parent_id.empty());
    }
}

TEST_CASE_METHOD(Fixture, "secrets and metrics through the table") {
    HostTable table(host, "api-x");
    const auto* t = table.table();
    ::setenv("DSV4_TEST_SECRET", "abc", 1);
    char* text = nullptr;
    std::size_t size = 0;
    sdk::check(t->secret(t->ctx, sdk::str("env:DSV4_TEST_SECRET"), &text, &size));
    CHECK(std::string_view(text, size) == "abc");
    t->secret_release(t->ctx, text, size);
    t->secret_release(t->ctx, nullptr, 0);
    auto* error = t->secret(t->ctx, sdk::str("abc"), &text, &size);
    REQUIRE(error);
    error->release(error);
    const dsv4_label label{sdk::str("route"), sdk::str("chat")};
    auto* metric =
        t->metric(t->ctx, DSV4_METRIC_COUNTER, sdk::str("api_requests_total"), sdk::str("Requests."), &label, 1);
    REQUIRE(metric);
    t->metric_update(t->ctx, metric, 3);
    std::string exposed;
    t->metrics_expose(
        t->ctx, [](void* arg, dsv4_str s) { *static_cast<std::string*>(arg) += sdk::view(s); }, &exposed);
    CHECK_THAT(exposed, ContainsSubstring("api_requests_total{route=\"chat\"} 3\n"));
}
