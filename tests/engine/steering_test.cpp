// What steers a completion: stop strings and ids, lengths, biases, allowed tokens, grammars, budgets for reasoning.
#include "tests/engine/harness.hpp"

#include <atomic>
#include <cmath>

using namespace dsv4;
using namespace dsv4::test;

namespace {

std::vector<std::int32_t> ids_of(const std::string& text) { return tiny_tokenizer().encode(text).value(); }

std::int32_t control(const char* name) { return *tiny_tokenizer().control_id(name); }

// A backend that answers `text` to a raw prompt of `prompt` tokens.
FakeOptions scripted(const std::string& text, std::int64_t prompt, bool end = true) {
    FakeOptions fake;
    fake.script = ids_of(text);
    if (end) fake.script.push_back(1);
    fake.script_origin = prompt;
    return fake;
}

Ask raw(std::int64_t max_tokens = 200) {
    Ask ask;
    ask.prompt = random_prompt(1, 10);
    ask.max_tokens = max_tokens;
    return ask;
}

const std::string hello = R"([{"role":"user","content":"Hello there"}])";

std::int64_t chat_prompt_tokens(int thinking) {
    Rig rig;
    Ask ask;
    ask.messages = hello;
    ask.thinking = thinking;
    ask.max_tokens = 1;
    return rig.ask(ask).prompt_tokens;
}

} // namespace

TEST_CASE("a stop string ends the text before it, or behind it when included") {
    const std::string text = "alpha beta gamma delta";
    Rig rig(Rig::default_config(), scripted(text, 10));
    Ask ask = raw();
    CHECK(rig.ask(ask)[0].content == text);
    ask.stops = {"", "gam"};
    const Answer cut = rig.ask(ask);
    CHECK(cut[0].content == "alpha beta ");
    CHECK(cut[0].reason == DSV4_REASON_STOP);
    CHECK(cut[0].stop == "gam");
    CHECK(cut[0].tokens.size() < ids_of(text).size());
    ask.include_stop = true;
    CHECK(rig.ask(ask)[0].content == "alpha beta gam");
    ask.stops = {"never"};
    const Answer whole = rig.ask(ask);
    CHECK(whole[0].content == text);
    CHECK(whole[0].stop == "");
}

TEST_CASE("stop strings act on content alone, not on reasoning") {
    FakeOptions fake;
    for (std::int32_t t : ids_of("I STOP here.")) fake.script.push_back(t);
    fake.script.push_back(control("</think>"));
    for (std::int32_t t : ids_of("We STOP now.")) fake.script.push_back(t);
    fake.script.push_back(1);
    fake.script_origin = chat_prompt_tokens(1);
    Rig rig(Rig::default_config(), fake);
    Ask ask;
    ask.messages = hello;
    ask.thinking = 1;
    ask.max_tokens = 200;
    ask.stops = {"STOP"};
    const Answer a = rig.ask(ask);
    CHECK(a[0].reasoning == "I STOP here.");
    CHECK(a[0].content == "We ");
    CHECK(a[0].stop == "STOP");
    CHECK(a[0].reason == DSV4_REASON_STOP);
}

TEST_CASE("stop ids of the model and of the request end a completion and are no text") {
    const std::string text = "alpha beta gamma";
    Rig rig(Rig::default_config(), scripted(text, 10));
    Ask ask = raw();
    const Answer by_model = rig.ask(ask);
    CHECK(by_model[0].content == text);
    CHECK(by_model[0].reason == DSV4_REASON_STOP);
    CHECK(by_model[0].tokens.back() == 1);
    CHECK(by_model[0].usage.completion_tokens == std::int64_t(ids_of(text).size()) + 1);
    ask.stop_ids = {ids_of(text)[2]};
    const Answer by_request = rig.ask(ask);
    CHECK(by_request[0].tokens.size() == 3);
    CHECK(by_request[0].reason == DSV4_REASON_STOP);
    ask.stop_ids = {};
    ask.ignore_eos = true;
    ask.max_tokens = 50;
    const Answer ignored = rig.ask(ask);
    CHECK(ignored[0].tokens.size() == 50);
    CHECK(ignored[0].reason == DSV4_REASON_LENGTH);
    CHECK(ignored[0].tokens[ids_of(text).size()] == 1);
}

