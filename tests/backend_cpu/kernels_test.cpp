// Single kernels against values worked out by hand or published with the model's description.
#include <array>
#include <cmath>

#include "dsv4/sdk/result.hpp"
#include "plugins/backend-cpu/kernels/attend.hpp"
#include "plugins/backend-cpu/kernels/compress.hpp"
#include "plugins/backend-cpu/kernels/dot.hpp"
#include "plugins/backend-cpu/kernels/experts.hpp"
#include "plugins/backend-cpu/kernels/head.hpp"
#include "plugins/backend-cpu/kernels/hyper_connection.hpp"
#include "plugins/backend-cpu/kernels/index_select.hpp"
#include "plugins/backend-cpu/kernels/philox.hpp"
#include "plugins/backend-cpu/kernels/query_key.hpp"
#include "plugins/backend-cpu/kernels/sample.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4::cpu;

namespace {

constexpr Numerics score{Precision::score, Accum::f64};
constexpr Numerics strict{Precision::serve, Accum::f64};
constexpr Numerics serve{Precision::serve, Accum::f32};
const Serial serial;

const RopeParameters plain_rope{64, 10000.0};
const RopeParameters yarn_rope{64, 160000.0, 16, 65536, 32, 1};

} // namespace

TEST_CASE("Sinkhorn", "[kernels]") {
    const std::array<float, 16> inputs[] = {{2, 0, -1, 1, 0, 3, 1, -2, -1, 0.5f, 2, 0, 1, -1, 0, 2.5f},
                                            {5, -5, 0, 0, 5, 0, -5, 0, 5, 0, 0, -5, 0, 1, 2, 3}};
    const std::array<float, 16> expected[] = {
        {.700568f, .065635f, .032754f, .201050f, .056940f, .791697f, .145341f, .006012f, .039867f, .123683f, .751907f,
         .084537f, .202625f, .018984f, .069998f, .708400f},
        {.371509f, .003448f, .382056f, .242986f, .332384f, .447864f, .002354f, .217397f, .295830f, .398609f, .304228f,
         .001333f, .000276f, .150079f, .311360f, .538284f}};
    for (const auto& numerics : {score, strict, serve})
        for (int i = 0; i < 2; ++i) {
            auto c = inputs[i];
            sinkhorn(c, 4, 20, 1e-6f, numerics);
            for (std::size_t k = 0; k < 16; ++k) CHECK(std::fabs(c[k] - expected[i][k]) <= 2e-6f);
        }
}

TEST_CASE("rotary tables at a million positions", "[kernels]") {
    struct Case {
        const RopeParameters& parameters;
        std::size_t pair;
        double f, cosine, sine;
    };
    const Case cases[] = {{plain_rope, 1, 0.749894202, -0.669457, 0.742851},
                          {plain_rope, 31, 1.3335215e-4, 0.164775, 0.986331},
                          {yarn_rope, 1, 0.687656045, 0.644629, -0.764496},
                          {yarn_rope, 16, 2.26562493e-3, -0.859402, -0.511300},
                          {yarn_rope, 31, 5.6805294e-7, 0.842950, 0.537992}};
    for (const auto& c : cases) {
        const RopeTable table(c.parameters);
        std::vector<float> cosines(32), sines(32);
        table.angles(1'000'000, false, strict, cosines, sines);
        INFO("pair " << c.pair << " theta " << c.parameters.theta);
        CHECK(table.frequencies()[c.pair] == Approx(c.f).epsilon(1e-7));
        CHECK(std::fabs(cosines[c.pair] - c.cosine) <= 1e-6);
        CHECK(std::fabs(sines[c.pair] - c.sine) <= 1e-6);
    }
    const RopeTable yarn(yarn_rope);
    const std::pair<std::size_t, double> frequencies[] = {
        {0, 1.0}, {15, 3.635539e-3}, {20, 2.969778e-4}, {24, 1.953125e-5}, {25, 5.372313e-6}};
    for (const auto& [i, f] : frequencies) CHECK(yarn.frequencies()[i] == Approx(f).epsilon(1e-6));
}

TEST_CASE("a rotation undoes itself and leaves the other channels", "[kernels]") {
    const RopeTable table(yarn_rope);
    std::vector<float> row(80), before;
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i));
    before = row;
    rotate_at(row, table, 12345, false, score);
    CHECK(std::equal(row.begin(), row.begin() + 16, before.begin()));
    CHECK(std::fabs(row[20] - before[20]) > 1e-3f);
    rotate_at(row, table, 12345, true, score);
    for (std::size_t i = 0; i < row.size(); ++i) CHECK(std::fabs(row[i] - before[i]) <= 1e-6f);
}

