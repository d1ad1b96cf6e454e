// Requests end to end: prompt to events, limits, errors, cancelling, slow readers, draining.
#include "dsv4/sdk/generate.hpp"
#include "tests/engine/harness.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <thread>

using namespace dsv4;
using namespace dsv4::test;
using engine::Metric;

namespace {

std::vector<std::int32_t> ids_of(const std::string& text) { return tiny_tokenizer().encode(text).value(); }

std::int32_t control(const char* name) { return *tiny_tokenizer().control_id(name); }

void append(std::vector<std::int32_t>& to, const std::vector<std::int32_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

// Tokens of the prompt of one user message, to place a script behind it.
std::size_t prompt_length(const engine::Engine& e, const std::string& messages, int thinking,
                          const std::string& tools = {}) {
    dsv4_chat_request chat{};
    chat.struct_size = sizeof chat;
    chat.thinking = thinking;
    chat.continue_final_message = chat.default_thinking = DSV4_UNSAID;
    chat.messages = sdk::str(messages);
    chat.tools = sdk::str(tools);
    std::size_t count = 0;
    auto* self = const_cast<engine::Engine*>(&e);
    sdk::check(engine::Engine::service().tokenize(self, &chat, nullptr, 0, &count));
    return count;
}

const std::string hello = R"([{"role":"user","content":"Hello there"}])";

} // namespace

TEST_CASE("a raw prompt runs to its length with usage, timings and one final event") {
    Rig rig;
    Ask ask;
    ask.prompt = random_prompt(1, 700); // several chunks of 256 rows
    ask.max_tokens = 20;
    Pending p(*rig.engine, ask);
    const Answer& a = p.finish();
    REQUIRE(a.completions.size() == 1);
    CHECK(a.accepted == 1);
    CHECK(a.prompt_tokens == 700);
    CHECK(a.cached == 0);
    CHECK(a.miss == "none-yet");
    CHECK_FALSE(a.id.empty());
    CHECK(a[0].tokens.size() == 20);
    CHECK(a[0].reason == DSV4_REASON_LENGTH);
    CHECK(a[0].finals == 1);
    CHECK(a[0].usage.prompt_tokens == 700);
    CHECK(a[0].usage.completion_tokens == 20);
    CHECK(a[0].usage.reasoning_tokens == 0);
    CHECK_FALSE(p.step(20'000)); // nothing follows
    CHECK(rig.metrics.value(Metric::generation_tokens) == 20);
    CHECK(rig.metrics.value(Metric::request_success, "length") == 1);
    CHECK(rig.metrics.value(Metric::prompt_tokens) == 700);
    CHECK(rig.metrics.updates(Metric::time_to_first_token) == 1);
    CHECK(rig.metrics.updates(Metric::inter_token_latency) == 19);
    // The text is the bytes of the tokens, control tokens left out, in whole characters.
    tokenizer::Utf8Stream text;
    std::string expected;
    for (std::int32_t t : a[0].tokens)
        if (!tiny_tokenizer().is_control(t)) text.feed(tiny_tokenizer().bytes(t), expected);
    expected += text.flush();
    CHECK(a[0].content == expected);
}

TEST_CASE("the answer depends neither on the chunk size nor on the cache") {
    Ask ask;
    ask.prompt = random_prompt(2, 1000);
    ask.max_tokens = 300;
    std::vector<std::int32_t> first;
    for (std::uint32_t rows : {8u, 100u, 256u, 2048u})
        for (bool cache : {false, true}) {
            auto config = Rig::default_config();
            config.max_batched_tokens = rows;
            config.prefix_caching = cache;
            Rig rig(config);
            const Answer a = rig.ask(ask);
            if (first.empty()) first = a[0].tokens;
            CHECK(a[0].tokens == first);
            CHECK(a.miss == (cache ? "none-yet" : "disabled"));
            const Answer again = rig.ask(ask);
            CHECK(again[0].tokens == first);
            CHECK(again.cached == (cache ? 768 : 0)); // the last boundary with a token left over
            CHECK(again.miss == (cache ? "" : "disabled"));
        }
}

TEST_CASE("a chat runs through parser and tokenizer: reasoning, content, end token") {
    FakeOptions fake;
    append(fake.script, ids_of("I think so."));
    fake.script.push_back(control("</think>"));
    append(fake.script, ids_of("Yes, of course."));
    fake.script.push_back(1);
    Rig probe;
    fake.script_origin = std::int64_t(prompt_length(*probe.engine, hello, 1));
    Rig rig(Rig::default_config(), fake);
    Ask ask;
    ask.messages = hello;
    ask.thinking = 1;
    ask.max_tokens = 200;
    const Answer a = rig.ask(ask);
    CHECK(a.prompt_tokens == fake.script_origin);
    CHECK(a[0].reasoning == "I think so.");
    CHECK(a[0].content == "Yes, of course.");
    CHECK(a[0].reason == DSV4_REASON_STOP);
    CHECK(a[0].tokens == fake.script);
    CHECK(a[0].usage.reasoning_tokens == std::int64_t(ids_of("I think so.").size()));
    CHECK(a[0].usage.completion_tokens == std::int64_t(fake.script.size()));
}

TEST_CASE("a tool call arrives as begin and arguments") {
    const std::string tools =
        R"([{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}}])";
    Rig probe;
    FakeOptions fake;
    fake.script_origin = std::int64_t(prompt_length(*probe.engine, hello, 0, tools));
    const std::int32_t dsml = control("｜DSML｜");
    auto markup = [&](const std::string& before, const std::string& after) {
        append(fake.script, ids_of(before));
        fake.script.push_back(dsml);
        append(fake.script, ids_of(after));
    };
    markup("On it.\n\n<", "tool_calls>\n");
    markup("<", "invoke name=\"look\">\n");
    markup("<", "parameter name=\"q\" string=\"true\">red");
    markup("</", "parameter>\n");
    markup("</", "invoke>\n");
    markup("</", "tool_calls>");
    fake.script.push_back(1);
    Rig rig(Rig::default_config(), fake);
    Ask ask;
    ask.messages = hello;
    ask.tools = tools;
    ask.thinking = 0;
    ask.max_tokens = 400;
    const Answer a = rig.ask(ask);
    CHECK(a[0].content == "On it.");
    CHECK(a[0].calls == R"([look]{"q": "red"})");
    CHECK(a[0].reason == DSV4_REASON_TOOL_CALLS);
}

TEST_CASE("text prompts keep control spellings as text unless asked") {
    Rig rig;
    Ask ask;
    ask.text = "a<think>b";
    ask.max_tokens = 1;
    ask.echo = true;
    const Answer a = rig.ask(ask);
    CHECK(a[0].content.substr(0, 9) == "a<think>b");
    for (std::size_t i = 0; i + 1 < a[0].tokens.size(); ++i) CHECK_FALSE(tiny_tokenizer().is_control(a[0].tokens[i]));
}

TEST_CASE("mistakes of the client are refused at once, by field name") {
    Rig rig;
    auto refused = [&](const Ask& ask) {
        try {
            Pending p(*rig.engine, ask);
        } catch (const Failure& f) {
            CHECK(f.error().code == Code::invalid);
            return f.error().message;
        }
        return std::string("accepted");
    };
    Ask ask;
    ask.prompt = random_prompt(3, 10);
    auto with = [&](auto change) {
        Ask changed = ask;
        change(changed);
        return refused(changed);
    };
    CHECK_THAT(with([](Ask& a) { a.temperature = 3; }), ContainsSubstring("temperature"));
    CHECK_THAT(with([](Ask& a) { a.n = 0; }), ContainsSubstring("n: 0"));
    CHECK_THAT(with([](Ask& a) { a.n = 129; }), ContainsSubstring("n: 129"));
    CHECK_THAT(with([](Ask& a) { a.max_tokens = 0; }), ContainsSubstring("max_tokens"));
    CHECK_THAT(with([](Ask& a) { a.min_tokens = 17; }), ContainsSubstring("min_tokens"));
    CHECK_THAT(with([](Ask& a) { a.prompt = {}; }), ContainsSubstring("prompt"));
    CHECK_THAT(with([](Ask& a) { a.prompt = {5, 2048}; }), ContainsSubstring("2048"));
    CHECK_THAT(with([](Ask& a) { a.prompt = {-1}; }), ContainsSubstring("-1"));
    CHECK_THAT(with([](Ask& a) { a.prompt = random_prompt(1, 4096); }), ContainsSubstring("maximum context length"));
    CHECK_THAT(with([](Ask& a) { a.bias = {{2048, 1}}; }), ContainsSubstring("logit_bias"));
    CHECK_THAT(with([](Ask& a) { a.stop_ids = {-3}; }), ContainsSubstring("stop_token_ids"));
    CHECK_THAT(with([](Ask& a) { a.allowed = {99999}; }), ContainsSubstring("allowed_token_ids"));
    CHECK_THAT(with([](Ask& a) { a.stops.assign(17, "x"); }), ContainsSubstring("stop"));
    CHECK_THAT(with([](Ask& a) { a.truncate = -2; }), ContainsSubstring("truncate_prompt_tokens"));
    CHECK_THAT(with([](Ask& a) { a.messages = "[]"; }), ContainsSubstring("messages"));
    CHECK(with([](Ask& a) { a.max_tokens = 4086; }) == "accepted");
}

TEST_CASE("a prompt is cut to its end when asked, and the answer clamped to the context") {
    Rig rig;
    Ask ask;
    ask.prompt = random_prompt(4, 5000);
    ask.truncate = 100;
    ask.max_tokens = 5;
    const Answer cut = rig.ask(ask);
    CHECK(cut.prompt_tokens == 100);
    Ask same;
    same.prompt.assign(ask.prompt.end() - 100, ask.prompt.end());
    same.max_tokens = 5;
    CHECK(rig.ask(same)[0].tokens == cut[0].tokens);
    ask.truncate = -1;
    ask.max_tokens = 100000;
    const Answer full = rig.ask(ask);
    CHECK(full.prompt_tokens == 4095);
    CHECK(full[0].tokens.size() == 1);
    CHECK(full[0].reason == DSV4_REASON_LENGTH);
}

TEST_CASE("cancelling gives one final event a completion, whatever the moment") {
    FakeOptions fake;
    fake.ticket_us = 200;
    Rig rig(Rig::default_config(), fake);
    for (int after = 0; after < 6; ++after) {
        Ask ask;
        ask.prompt = random_prompt(std::uint64_t(after), 600);
        ask.max_tokens = 3000;
        ask.n = 3;
        Pending p(*rig.engine, ask);
        for (int i = 0; i < after * 2; ++i) p.step(1'000'000);
        p.cancel();
        p.cancel();
        const Answer& a = p.finish();
        for (const Completed& c : a.completions) {
            CHECK(c.finals == 1);
            CHECK(c.reason == DSV4_REASON_CANCELLED);
        }
        p.cancel();
        CHECK_FALSE(p.step(5'000));
    }
}

TEST_CASE("a deadline ends a request that runs and one that waits") {
    auto config = Rig::default_config();
    config.max_sequences = 1;
    FakeOptions fake;
    fake.ticket_us = 500;
    Rig rig(config, fake);
    Ask ask;
    ask.prompt = random_prompt(1, 100);
    ask.max_tokens = 3900;
    ask.deadline_us = rig.engine->now_us() + 60'000;
    Pending runs(*rig.engine, ask), waits(*rig.engine, ask);
    CHECK(runs.finish()[0].reason == DSV4_REASON_DEADLINE);
    CHECK(waits.finish()[0].reason == DSV4_REASON_DEADLINE);
    CHECK(runs.answer()[0].tokens.size() > 0);
}

TEST_CASE("a slow reader pauses only itself and loses nothing") {
    auto config = Rig::default_config();
    config.max_sequences = 1; // even the only slot
    config.queue_tokens = 16;
    Rig rig(config);
    Ask ask;
    ask.prompt = random_prompt(1, 300);
    ask.max_tokens = 400;
    Pending slow(*rig.engine, ask);
    while (rig.metrics.value(Metric::paused_readers) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Ask other;
    other.prompt = random_prompt(2, 300);
    other.max_tokens = 400;
    const Answer quick = rig.ask(other);
    CHECK(quick[0].tokens.size() == 400);
    CHECK(rig.metrics.value(Metric::generation_tokens) < 400 + 16 + 8); // the slow one stood still
    const Answer& late = slow.finish();
    CHECK(late[0].tokens.size() == 400);
    Rig alone;
    CHECK(alone.ask(ask)[0].tokens == late[0].tokens);
}

TEST_CASE("wake is called for events and never after release") {
    Rig rig;
    std::atomic<int> woken{0};
    {
        Ask ask;
        ask.prompt = random_prompt(1, 50);
        ask.max_tokens = 50;
        Pending p(*rig.engine, ask);
        engine::Engine::service().on_events(
            rig.engine.get(), p.handle(), [](void* arg) { ++*static_cast<std::atomic<int>*>(arg); }, &woken);
        p.finish();
        CHECK(woken > 0);
        Ask endless = ask;
        endless.max_tokens = 4000;
        Pending q(*rig.engine, endless);
        engine::Engine::service().on_events(
            rig.engine.get(), q.handle(), [](void* arg) { ++*static_cast<std::atomic<int>*>(arg); }, &woken);
        q.step(1'000'000);
    }
    const int at_release = woken;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(woken == at_release);
}

TEST_CASE("a failed row fails its request alone") {
    Rig rig;
    Ask ask;
    ask.prompt = random_prompt(1, 100);
    ask.max_tokens = 50;
    const Answer good = rig.ask(ask);
    rig.backend.fail_row_in(60);
    Ask other = ask;
    other.prompt = random_prompt(2, 100);
    Pending a(*rig.engine, ask), b(*rig.engine, other);
    a.finish();
    b.finish();
    CHECK(a.answer().errors + b.answer().errors == 1);
    const Answer& failed = a.answer().errors ? a.answer() : b.answer();
    CHECK(failed.code == DSV4_INTERNAL);
    CHECK_THAT(failed.message, ContainsSubstring("attend") && ContainsSubstring("planted"));
    CHECK(rig.engine->healthy());
    CHECK(rig.ask(ask)[0].tokens == good[0].tokens);
}

TEST_CASE("a lost device ends every request with an error and refuses new ones") {
    FakeOptions fake;
    fake.ticket_us = 5000; // both are submitted long before the ticket that fails
    Rig rig(Rig::default_config(), fake);
    rig.backend.fail_ticket(60);
    Ask ask;
    ask.prompt = random_prompt(1, 100);
    ask.max_tokens = 500;
    Pending a(*rig.engine, ask), b(*rig.engine, ask);
    CHECK(a.finish().errors == 1);
    CHECK(b.finish().errors == 1);
    CHECK(a.answer().code == DSV4_ENVIRONMENT);
    CHECK_FALSE(rig.engine->healthy());
    CHECK_THROWS_AS(Pending(*rig.engine, ask), Failure);
    CHECK(nlohmann::json::parse(rig.engine->describe())["ready"] == false);
}

TEST_CASE("a full queue is refused as exhausted") {
    auto config = Rig::default_config();
    config.max_sequences = 1;
    config.max_waiting = 2;
    FakeOptions fake;
    fake.ticket_us = 1000;
    Rig rig(config, fake);
    Ask ask;
    ask.prompt = random_prompt(1, 10);
    ask.max_tokens = 1000;
    Pending a(*rig.engine, ask), b(*rig.engine, ask), c(*rig.engine, ask);
    try {
        Pending d(*rig.engine, ask);
        FAIL("the queue took a request too many");
    } catch (const Failure& f) {
        CHECK(f.error().code == Code::exhausted);
    }
}

TEST_CASE("draining refuses new requests, lets running ones end and cancels what is late") {
    {
        Rig rig;
        Ask ask;
        ask.prompt = random_prompt(1, 100);
        ask.max_tokens = 200;
        Pending p(*rig.engine, ask);
        CHECK(rig.engine->drain(rig.engine->now_us() + 30'000'000));
        CHECK(p.finish()[0].reason == DSV4_REASON_LENGTH);
        CHECK_THROWS_AS(Pending(*rig.engine, ask), Failure);
    }
    FakeOptions fake;
    fake.ticket_us = 2000;
    Rig rig(Rig::default_config(), fake);
    Ask ask;
    ask.prompt = random_prompt(1, 100);
    ask.max_tokens = 3000;
    Pending p(*rig.engine, ask);
    p.step(1'000'000);
    CHECK_FALSE(rig.engine->drain(rig.engine->now_us() + 20'000));
    CHECK(p.finish()[0].reason == DSV4_REASON_CANCELLED);
}

TEST_CASE("describe tells what clients may know") {
    Rig rig;
    const auto d = nlohmann::json::parse(rig.engine->describe());
    CHECK(d == nlohmann::json{{"model", "fake"},
                              {"max_model_len", 4096},
                              {"parallel", 8},
                              {"running", 0},
                              {"waiting", 0},
                              {"ready", true}});
}

TEST_CASE("a deadline wakes an engine that has nothing to run") {
    auto config = Rig::default_config();
    config.queue_tokens = 4;
    Rig rig(config);
    Ask ask;
    ask.prompt = random_prompt(1, 100);
    ask.max_tokens = 1000;
    ask.deadline_us = rig.engine->now_us() + 80'000;
    Pending p(*rig.engine, ask);
    while (rig.metrics.value(Metric::paused_readers) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(120)); // nobody reads, nothing runs
    CHECK(rig.metrics.value(Metric::request_success, "abort") == 1);
    CHECK(p.finish()[0].reason == DSV4_REASON_DEADLINE);
    CHECK(p.answer()[0].tokens.size() < 20);
}

TEST_CASE("without chunked prefill a prompt runs in one step") {
    auto config = Rig::default_config();
    config.chunked_prefill = false;
    config.max_batched_tokens = 4096 + 8;
    Rig rig(config);
    Ask ask;
    ask.prompt = random_prompt(1, 3000);
    ask.max_tokens = 5;
    Ask other = ask;
    other.prompt = random_prompt(2, 3500);
    Pending a(*rig.engine, ask), b(*rig.engine, other);
    a.finish();
    b.finish();
    CHECK(rig.metrics.updates(Metric::iteration_tokens) <= 14); // two prompts, and the tokens behind them
    Rig chunked;
    CHECK(chunked.ask(ask)[0].tokens == a.answer()[0].tokens);
    CHECK(chunked.ask(other)[0].tokens == b.answer()[0].tokens);
}

TEST_CASE("a text prompt begins with the begin token when asked, once") {
    auto config = Rig::default_config();
    config.begin_id = 0;
    Rig rig(config);
    auto tokens = [&](const std::string& text, bool special, bool bos) {
        dsv4_generate_request r = sdk::default_request();
        r.prompt_text = sdk::str(text);
        r.parse_special = special;
        r.add_bos = bos;
        r.limits.max_tokens = 1;
        r.echo = 1;
        auto request = rig.engine->submit(r);
        std::vector<std::int32_t> ids;
        while (const dsv4_event* e = request->events->next(10'000'000))
            for (std::uint32_t i = 0; i < e->token_count; ++i) ids.push_back(e->tokens[i].id);
        ids.pop_back(); // the one generated token
        return ids;
    };
    const auto plain = tokens("some text", false, false);
    CHECK(plain == ids_of("some text"));
    auto begun = plain;
    begun.insert(begun.begin(), 0);
    CHECK(tokens("some text", false, true) == begun);
    const std::string begin(tiny_tokenizer().bytes(0));
    CHECK(tokens(begin + "some text", true, true) == begun);
}

TEST_CASE("a plan and a geometry become a configuration") {
    plan::ServingPlan plan;
    plan.checkpoint.id = "owner/model";
    plan.context.max_num_seqs = 12;
    plan.context.max_num_batched_tokens = 8;
    plan.kv.prefix_caching = false;
    plan.sampling.temperature = 0.6;
    plan.sampling.top_k = 50;
    plan.reasoning.thinking = true;
    plan.reasoning.effort = "max";
    plan.reasoning.max_output_tokens = 777;
    model::Geometry geometry;
    geometry.vocab_size = 2048;
    geometry.sliding_window = 64;
    geometry.max_position_embeddings = 4096;
    geometry.bos_token_id = 0;
    geometry.eos_token_ids = {1, 9};
    auto c = engine::config_from(plan, geometry);
    CHECK(c.model_name == "owner/model");
    CHECK(c.max_sequences == 12);
    CHECK(c.max_batched_tokens == 12); // each completion has a row
    CHECK(c.max_model_len == 4096);
    CHECK(c.stop_ids == std::vector<std::int32_t>{1, 9});
    CHECK(c.begin_id == 0);
    CHECK_FALSE(c.prefix_caching);
    CHECK(c.sampling.temperature == 0.6);
    CHECK(c.sampling.top_k == 50);
    CHECK(c.thinking);
    CHECK(c.effort == "max");
    CHECK(c.default_max_tokens == 777);
    plan.context.max_model_len = 1024;
    plan.context.chunked_prefill = false;
    c = engine::config_from(plan, geometry);
    CHECK(c.max_model_len == 1024);
    CHECK(c.max_batched_tokens == 1024 + 12);
}