TEST_CASE("min_tokens keeps stop ids and stop strings away for so many tokens") {
    const std::string text = "ab ab ab ab ab ab ab ab";
    const auto count = std::int64_t(ids_of(text).size());
    Rig rig(Rig::default_config(), scripted(text, 10));
    Ask ask = raw(100);
    ask.min_tokens = count;
    CHECK(std::int64_t(rig.ask(ask)[0].tokens.size()) == count + 1); // the end token is number min_tokens + 1
    ask.min_tokens = count + 1;
    const Answer longer = rig.ask(ask); // the end token is impossible where the script wants it
    CHECK(longer[0].tokens[std::size_t(count)] != 1);
    CHECK(std::int64_t(longer[0].tokens.size()) > count + 1);
    ask.min_tokens = 0;
    ask.stops = {"ab"};
    CHECK(rig.ask(ask)[0].content == "");
    ask.min_tokens = 4;
    const Answer late = rig.ask(ask);
    CHECK(late[0].tokens.size() > 4);
    CHECK(late[0].stop == "ab");
}

TEST_CASE("biases reach the sampler, and a forbidden token stays away") {
    const std::string text = "alpha beta";
    Rig rig(Rig::default_config(), scripted(text, 10));
    Ask ask = raw();
    const std::int32_t first = ids_of(text)[0];
    ask.bias = {{first, -100}};
    CHECK(rig.ask(ask)[0].tokens[0] != first);
    ask.bias = {{777, 100}};
    ask.max_tokens = 5;
    CHECK(rig.ask(ask)[0].tokens == std::vector<std::int32_t>(5, 777));
}

TEST_CASE("seeds repeat, completions of one request differ, each as if it were asked for alone") {
    Rig rig;
    Ask ask = raw(30);
    ask.prompt = random_prompt(5, 300);
    ask.temperature = 1;
    ask.seed = 42;
    ask.n = 4;
    const Answer together = rig.ask(ask);
    CHECK(together.accepted == 1);
    for (std::size_t i = 0; i < 4; ++i) {
        Ask one = ask;
        one.n = 1;
        one.seed = 42 + i;
        CHECK(rig.ask(one)[0].tokens == together[i].tokens);
        CHECK(together[i].usage.prompt_tokens == 300);
        for (std::size_t j = 0; j < i; ++j) CHECK(together[i].tokens != together[j].tokens);
    }
}

TEST_CASE("more completions than slots are served all the same") {
    auto config = Rig::default_config();
    config.max_sequences = 3;
    Rig rig(config);
    Ask ask = raw(30);
    ask.prompt = random_prompt(5, 300);
    ask.temperature = 1;
    ask.n = 10;
    const Answer a = rig.ask(ask);
    for (const Completed& c : a.completions) {
        CHECK(c.finals == 1);
        CHECK(c.tokens.size() == 30);
    }
    // A prompt of one token has nothing to share.
    ask.prompt = {55};
    for (const Completed& c : rig.ask(ask).completions) CHECK(c.tokens.size() == 30);
}

TEST_CASE("log-probabilities come with each token when asked for") {
    Rig rig;
    Ask ask = raw(6);
    const Answer without = rig.ask(ask);
    for (float p : without[0].logprobs) CHECK(std::isnan(p));
    ask.logprobs = 3;
    const Answer with = rig.ask(ask);
    CHECK(with[0].tokens == without[0].tokens);
    for (std::size_t i = 0; i < 6; ++i) {
        REQUIRE(with[0].tops[i].size() == 3);
        CHECK(with[0].tops[i][0].token == with[0].tokens[i]); // greedy takes the best
        CHECK(with[0].tops[i][0].logprob == with[0].logprobs[i]);
        CHECK(with[0].tops[i][0].logprob > with[0].tops[i][1].logprob);
        CHECK(with[0].logprobs[i] < 0);
    }
    ask.logprobs = 0;
    const Answer own = rig.ask(ask);
    CHECK(own[0].tops[0].empty());
    CHECK(own[0].logprobs[0] == with[0].logprobs[0]);
}