TEST_CASE("router scores", "[kernels]") {
    const std::pair<float, double> cases[] = {{-20, 4.539993e-5}, {-5, 0.08194723}, {-1, 0.55969785}, {0, 0.83255461},
                                              {1, 1.1459763},     {5, 2.2375691},   {20, 4.472136},   {25, 5}};
    for (const auto& [z, expected] : cases) {
        CHECK(sqrt_softplus_as<double>(z) == Approx(expected).epsilon(2e-7));
        CHECK(sqrt_softplus_as<float>(z) == Approx(expected).epsilon(1e-6));
    }
}

TEST_CASE("Hadamard transform of index rows", "[kernels]") {
    std::vector<float> unit(128), ramp(128);
    unit[0] = 1;
    for (std::size_t i = 0; i < 128; ++i) ramp[i] = static_cast<float>(i);
    hadamard(unit, strict);
    hadamard(ramp, strict);
    for (const float v : unit) CHECK(v == 0.08837890625f);
    const std::pair<std::size_t, float> expected[] = {{0, 720.0f},   {1, -5.65625f}, {2, -11.3125f}, {3, 0.0f},
                                                      {4, -22.625f}, {8, -45.25f},   {16, -90.5f},   {32, -181.0f},
                                                      {64, -362.0f}, {127, 0.0f}};
    for (const auto& [i, v] : expected) CHECK(ramp[i] == v);
    // An index row is that in FP4: with 720 in its group the scale is 2^7, and 5.625 takes the code of 6.
    for (std::size_t i = 0; i < 128; ++i) ramp[i] = static_cast<float>(i);
    index_round(ramp, strict);
    CHECK(ramp[0] == 768.0f);
    CHECK(ramp[4] == 0.0f);
    CHECK(ramp[16] == -64.0f);
    std::vector<float> untouched{1, 2, 3, 4};
    index_round(untouched, score);
    CHECK(untouched == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("pooling of overlapping windows", "[kernels]") {
    // One channel; first half u = 10 + t with z = 0, second half u = 100 + t with z = ln 2.
    constexpr std::size_t d = 4;
    Compressor c;
    c.width = d;
    c.eps = 0;
    const std::vector<float> ones(d, 1.0f);
    c.norm_weight = ones;
    std::vector<std::vector<float>> u, z;
    for (int t = 0; t < 8; ++t) {
        // Channel 0 as described; channel 1 constant, so that the norm can be taken back.
        u.push_back({10.0f + static_cast<float>(t), 50, 0, 0, 100.0f + static_cast<float>(t), 50, 0, 0});
        const float l = std::log(2.0f);
        z.push_back({0, 0, 0, 0, l, l, l, l});
    }
    const auto pooled = [&](std::vector<Partial> tokens, std::int64_t window) {
        std::vector<float> out(d);
        const RopeTable table({2, 10000.0});
        close_window(tokens, window, c, table, out, score);
        return out[0] / out[1] * 50;
    };
    std::vector<Partial> first(8), second(8);
    for (std::size_t i = 0; i < 8; ++i) {
        second[i] = {u[i].data(), z[i].data()};
        if (i >= 4) first[i] = {u[i - 4].data(), z[i - 4].data()};
    }
    CHECK(pooled(first, 0) == Approx(101.5).epsilon(1e-6));
    CHECK(pooled(second, 1) == Approx((10 + 11 + 12 + 13 + 2.0 * (104 + 105 + 106 + 107)) / 12).epsilon(1e-6));
}

TEST_CASE("a sink takes its share and gives no value", "[kernels]") {
    // Logits (0, ln 2) and sink 0: weights 1/4 and 1/2. Two rows of width 2; q . kv / sqrt(2) are the logits.
    const float l = std::log(2.0f) * std::sqrt(2.0f);
    const std::vector<float> q{1, 0}, kv{0, 8, l, 4}, sink{0};
    const RopeTable table({2, 10000.0});
    std::vector<float> out(2);
    attend(q, {kv.data(), 2, 2}, 2, sink, table, 0, {1, 4, 64}, out, score);
    CHECK(out[0] == Approx(l / 2).epsilon(1e-6));
    CHECK(out[1] == Approx(8.0 / 4 + 4.0 / 2).epsilon(1e-6));
    // A sink far above every logit leaves nothing, and no NaN.
    const std::vector<float> large{1000};
    attend(q, {kv.data(), 2, 2}, 2, large, table, 0, {1, 4, 64}, out, score);
    CHECK(out == std::vector<float>{0, 0});
    // No rows at all: only the sink.
    attend(q, {kv.data(), 0, 2}, 0, sink, table, 0, {1, 4, 64}, out, score);
    CHECK(out == std::vector<float>{0, 0});
}

TEST_CASE("experts clamp the gate from above and the rest on both sides", "[kernels]") {
    const auto run = [](float gate, float up) {
        const std::vector<float> x{1}, w1{gate}, w3{up}, w2{1};
        const auto matrix = [](const std::vector<float>& v) {
            return Matrix{WeightFormat::f32, 1, 1, v.data(), nullptr};
        };
        const Expert e{matrix(w1), matrix(w2), matrix(w3)};
        std::vector<float> y(1);
        experts({x.data(), 1, 1}, {}, {nullptr, 0, 0}, {}, e, {y.data(), 1, 1}, {10.0f, Quantiser::none}, score,
                serial);
        return y[0];
    };
    const auto silu = [](double v) { return v / (1 + std::exp(-v)); };
    CHECK(run(-50, -50) == Approx(silu(-50) * -10).epsilon(1e-6));
    CHECK(run(50, 50) == Approx(silu(10) * 10).epsilon(1e-6));
    CHECK(run(2, 3) == Approx(silu(2) * 3).epsilon(1e-6));
}

TEST_CASE("packed nibbles: the even element is the low one", "[kernels]") {
    std::vector<std::uint8_t> codes(16, 0x2F);
    const std::uint8_t scale = 119; // 2^-8
    const Matrix m{WeightFormat::fp4_block32, 1, 32, codes.data(), &scale};
    std::vector<float> row(32);
    dequantise_row(m, 0, row.data());
    for (std::size_t i = 0; i < 32; ++i) CHECK(row[i] == (i % 2 == 0 ? -6.0f : 1.0f) * 0x1p-8f);
}

TEST_CASE("dot products do not depend on company, and double sums round once", "[kernels]") {
    std::vector<float> x(1003), w[4];
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    for (std::size_t r = 0; r < 4; ++r)
        for (std::size_t i = 0; i < x.size(); ++i) w[r].push_back(std::cos(static_cast<float>(i * (r + 1))));
    for (const std::size_t n : {0u, 1u, 15u, 16u, 17u, 1003u}) {
        const float* rows[4] = {w[0].data(), w[1].data(), w[2].data(), w[3].data()};
        float narrow[4], wide[4];
        dot4_f32(x.data(), rows, n, narrow);
        dot4_f64(x.data(), rows, n, wide);
        for (std::size_t r = 0; r < 4; ++r) {
            CHECK(narrow[r] == dot_f32(x.data(), w[r].data(), n));
            CHECK(wide[r] == dot_f64(x.data(), w[r].data(), n));
            long double sum = 0;
            for (std::size_t i = 0; i < n; ++i) sum += static_cast<long double>(x[i]) * w[r][i];
            CHECK(wide[r] == static_cast<float>(sum));
            CHECK(std::fabs(narrow[r] - static_cast<float>(sum)) <= 1e-4f);
        }
    }
}

TEST_CASE("selection: best first, lower index wins, NaN last", "[kernels]") {
    const std::vector<float> s{1, 3, 3, -1, NAN, 3, 2};
    CHECK(top_k(s, 4) == std::vector<std::int32_t>{1, 2, 5, 6});
    CHECK(top_k(s, 99) == std::vector<std::int32_t>{1, 2, 5, 6, 0, 3, 4});
    CHECK(top_k({}, 3).empty());
}

TEST_CASE("tap is the mean over streams", "[kernels]") {
    const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{0, 0, 0, 2, 2, 2};
    std::vector<float> out(4);
    const RowsIn in[] = {{a.data(), 1, 6}, {b.data(), 1, 6}};
    tap(in, 3, {out.data(), 1, 4}, score);
    CHECK(out == std::vector<float>{3, 4, 2.0f / 3, 4.0f / 3});
}

TEST_CASE("Philox4x32-10 known answers", "[sampling]") {
    using Words = std::array<std::uint32_t, 4>;
    CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
    for (std::uint32_t v = 0; v < 1000; ++v) {
        const double u = uniform(7, 9, Stream::draft, v);
        CHECK((u > 0 && u < 1));
    }
}

TEST_CASE("filters keep the right tokens", "[sampling]") {
    // Probabilities .1 .3 .3 .2 .1
    std::vector<float> logits;
    for (const double p : {.1, .3, .3, .2, .1}) logits.push_back(static_cast<float>(std::log(p)));
    SamplingParameters s;
    s.temperature = 1;
    const auto ids = [&] { return distribution(logits, s).ids; };
    using Ids = std::vector<std::int32_t>;
    CHECK(ids() == Ids{0, 1, 2, 3, 4});
    s.top_k = 1;
    CHECK(ids() == Ids{1}); // the tie goes to the lower id
    s.top_k = 4;
    CHECK(ids() == Ids{0, 1, 2, 3});
    s.top_k = 0;
    s.top_p = 0.5f;
    CHECK(ids() == Ids{1, 2});
    s.top_p = 0.7f;
    CHECK(ids() == Ids{1, 2, 3});
    s.top_p = 1e-6f;
    CHECK(ids() == Ids{1});
    s.top_p = 1;
    s.min_p = 0.5f;
    CHECK(ids() == Ids{1, 2, 3});
    s.min_p = 0;
    s.temperature = 0;
    CHECK(ids() == Ids{1});
    s.temperature = 0.5f; // squares the odds
    const auto d = distribution(logits, s);
    CHECK(d.probabilities[1] == Approx(.09 / (.01 + .09 + .09 + .04 + .01)));
    logits[2] = -INFINITY;
    CHECK(ids() == Ids{0, 1, 3, 4});
    CHECK(distribution(logits, s).of(2) == 0);
    logits[0] = NAN;
    CHECK_THROWS_AS(distribution(logits, s), dsv4::Failure);
    CHECK_THROWS_AS(distribution(std::vector<float>(3, -INFINITY), s), dsv4::Failure);
}

TEST_CASE("bias, penalties and forbidden ids", "[sampling]") {
    std::vector<float> logits{2, -2, 1, 0.5f, 3};
    SamplingParameters s;
    s.bias = {{3, 1.5f}};
    s.repetition_penalty = 2;
    s.frequency_penalty = 0.25f;
    s.presence_penalty = 0.5f;
    const std::vector<TokenCount> counts{in_prompt, in_prompt | 2, 0, 1, 0};
    const std::vector<std::int32_t> stops{4};
    adjust_logits(logits, s, counts, stops);
    // 0: prompt only, divided; 1: multiplied, then twice .25 and .5 off; 3: biased first, divided, .25 and .5 off.
    CHECK(logits == std::vector<float>{1, -5, 1, 0.25f, -INFINITY});
}

TEST_CASE("draws follow the distribution and are a function of seed and position", "[sampling]") {
    const Distribution d{{2, 5, 7, 11}, {0.1f, 0.2f, 0.3f, 0.4f}};
    std::array<double, 12> seen{};
    constexpr int n = 40000;
    for (int i = 0; i < n; ++i) seen[static_cast<std::size_t>(draw(d, 99, i, Stream::resample))] += 1;
    double chi = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        const double expected = n * d.probabilities[i];
        chi += std::pow(seen[static_cast<std::size_t>(d.ids[i])] - expected, 2) / expected;
    }
    CHECK(chi < 21.1); // 3 degrees of freedom, one chance in 10^4
    CHECK(draw(d, 5, 17, Stream::resample) == draw(d, 5, 17, Stream::resample));
    int differ = 0;
    for (int i = 0; i < 100; ++i) differ += draw(d, 5, i, Stream::resample) != draw(d, 5, i, Stream::draft);
    CHECK(differ > 30); // streams are independent
    // Dropping a token leaves the choice among the others as it was: numbers belong to ids, not to places.
    const Distribution fewer{{2, 7, 11}, {0.125f, 0.375f, 0.5f}};
    for (int i = 0; i < 200; ++i)
        if (const auto v = draw(d, 3, i, Stream::resample); v != 5) CHECK(draw(fewer, 3, i, Stream::resample) == v);
}

TEST_CASE("residuals and log-probabilities", "[sampling]") {
    const Distribution p{{0, 1, 2}, {0.5f, 0.3f, 0.2f}}, q{{0, 2}, {0.9f, 0.1f}};
    const Distribution r = residual(p, q);
    CHECK(r.ids == std::vector<std::int32_t>{1, 2});
    CHECK(r.probabilities[0] == Approx(0.75));
    CHECK(residual(p, p).ids == p.ids);
    const std::vector<float> logits{0, std::log(3.0f), std::log(3.0f), std::log(2.0f)};
    const LogProbabilities l = log_probabilities(logits, 3, 3);
    CHECK(l.token == Approx(std::log(2.0 / 9)));
    REQUIRE(l.best.size() == 3);
    CHECK(l.best[0].first == 1);
    CHECK(l.best[1].first == 2);
    CHECK(l.best[2].first == 3);
    CHECK(l.best[0].second == Approx(std::log(3.0 / 9)));
}
