// verify and markov_step on given logits: greedy chains, and the distribution of what speculation emits.
#include <algorithm>
#include <cmath>

#include "client.hpp"
#include "dsv4/sdk/generate.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::test;

namespace {

constexpr std::int64_t vocabulary = 6, width = 4, rank = 3;

// Two Programs: a draft chain over given logits and hidden rows, and the verification of given logits.
struct Programs {
    program::Program draft, verify, sample;
};
Programs programs(bool greedy) {
    using namespace program;
    Programs out;
    const auto counts = [](Program& p) {
        return p.state(DSV4_STATE_TOKEN_COUNTS, 0, {static_cast<std::uint32_t>(vocabulary)}, DSV4_I32);
    };
    {
        Program& p = out.draft;
        p.name = "draft";
        p.precision = DSV4_SCORE;
        const ValueId logits = p.value("logits", DSV4_F32, {logit_rows, vocabulary}),
                      x = p.value("x", DSV4_F32, {rows, width}), token = p.value("draft", DSV4_I32, {logit_rows}),
                      confidence = p.value("confidence", DSV4_F32, {logit_rows});
        const WeightId w1 = p.weight("w1", formats::f32, {vocabulary, rank}),
                       w2 = p.weight("w2", formats::f32, {vocabulary, rank}),
                       c = p.weight("confidence", formats::f32, {1, width + rank});
        counts(p);
        Op& o = p.op("markov_step");
        o.inputs = {logits, x};
        o.weights = {w1, w2, c};
        o.outputs = {token, confidence};
        o.attributes["greedy"] = static_cast<std::int64_t>(greedy);
        p.inputs = {logits, x};
        p.outputs = {token, confidence};
    }
    for (Program* p : {&out.verify, &out.sample}) {
        const bool verifies = p == &out.verify;
        p->name = verifies ? "verify" : "sample";
        p->precision = DSV4_SCORE;
        const ValueId logits = p->value("logits", DSV4_F32, {logit_rows, vocabulary}),
                      token = p->value("token", DSV4_I32, {logit_rows}),
                      other = p->value("other", verifies ? DSV4_I32 : DSV4_F32, {logit_rows});
        const StateId state = counts(*p);
        Op& o = p->op(verifies ? "verify" : "sample");
        o.inputs = {logits};
        o.states = {state};
        o.outputs = {token, other};
        p->inputs = {logits};
        p->outputs = {token, other};
    }
    return out;
}

std::vector<WeightData> weights() {
    const std::vector<float> w1{0.5f, -0.2f, 0.1f, 0.3f,  0.9f, -0.4f, -0.7f, 0.2f, 0.6f,
                                0.1f, 0.1f,  0.1f, -0.3f, 0.8f, -0.9f, 0.4f,  0.0f, 0.7f},
        w2{0.2f, 0.4f, -0.6f, 0.7f, -0.1f, 0.3f, -0.5f, 0.5f, 0.5f,
           0.9f, 0.2f, -0.2f, 0.1f, -0.8f, 0.4f, 0.3f,  0.6f, 0.0f},
        c{1, 2, 3, 4, 0.5f, 0.25f, 0.125f};
    return {{"w1", program::formats::f32, {vocabulary, rank}, {{bytes_of(w1), {}}}},
            {"w2", program::formats::f32, {vocabulary, rank}, {{bytes_of(w2), {}}}},
            {"confidence", program::formats::f32, {1, width + rank}, {{bytes_of(c), {}}}}};
}

dsv4_sampling sampling(float temperature, std::uint64_t seed) {
    dsv4_sampling s = sdk::default_sampling();
    s.temperature = temperature;
    s.seed = seed;
    return s;
}

std::vector<double> softmax(std::vector<double> l) {
    double sum = 0;
    for (double& v : l) sum += v = std::exp(v);
    for (double& v : l) v /= sum;
    return l;
}

// The target's next-token distribution after `previous`; deliberately unlike the draft's.
const double target_table[vocabulary][vocabulary] = {{1, 0, 0.5, -1, 0.2, 0}, {0, 2, -1, 0.3, 0, 1},
                                                     {-1, 0.4, 1, 0, 0.8, 0}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6},
                                                     {2, 0, -2, 1, 0, -1},    {0, 0, 1.5, 0, -0.5, 0.7}};

} // namespace