TEST_CASE("only allowed tokens and the end are generated") {
    FakeOptions fake;
    fake.stop_every = 10;
    Rig rig(Rig::default_config(), fake);
    Ask ask = raw(100);
    ask.allowed = {100, 200, 300, 2047};
    const Answer a = rig.ask(ask);
    REQUIRE(a[0].tokens.size() > 1);
    for (std::size_t i = 0; i < a[0].tokens.size(); ++i) {
        const std::int32_t t = a[0].tokens[i];
        CHECK((t == 100 || t == 200 || t == 300 || t == 2047 || (t == 1 && i + 1 == a[0].tokens.size())));
    }
    // Beside others that are free.
    Ask free = raw(100);
    Pending constrained(*rig.engine, ask), other(*rig.engine, free);
    CHECK(constrained.finish()[0].tokens == a[0].tokens);
    CHECK(other.finish()[0].tokens == rig.ask(free)[0].tokens);
}

TEST_CASE("the reasoning budget closes reasoning exactly there, and the answer goes on") {
    const std::int64_t prompt = chat_prompt_tokens(1);
    const std::int32_t end = control("</think>");
    Rig rig;
    for (std::int64_t budget : {0, 1, 2, 7}) {
        INFO("budget " << budget);
        Ask ask;
        ask.messages = hello;
        ask.thinking = 1;
        ask.max_tokens = 20;
        ask.max_reasoning = budget;
        ask.ignore_eos = true;
        const Answer a = rig.ask(ask);
        REQUIRE(a[0].tokens.size() == 20);
        CHECK(a[0].tokens[std::size_t(budget)] == end);
        CHECK(a[0].usage.reasoning_tokens == budget);
        for (std::size_t i = 0; i < 20; ++i)
            if (std::int64_t(i) != budget) CHECK(a[0].tokens[i] != end); // forced once
        CHECK_FALSE(a[0].content.empty());
        CHECK(a[0].reasoning.empty() == (budget == 0));
    }
    // Reasoning that ends by itself before the budget is left alone.
    FakeOptions fake;
    for (std::int32_t t : ids_of("Hm.")) fake.script.push_back(t);
    fake.script.push_back(end);
    for (std::int32_t t : ids_of("Well then.")) fake.script.push_back(t);
    fake.script.push_back(1);
    fake.script_origin = prompt;
    Rig early(Rig::default_config(), fake);
    Ask ask;
    ask.messages = hello;
    ask.thinking = 1;
    ask.max_tokens = 200;
    ask.max_reasoning = std::int64_t(ids_of("Hm.").size()) + 2;
    const Answer a = early.ask(ask);
    CHECK(a[0].reasoning == "Hm.");
    CHECK(a[0].content == "Well then.");
    CHECK(a[0].tokens == fake.script);
}

TEST_CASE("a budget is kept by sequences that were preempted at it") {
    auto config = Rig::default_config();
    config.max_sequences = 4;
    config.max_batched_tokens = 32;
    config.pool_pages = {12, 8, 8, 8, 40, 12, 40};
    config.boundary_states = 2;
    Rig rig(config);
    std::vector<std::unique_ptr<Pending>> pending;
    std::vector<Ask> asks;
    for (int i = 0; i < 8; ++i) {
        Ask ask;
        ask.messages = R"([{"role":"user","content":")" + std::string(std::size_t(100 + i * 40), 'x') + "\"}]";
        ask.thinking = 1;
        ask.max_tokens = 300;
        ask.max_reasoning = 150;
        ask.ignore_eos = true;
        asks.push_back(ask);
        pending.push_back(std::make_unique<Pending>(*rig.engine, ask));
    }
    for (auto& p : pending) p->finish();
    CHECK(rig.engine->load().preemptions > 0);
    for (std::size_t i = 0; i < pending.size(); ++i) {
        const Answer& a = pending[i]->answer();
        REQUIRE(a.errors == 0);
        CHECK(a[0].tokens[150] == control("</think>"));
        Rig alone;
        CHECK(alone.ask(asks[i])[0].tokens == a[0].tokens);
    }
}

