// Sampling parameters: ranges, defaults, merged lists.
#include "core/engine/capacity.hpp"
#include "core/engine/stop_strings.hpp"
#include "core/sampling/sampling.hpp"
#include "dsv4/sdk/generate.hpp"
#include "tests/engine/fake_backend.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <functional>
#include <limits>

using namespace dsv4;
using sampling::Sampling;

namespace {

const std::vector<std::int32_t> model_stops{1, 3};
const std::vector<std::int32_t> none;

Result<Sampling> resolve(const dsv4_generate_request& r, const sampling::Defaults& d = {},
                         const std::vector<std::int32_t>& banned = none) {
    return sampling::resolve(r, d, 2048, model_stops, banned, 77);
}

std::string message(const std::function<void(dsv4_generate_request&)>& change) {
    dsv4_generate_request r = sdk::default_request();
    change(r);
    const auto result = resolve(r);
    if (result.ok()) return "accepted";
    CHECK(result.error().code == Code::invalid);
    return result.error().message;
}

} // namespace

TEST_CASE("what a request leaves out comes from the deployment") {
    dsv4_generate_request r = sdk::default_request();
    const Sampling s = resolve(r, {0.6, 0.95, 40, 0.05}).value();
    CHECK(s.temperature == 0.6f);
    CHECK(s.top_p == 0.95f);
    CHECK(s.top_k == 40);
    CHECK(s.min_p == 0.05f);
    CHECK(s.presence_penalty == 0);
    CHECK(s.repetition_penalty == 1);
    CHECK_FALSE(s.penalised());
    CHECK(s.seed == 77);
    CHECK(s.logprobs == -1);
    CHECK(s.stop_ids == model_stops);

    r.sampling_said = DSV4_SAID_TEMPERATURE | DSV4_SAID_TOP_K | DSV4_SAID_SEED;
    r.sampling.temperature = 0;
    r.sampling.top_k = -1;
    r.sampling.seed = 5;
    const Sampling said = resolve(r, {0.6, 0.95, 40, 0.05}).value();
    CHECK(said.temperature == 0); // said, and zero
    CHECK(said.top_k == 0);
    CHECK(said.seed == 5);
    CHECK(said.top_p == 0.95f);
}

TEST_CASE("fields out of range are named first in the message") {
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    auto field = [](std::uint64_t bit, float dsv4_sampling::*member, float value) {
        return message([&](dsv4_generate_request& r) {
            r.sampling_said = bit;
            r.sampling.*member = value;
        });
    };
    using S = dsv4_sampling;
    for (float bad : {-0.1f, 2.1f, nan, inf})
        CHECK(field(DSV4_SAID_TEMPERATURE, &S::temperature, bad).rfind("temperature: ", 0) == 0);
    for (float good : {0.0f, 1.0f, 2.0f}) CHECK(field(DSV4_SAID_TEMPERATURE, &S::temperature, good) == "accepted");
    for (float bad : {0.0f, -1.0f, 1.01f, nan}) CHECK(field(DSV4_SAID_TOP_P, &S::top_p, bad).rfind("top_p: ", 0) == 0);
    for (float bad : {-0.1f, 1.1f, nan}) CHECK(field(DSV4_SAID_MIN_P, &S::min_p, bad).rfind("min_p: ", 0) == 0);
    for (float bad : {-2.1f, 2.1f, nan}) {
        CHECK(field(DSV4_SAID_PRESENCE_PENALTY, &S::presence_penalty, bad).rfind("presence_penalty: ", 0) == 0);
        CHECK(field(DSV4_SAID_FREQUENCY_PENALTY, &S::frequency_penalty, bad).rfind("frequency_penalty: ", 0) == 0);
    }
    for (float bad : {0.0f, -1.0f, nan, inf})
        CHECK(field(DSV4_SAID_REPETITION_PENALTY, &S::repetition_penalty, bad).rfind("repetition_penalty: ", 0) == 0);
    CHECK(message([](auto& r) {
              r.sampling_said = DSV4_SAID_TOP_K;
              r.sampling.top_k = -2;
          }).rfind("top_k: ", 0) == 0);
    CHECK(message([](auto& r) { r.sampling.logprobs = 21; }).rfind("top_logprobs: ", 0) == 0);
    CHECK(message([](auto& r) { r.sampling.logprobs = -2; }).rfind("top_logprobs: ", 0) == 0);
}