TEST_CASE("a Markov chain drafts from the token before", "[speculation]") {
    const Plugin plugin("f64");
    Client client(plugin);
    client.load(weights());
    const Programs p = programs(true);
    client.allocate(p.verify, 1, 64);
    auto* draft = client.compile(p.draft);
    auto* sample = client.compile(p.sample);
    // The anchor: a sampled token.
    const dsv4_sampling s = sampling(0, 1);
    std::vector<float> anchor_logits(vocabulary, 0.0f);
    anchor_logits[4] = 5;
    const auto anchor = client.run({sample,
                                    {{0, true, 0, &s}},
                                    {{0, DSV4_INPUT_GIVEN, 0, DSV4_ROW_LOGITS, 0}},
                                    {{"logits", bytes_of(anchor_logits)}}});
    REQUIRE(anchor.tokens.at(0).token == 4);
    const std::vector<float> logits{0.1f, 0, 0, 0, 0, 0.05f, 0, 0.3f, 0, 0, 0, 0}, x{1, 0, 0, 0, 0, 1, 0, 0.5f};
    Client::Outputs out{{"draft", std::vector<std::uint8_t>(8)}, {"confidence", std::vector<std::uint8_t>(8)}};
    const std::uint32_t flags = DSV4_ROW_DRAFT | DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE;
    client.run({draft,
                {{0}},
                {{0, DSV4_INPUT_LAST, 0, flags, 0}, {0, DSV4_INPUT_NOISE, 0, flags, 1}},
                {{"logits", bytes_of(logits)}, {"x", bytes_of(x)}},
                &out});
    // By hand: w1[4] = (-0.3, 0.8, -0.9); logits_1 + w2 w1[4] = (.9, -.56, .1, .07, -1.03, .44): d_1 = 0.
    // w1[0] = (0.5, -0.2, 0.1); logits_2 + w2 w1[0] = (-.04, .7, -.3, .39, .25, .03): d_2 = 1.
    CHECK(values_of<std::int32_t>(out.at("draft")) == std::vector<std::int32_t>{0, 1});
    const auto confidence = values_of<float>(out.at("confidence"));
    CHECK(confidence[0] == Approx(1 + 0.5 * -0.3 + 0.25 * 0.8 + 0.125 * -0.9));
    CHECK(confidence[1] == Approx(2 + 4 * 0.5 + 0.5 * 0.5 + 0.25 * -0.2 + 0.125 * 0.1));
}

TEST_CASE("speculation emits the target's distribution", "[speculation]") {
    const bool greedy = GENERATE(false, true);
    const float temperature = GENERATE(1.0f, 0.7f);
    const Plugin plugin("f64");
    Client client(plugin);
    client.load(weights());
    const Programs programs_ = programs(greedy);
    constexpr std::int32_t slots = 1000;
    constexpr int rounds = 20, drafts = 2;
    client.allocate(programs_.verify, slots, 4);
    auto* draft = client.compile(programs_.draft, 4000, slots);
    auto* verify = client.compile(programs_.verify, 4000, slots);
    auto* sample = client.compile(programs_.sample, 4000, slots);

    // All slots: anchor 4 by bias of the logits, two drafts, then verification against target_table.
    std::vector<double> first(vocabulary), pair(vocabulary * vocabulary);
    double emitted = 0, samples = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<dsv4_sampling> s;
        for (std::int32_t i = 0; i < slots; ++i)
            s.push_back(
                sampling(temperature, static_cast<std::uint64_t>(round) * slots + static_cast<std::uint64_t>(i)));
        Client::Item start{sample, {}, {}}, chain{draft, {}, {}}, check{verify, {}, {}};
        std::vector<float> start_logits, chain_logits, x(static_cast<std::size_t>(slots) * drafts * width, 0.0f);
        for (std::int32_t i = 0; i < slots; ++i) {
            start.slots.push_back({i, true, 0, &s[static_cast<std::size_t>(i)]});
            start.rows.push_back({i, DSV4_INPUT_GIVEN, 0, DSV4_ROW_LOGITS, 0});
            for (std::int64_t v = 0; v < vocabulary; ++v) start_logits.push_back(v == 4 ? 200.0f : 0.0f);
            chain.slots.push_back({i});
            check.slots.push_back({i});
            for (int k = 0; k < drafts; ++k) {
                chain.rows.push_back({i, DSV4_INPUT_NOISE, 0, DSV4_ROW_DRAFT | DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, k});
                for (std::int64_t v = 0; v < vocabulary; ++v) chain_logits.push_back(0.3f * static_cast<float>(v % 3));
            }
        }
        start.inputs = {{"logits", bytes_of(start_logits)}};
        chain.inputs = {{"logits", bytes_of(chain_logits)}, {"x", bytes_of(x)}};
        Client::Outputs drafted{{"draft", std::vector<std::uint8_t>(slots * drafts * 4)}};
        chain.outputs = &drafted;
        client.run(start);
        client.run(chain);
        const auto d = values_of<std::int32_t>(drafted.at("draft"));
        std::vector<float> target;
        for (std::int32_t i = 0; i < slots; ++i)
            for (int k = 0; k <= drafts; ++k) {
                check.rows.push_back({i, k == 0 ? DSV4_INPUT_LAST : DSV4_INPUT_DRAFT, k - 1,
                                      DSV4_ROW_VERIFY | DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, k});
                if (k == 0) check.rows.back().token = 0;
                const std::int32_t previous = k == 0 ? 4 : d[static_cast<std::size_t>(i * drafts + k - 1)];
                for (std::int64_t v = 0; v < vocabulary; ++v)
                    target.push_back(static_cast<float>(target_table[previous][v]));
            }
        check.inputs = {{"logits", bytes_of(target)}};
        const TicketOutput out = client.run(check);
        REQUIRE(out.errors.empty());
        std::map<std::int32_t, std::vector<std::int32_t>> of_slot;
        for (const Token& t : out.tokens) of_slot[t.slot].push_back(t.token);
        for (const auto& [slot, tokens] : of_slot) {
            ++samples;
            emitted += static_cast<double>(tokens.size());
            first[static_cast<std::size_t>(tokens[0])] += 1;
            if (tokens.size() > 1) pair[static_cast<std::size_t>(tokens[0] * vocabulary + tokens[1])] += 1;
        }
    }
    REQUIRE(samples == rounds * slots);
    CHECK(emitted > samples); // drafts do get accepted

    // The first token is distributed as the target's row; given the first, a second one too, where it came.
    const auto scaled = [&](std::size_t previous) {
        std::vector<double> l;
        for (std::int64_t v = 0; v < vocabulary; ++v) l.push_back(target_table[previous][v] / temperature);
        return softmax(l);
    };
    const auto p = scaled(4);
    double chi = 0;
    for (std::size_t v = 0; v < vocabulary; ++v) chi += std::pow(first[v] - samples * p[v], 2) / (samples * p[v]);
    CHECK(chi < 25.7); // 5 degrees of freedom, one chance in 10^4
    for (std::size_t a = 0; a < vocabulary; ++a) {
        double n = 0, second = 0;
        for (std::size_t v = 0; v < vocabulary; ++v) n += pair[a * vocabulary + v];
        if (n < 500) continue;
        const auto q = scaled(a);
        for (std::size_t v = 0; v < vocabulary; ++v)
            second += std::pow(pair[a * vocabulary + v] - n * q[v], 2) / (n * q[v]);
        INFO("after token " << a);
        CHECK(second < 25.7);
    }
}