namespace {

// A grammar of token ids that cycles through 100 .. 100+count-1 and then is complete.
struct CountingGrammar {
    std::atomic<int> live_grammars = 0, live_states = 0, refused = 0; // compiled and released by different threads
    struct State {
        std::int32_t next = 100;
    };
    static constexpr std::int32_t end = 105;
    static const dsv4_grammar_service& table() {
        static const dsv4_grammar_service t = [] {
            dsv4_grammar_service g{};
            g.struct_size = sizeof g;
            g.compile = [](void* ctx, std::int32_t, dsv4_str text, dsv4_grammar** out) -> dsv4_error* {
                if (sdk::view(text) == "bad")
                    return sdk::make_error({Code::invalid, "response_format: bad grammar", {}});
                ++static_cast<CountingGrammar*>(ctx)->live_grammars;
                *out = reinterpret_cast<dsv4_grammar*>(new int);
                return nullptr;
            };
            g.release = [](void* ctx, dsv4_grammar* x) {
                --static_cast<CountingGrammar*>(ctx)->live_grammars;
                delete reinterpret_cast<int*>(x);
            };
            g.start = [](void* ctx, dsv4_grammar*, dsv4_grammar_state** out) -> dsv4_error* {
                ++static_cast<CountingGrammar*>(ctx)->live_states;
                *out = reinterpret_cast<dsv4_grammar_state*>(new State);
                return nullptr;
            };
            g.state_release = [](void* ctx, dsv4_grammar_state* s) {
                --static_cast<CountingGrammar*>(ctx)->live_states;
                delete reinterpret_cast<State*>(s);
            };
            g.advance = [](void* ctx, dsv4_grammar_state* s, std::int32_t token) -> std::int32_t {
                auto& next = reinterpret_cast<State*>(s)->next;
                if (token != next) {
                    ++static_cast<CountingGrammar*>(ctx)->refused;
                    return 0;
                }
                ++next;
                return 1;
            };
            g.rollback = [](void*, dsv4_grammar_state*, std::uint32_t) {};
            g.fill_mask = [](void*, dsv4_grammar_state* s, std::uint32_t* words) {
                std::fill(words, words + 64, 0u);
                const std::int32_t next = reinterpret_cast<State*>(s)->next;
                if (next < end) words[next / 32] |= 1u << (next % 32);
            };
            return g;
        }();
        return t;
    }
};

} // namespace

TEST_CASE("a grammar masks every token, and the end where it is complete") {
    CountingGrammar grammar;
    {
        Rig rig(Rig::default_config(), {}, {&CountingGrammar::table(), &grammar});
        Ask ask = raw(50);
        ask.grammar = "counting";
        ask.n = 2;
        const Answer a = rig.ask(ask);
        for (const Completed& c : a.completions) {
            CHECK(c.tokens == std::vector<std::int32_t>{100, 101, 102, 103, 104, 1});
            CHECK(c.reason == DSV4_REASON_STOP);
        }
        CHECK(grammar.refused == 0);
        // Behind reasoning: the grammar begins with the answer.
        Ask chat;
        chat.messages = hello;
        chat.thinking = 1;
        chat.max_tokens = 50;
        chat.max_reasoning = 3;
        chat.grammar = "counting";
        const Answer b = rig.ask(chat);
        REQUIRE(b[0].tokens.size() == 10);
        const std::vector<std::int32_t> tail(b[0].tokens.begin() + 4, b[0].tokens.begin() + 9);
        CHECK(b[0].tokens[3] == control("</think>"));
        CHECK(tail == std::vector<std::int32_t>{100, 101, 102, 103, 104});
        CHECK(b[0].reason == DSV4_REASON_STOP); // by one of the parser's stop tokens
        Ask bad = raw();
        bad.grammar = "bad";
        CHECK_THROWS_AS(Pending(*rig.engine, bad), Failure);
        Ask cancelled = ask;
        Pending p(*rig.engine, cancelled);
        p.cancel();
        p.finish();
    }
    CHECK(grammar.live_states == 0);
    CHECK(grammar.live_grammars == 0);
    Rig without;
    Ask ask = raw();
    ask.grammar = "counting";
    try {
        Pending p(*without.engine, ask);
        FAIL("a grammar was taken without a service");
    } catch (const Failure& f) {
        CHECK(f.error().code == Code::unsupported);
    }
}
