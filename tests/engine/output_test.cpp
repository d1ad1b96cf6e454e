// Tokens to text: characters over several tokens, parts of the answer, echo, what happens at the end.
#include "core/engine/output.hpp"
#include "tests/engine/harness.hpp"

using namespace dsv4;
using namespace dsv4::test;
using engine::DeltaOut;
using engine::Output;
using engine::OutputOptions;

namespace {

std::int32_t control(const char* name) { return *tiny_tokenizer().control_id(name); }

std::string content(const std::vector<DeltaOut>& deltas, dsv4_delta_kind kind = DSV4_DELTA_CONTENT) {
    std::string all;
    for (const DeltaOut& d : deltas)
        if (d.kind == kind) all += d.text;
    return all;
}

// Single-byte tokens of a text, so that characters are cut.
std::vector<std::int32_t> bytes_of(const std::string& text) {
    std::vector<std::int32_t> ids;
    for (char c : text)
        for (std::int32_t id = 0; id < 2048; ++id)
            if (!tiny_tokenizer().is_control(id) && tiny_tokenizer().bytes(id) == std::string_view(&c, 1)) {
                ids.push_back(id);
                break;
            }
    REQUIRE(ids.size() == text.size());
    return ids;
}

} // namespace

TEST_CASE("a character over several tokens comes out whole, a broken one as one replacement") {
    Output out(tiny_tokenizer(), {}, {});
    std::vector<DeltaOut> deltas;
    for (std::int32_t t : bytes_of("a\u20acb")) {
        const std::size_t before = deltas.size();
        out.push(t, false, deltas);
        for (std::size_t i = before; i < deltas.size(); ++i)
            CHECK(tokenizer::utf8_valid_prefix(deltas[i].text) == deltas[i].text.size());
    }
    CHECK(content(deltas) == "a\u20acb");
    out.push(bytes_of("\xe2\x82")[0], false, deltas);
    CHECK(out.finish(DSV4_STOPPED_LENGTH, deltas) == DSV4_REASON_LENGTH);
    CHECK(content(deltas) == "a\u20acb\ufffd");
}

TEST_CASE("each token says where it belongs") {
    OutputOptions options;
    options.chat = options.thinking = true;
    options.reasoning_end = control("</think>");
    Output out(tiny_tokenizer(), loaded_parser(), options);
    std::vector<DeltaOut> deltas;
    auto push = [&](std::int32_t token, bool ends = false) {
        out.push(token, ends, deltas);
        return out.part();
    };
    CHECK(push(bytes_of("x")[0]) == DSV4_DELTA_REASONING);
    CHECK(push(control("</think>")) == 0);
    CHECK(push(bytes_of("y")[0]) == DSV4_DELTA_CONTENT);
    CHECK(push(1, true) == 0);
    CHECK(out.reasoning_tokens() == 1);
    out.finish(DSV4_STOPPED_EOS, deltas);
    CHECK(content(deltas) == "y");
    CHECK(content(deltas, DSV4_DELTA_REASONING) == "x");
}

TEST_CASE("text held for a stop string is released at the end") {
    OutputOptions options;
    options.stop_strings = {"xyz"};
    Output out(tiny_tokenizer(), {}, options);
    std::vector<DeltaOut> deltas;
    for (std::int32_t t : bytes_of("axy")) CHECK_FALSE(out.push(t, false, deltas));
    CHECK(content(deltas) == "a");
    CHECK(out.finish(DSV4_STOPPED_EOS, deltas) == DSV4_REASON_STOP);
    CHECK(content(deltas) == "axy");
}

TEST_CASE("a stop string that the parser releases only at the end still counts") {
    OutputOptions options;
    options.chat = true;
    options.tools_enabled = true; // newlines are held: markup may follow
    options.stop_strings = {"\n\n"};
    Output out(tiny_tokenizer(), loaded_parser(), options);
    std::vector<DeltaOut> deltas;
    for (std::int32_t t : bytes_of("ab\n\n")) out.push(t, false, deltas);
    CHECK(out.finish(DSV4_STOPPED_LENGTH, deltas) == DSV4_REASON_STOP);
    CHECK(out.matched_stop() == "\n\n");
    CHECK(content(deltas) == "ab");
}

TEST_CASE("an echo comes in events of its own before what was generated") {
    Rig rig;
    Ask ask;
    ask.text = "echo me";
    ask.max_tokens = 3;
    ask.echo = true;
    ask.n = 2;
    Pending p(*rig.engine, ask);
    const dsv4_event* e = nullptr;
    std::size_t prompt_events = 0;
    const auto prompt = tiny_tokenizer().encode(ask.text).value();
    std::vector<std::size_t> tokens(2, 0);
    for (int finals = 0; finals < 2;) {
        sdk::check(engine::Engine::service().next(rig.engine.get(), p.handle(), 5'000'000, &e));
        REQUIRE(e);
        if (e->kind == DSV4_EVENT_FINISHED) ++finals;
        if (e->kind != DSV4_EVENT_TOKENS) continue;
        if (tokens[e->index] == 0) {
            REQUIRE(e->token_count == prompt.size());
            for (std::size_t i = 0; i < prompt.size(); ++i) CHECK(e->tokens[i].id == prompt[i]);
            REQUIRE(e->delta_count == 1);
            CHECK(sdk::view(e->deltas[0].text) == "echo me");
            ++prompt_events;
        }
        tokens[e->index] += e->token_count;
    }
    CHECK(prompt_events == 2);
    CHECK(tokens[0] == prompt.size() + 3);
    // Behind the last event next answers at once, however long it may wait.
    sdk::check(engine::Engine::service().next(rig.engine.get(), p.handle(), UINT64_MAX, &e));
    CHECK(e == nullptr);
}