TEST_CASE("greedy speculation gives the tokens of plain greedy decoding", "[speculation]") {
    const Plugin plugin("f64");
    Client client(plugin);
    client.load(weights());
    const Programs p = programs(true);
    client.allocate(p.verify, 1, 64);
    auto* draft = client.compile(p.draft);
    auto* verify = client.compile(p.verify);
    auto* sample = client.compile(p.sample);
    const dsv4_sampling s = sampling(0, 1);
    std::vector<float> anchor_logits(vocabulary, 0.0f);
    anchor_logits[4] = 5;
    client.run({sample,
                {{0, true, 0, &s}},
                {{0, DSV4_INPUT_GIVEN, 0, DSV4_ROW_LOGITS, 0}},
                {{"logits", bytes_of(anchor_logits)}}});
    std::vector<std::int32_t> expected, got;
    const auto best = [](std::size_t previous) {
        const auto* row = target_table[previous];
        return static_cast<std::int32_t>(std::max_element(row, row + vocabulary) - row);
    };
    for (std::int32_t t = 4; expected.size() < 12;) expected.push_back(t = best(static_cast<std::size_t>(t)));
    std::int32_t last = 4;
    std::int64_t position = 2;
    bool rejected = false, accepted = false;
    for (int step = 0; got.size() < 12; ++step) {
        const std::uint32_t flags = DSV4_ROW_DRAFT | DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE;
        // A first draft that is right every other time.
        std::vector<float> logits(2 * vocabulary, 0.0f);
        logits[static_cast<std::size_t>(best(static_cast<std::size_t>(last)))] = step % 2 == 0 ? 50.0f : -50.0f;
        Client::Outputs out{{"draft", std::vector<std::uint8_t>(8)}};
        client.run({draft,
                    {{0}},
                    {{0, DSV4_INPUT_LAST, 0, flags, 0}, {0, DSV4_INPUT_NOISE, 0, flags, 1}},
                    {{"logits", bytes_of(logits)}, {"x", bytes_of(std::vector<float>(2 * width))}},
                    &out});
        const auto d = values_of<std::int32_t>(out.at("draft"));
        std::vector<float> target;
        for (const std::int32_t previous : {last, d[0], d[1]})
            for (std::int64_t v = 0; v < vocabulary; ++v)
                target.push_back(static_cast<float>(target_table[previous][v]));
        const std::uint32_t v = DSV4_ROW_VERIFY | DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE;
        const TicketOutput result =
            client.run({verify,
                        {{0}},
                        {{0, DSV4_INPUT_LAST, 0, v, 0}, {0, DSV4_INPUT_DRAFT, 0, v, 1}, {0, DSV4_INPUT_DRAFT, 1, v, 2}},
                        {{"logits", bytes_of(target)}}});
        REQUIRE(!result.tokens.empty());
        REQUIRE(result.tokens.size() == static_cast<std::size_t>(result.tokens[0].accepted) + 1);
        (result.tokens.size() > 1 ? accepted : rejected) = true;
        for (const Token& t : result.tokens) {
            CHECK(t.position == position++);
            got.push_back(t.token);
        }
        last = got.back();
    }
    got.resize(12);
    CHECK(got == expected);
    CHECK(rejected);
    CHECK(accepted);
}