TEST_CASE("lists are checked, merged and sorted") {
    auto bias = [](std::vector<dsv4_bias> list) {
        return message([&](dsv4_generate_request& r) {
            r.sampling.bias = list.data();
            r.sampling.bias_count = std::uint32_t(list.size());
        });
    };
    CHECK(bias({{0, 100}, {2047, -100}}) == "accepted");
    CHECK(bias({{2048, 1}}).rfind("logit_bias: ", 0) == 0);
    CHECK(bias({{-1, 1}}).rfind("logit_bias: ", 0) == 0);
    CHECK(bias({{5, 101}}).rfind("logit_bias: ", 0) == 0);
    CHECK(bias({{5, std::numeric_limits<float>::quiet_NaN()}}).rfind("logit_bias: ", 0) == 0);
    CHECK(bias({{5, 1}, {5, 2}}).rfind("logit_bias: ", 0) == 0);
    CHECK(bias(std::vector<dsv4_bias>(1025, dsv4_bias{1, 1})).rfind("logit_bias: ", 0) == 0);

    dsv4_generate_request r = sdk::default_request();
    const dsv4_bias list[] = {{9, 1.5f}, {4, 2.0f}};
    const std::int32_t stops[] = {8, 3, 8};
    r.sampling.bias = list;
    r.sampling.bias_count = 2;
    r.sampling.stop_ids = stops;
    r.sampling.stop_count = 3;
    const Sampling s = resolve(r, {}, {9, 20}).value();
    REQUIRE(s.bias.size() == 3);
    CHECK(s.bias[0].token == 4);
    CHECK(s.bias[1].token == 9);
    CHECK(s.bias[1].value == sampling::never_bias); // a banned token wins over the client's wish
    CHECK(s.bias[2].token == 20);
    CHECK(s.stop_ids == std::vector<std::int32_t>{1, 3, 8});
    CHECK(s.stops_at(8));
    CHECK_FALSE(s.stops_at(9));
    const Sampling forced = s.forcing(9);
    CHECK(forced.bias.size() == 3);
    CHECK(forced.bias.back().token == 9);
    CHECK(forced.bias.back().value == sampling::always_bias);
}

TEST_CASE("stop strings are found however the text is cut, and nothing else is held back") {
    const std::string text = "one STOP two ENDE three";
    auto run = [&](const std::vector<std::string>& stops, std::size_t piece, bool include) {
        engine::StopStrings s(stops, include);
        std::string out;
        for (std::size_t at = 0; at < text.size(); at += piece)
            if (s.feed(text.substr(at, piece), out)) return out + "|" + s.matched();
        s.flush(out);
        return out + "|";
    };
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
        INFO("pieces of " << piece);
        CHECK(run({"STOP"}, piece, false) == "one |STOP");
        CHECK(run({"STOP"}, piece, true) == "one STOP|STOP");
        CHECK(run({"ENDE", "STOP"}, piece, false) == "one |STOP"); // the first in the text, not in the list
        CHECK(run({"TOP", "STOP"}, piece, false) == "one |STOP");  // both end there: the longer
        CHECK(run({"ENDER", "END"}, piece, false) == "one STOP two |END");
        CHECK(run({"nothing"}, piece, false) == text + "|");
        CHECK(run({}, piece, false) == text + "|");
    }
    engine::StopStrings s({"abc"}, false);
    std::string out;
    s.feed("xab", out);
    CHECK(out == "x");
    s.feed("d", out);
    CHECK(out == "xabd");
    s.set_active(false);
    CHECK_FALSE(s.feed("abc", out));
    CHECK(out == "xabdabc");
}

TEST_CASE("pools are sized for every slot, then blocks and boundary states share the rest") {
    test::FakeBackend backend;
    const auto layouts = backend.state_layouts(test::fake_program());
    engine::EngineConfig config;
    config.sliding_window = 128;
    config.max_model_len = 8192;
    config.max_sequences = 4;
    config.max_batched_tokens = 512;
    config.cache_bytes = 8 << 20;
    const auto sizes = engine::size_pools(layouts, config);
    CHECK(sizes.bytes <= config.cache_bytes);
    CHECK(sizes.boundary_states > 0);
    std::uint64_t bytes = 4 * 4096; // token counts
    for (std::size_t i = 0; i < sizes.rules.size(); ++i) {
        const auto& rule = sizes.rules[i];
        for (const auto& l : layouts)
            if (l.kind == rule.kind) bytes += l.page_bytes * sizes.pages[i];
        if (rule.grows())
            CHECK(sizes.pages[i] >= 8192 / 256); // one sequence of full length
        else                                     // four sequences with their reach, and two steps of rows
            CHECK(std::int64_t(sizes.pages[i]) * rule.positions_per_page >= 4 * rule.reach_positions + 2 * 512);
    }
    CHECK(bytes == sizes.bytes);
    config.prefix_caching = false;
    CHECK(engine::size_pools(layouts, config).boundary_states == 0);
    config.cache_bytes = 100'000;
    try {
        engine::size_pools(layouts, config);
        FAIL("a cache too small for its slots was accepted");
    } catch (const Failure& f) {
        CHECK(f.error().code == Code::exhausted);
        CHECK_THAT(f.error().message, ContainsSubstring("at least"));
    }
}

TEST_CASE("the cache budget is the stated bytes or what the device has left") {
    plan::KvPolicy kv;
    dsv4_device_info device{};
    device.memory_bytes = 1000;
    dsv4_memory_report in_use{};
    in_use.weights_bytes = 300;
    in_use.workspace_bytes = 100;
    kv.utilization = 0.9;
    CHECK(engine::cache_budget(kv, device, in_use) == 500);
    in_use.weights_bytes = 2000;
    CHECK(engine::cache_budget(kv, device, in_use) == 0);
    kv.cache_bytes = 123;
    CHECK(engine::cache_budget(kv, device, in_use) == 123);
}
