// The kernels as a whole model against golden outputs of two independent implementations
// (tests/vectors/model/README.md).
#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "reference_model.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::test;

namespace {

const std::string golden_a = DSV4_SOURCE_DIR "/tests/vectors/model/golden-a";
constexpr cpu::Numerics score{cpu::Precision::score, cpu::Accum::f64};
constexpr cpu::Numerics strict{cpu::Precision::serve, cpu::Accum::f64};
constexpr cpu::Numerics serve{cpu::Precision::serve, cpu::Accum::f32};

// Widths that fit no block, two streams, a window shorter than a chunk, experts named twice (make_odd_model.py).
const std::string odd = DSV4_SOURCE_DIR "/tests/backend_cpu/data/odd";

struct Run {
    std::vector<std::vector<float>> streams; // after each layer, all rows
    std::vector<float> logits;
    ReferenceModel::Picks picks;
};

// The whole sequence in pieces of the given sizes, repeated.
Run run(const ReferenceModel& model, std::span<const std::int32_t> ids, const cpu::Numerics& numerics,
        std::vector<std::size_t> pieces) {
    Run out;
    out.streams.resize(model.layers());
    ReferenceModel::State state(model.layers());
    for (std::size_t at = 0, i = 0; at < ids.size(); ++i) {
        const std::size_t n = std::min(pieces[i % pieces.size()], ids.size() - at);
        const auto part = ids.subspan(at, n);
        auto s = model.embed(part);
        for (std::size_t l = 0; l < model.layers(); ++l) {
            model.layer(l, part, static_cast<std::int64_t>(at), state[l], s, out.picks, numerics);
            out.streams[l].insert(out.streams[l].end(), s.begin(), s.end());
        }
        const auto logits = model.head(s, numerics);
        out.logits.insert(out.logits.end(), logits.begin(), logits.end());
        at += n;
    }
    return out;
}

float worst(std::span<const float> a, std::span<const float> b) {
    REQUIRE(a.size() == b.size());
    float w = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const float d = std::fabs(a[i] - b[i]);
        if (!(d <= w)) w = d; // NaN wins
    }
    return w;
}

// Compares the kept positions of a run with a golden file; returns the largest logit and stream differences.
std::pair<float, float> compare(const ReferenceModel& model, const Run& r, Tensors& golden) {
    const auto positions = golden["positions"].ints();
    const auto logits = golden["logits"].floats();
    const std::size_t v = model.vocabulary(), w = model.stream_width();
    float logit_worst = 0, stream_worst = 0;
    const auto argmax = golden["argmax"].ints();
    for (std::size_t t = 0; t < argmax.size(); ++t) {
        const auto row = std::span(r.logits).subspan(t * v, v);
        CHECK(std::max_element(row.begin(), row.end()) - row.begin() == argmax[t]);
    }
    for (std::size_t i = 0; i < positions.size(); ++i) {
        const auto t = static_cast<std::size_t>(positions[i]);
        const float d = worst(std::span(r.logits).subspan(t * v, v), std::span(logits).subspan(i * v, v));
        if (!(d <= logit_worst)) logit_worst = d;
        for (std::size_t l = 0; l < model.layers(); ++l) {
            const auto expected = golden["streams." + std::to_string(l)].floats();
            const float e = worst(std::span(r.streams[l]).subspan(t * w, w), std::span(expected).subspan(i * w, w));
            if (!(e <= stream_worst)) stream_worst = e;
        }
        for (const auto& [l, picks] : r.picks) {
            const auto expected = golden["picks." + std::to_string(l)].ints();
            std::set<std::int32_t> want, got(picks[t].begin(), picks[t].end());
            for (std::size_t k = 0; k < model.index_top_k(); ++k)
                if (const std::int32_t e = expected[i * model.index_top_k() + k]; e >= 0) want.insert(e);
            INFO("layer " << l << " position " << t);
            CHECK(got == want);
        }
    }
    return {logit_worst, stream_worst};
}

Tensors load(const std::string& directory, const std::string& file) {
    Tensors t;
    read_safetensors(directory + "/" + file, t);
    return t;
}

// Every layer on the golden file's own input streams.
struct Forced {
    double equal, median, p90;
    double picks; // share of rows with a choice whose picks are equal
};
Forced force(const ReferenceModel& model, std::size_t l, Tensors& file, const cpu::Numerics& numerics) {
    const auto ids = file["tokens"].ints();
    const auto expected = file["streams." + std::to_string(l)].floats();
    auto s = l == 0 ? model.embed(ids) : file["streams." + std::to_string(l - 1)].floats();
    ReferenceModel::LayerState state;
    ReferenceModel::Picks picks;
    model.layer(l, ids, 0, state, s, picks, numerics);
    const std::size_t w = model.stream_width();
    std::vector<double> rel;
    double equal = 0;
    for (std::size_t t = 0; t < ids.size(); ++t) {
        double d = 0, m = 0;
        for (std::size_t c = t * w; c < (t + 1) * w; ++c)
            d += std::pow(s[c] - expected[c], 2), m += std::pow(expected[c], 2);
        REQUIRE(std::isfinite(d));
        rel.push_back(std::sqrt(d / m));
        equal += rel.back() == 0;
    }
    std::sort(rel.begin(), rel.end());
    double same = 0, rows = 0;
    if (picks.count(l)) {
        const auto want = file["picks." + std::to_string(l)].ints();
        const std::size_t k = model.index_top_k();
        for (std::size_t t = 0; t < ids.size(); ++t) {
            if ((t + 1) / 4 <= k) continue;
            std::sort(picks[l][t].begin(), picks[l][t].end());
            ++rows;
            same +=
                std::equal(picks[l][t].begin(), picks[l][t].end(), want.begin() + static_cast<std::ptrdiff_t>(t * k));
        }
    }
    return {equal / static_cast<double>(ids.size()), rel[rel.size() / 2], rel[rel.size() * 9 / 10],
            rows > 0 ? same / rows : 1};
}

} // namespace

TEST_CASE("score matches the float32 golden", "[model]") {
    const ReferenceModel model(golden_a);
    auto golden = load(golden_a, "golden.safetensors");
    const auto [logits, streams] = compare(model, run(model, golden["tokens"].ints(), score, {400}), golden);
    std::cout << "score: logits max |diff| " << logits << ", streams " << streams << "\n";
    CHECK(logits <= 1e-3f);
    CHECK(streams <= 1e-3f);
}

TEST_CASE("strict serve is bit-equal to the serving golden", "[model]") {
    const std::string directory = GENERATE(golden_a, odd);
    INFO(directory);
    const ReferenceModel model(directory);
    auto golden = load(directory, "golden_serve.safetensors");
    const auto [logits, streams] = compare(model, run(model, golden["tokens"].ints(), strict, {1000}), golden);
    CHECK(logits == 0);
    CHECK(streams == 0);
}

TEST_CASE("strict serve is bit-equal layer by layer", "[model]") {
    const ReferenceModel model(golden_a);
    auto file = load(golden_a, "golden_serve_layers.safetensors");
    for (std::size_t l = 0; l < model.layers(); ++l) {
        INFO("layer " << l);
        const Forced f = force(model, l, file, strict);
        CHECK(f.equal == 1);
        CHECK(f.picks == 1);
    }
}

TEST_CASE("float32 sums stay within the measured distance, layer by layer", "[model]") {
    const ReferenceModel model(golden_a);
    auto file = load(golden_a, "golden_serve_layers.safetensors");
    for (std::size_t l = 0; l < model.layers(); ++l) {
        const Forced f = force(model, l, file, serve);
        std::cout << "serve f32, layer " << l << ": rows equal " << f.equal << ", median " << f.median << ", p90 "
                  << f.p90 << ", picks " << f.picks << "\n";
        INFO("layer " << l);
        CHECK(f.equal >= 0.35);
        CHECK(f.median <= 1e-3);
        CHECK(f.p90 <= 5e-2);
        CHECK(f.picks >= 0.97);
    }
}

TEST_CASE("any cut of a prompt gives the same bits", "[model]") {
    const ReferenceModel model(golden_a);
    auto golden = load(golden_a, "golden.safetensors");
    auto ids = golden["tokens"].ints();
    ids.resize(150);
    for (const auto& numerics : {score, strict, serve}) {
        const Run whole = run(model, ids, numerics, {150});
        for (const std::vector<std::size_t>& pieces : {std::vector<std::size_t>{1}, {5, 64}, {131, 1, 1, 3}}) {
            const Run cut = run(model, ids, numerics, pieces);
            CHECK(cut.logits == whole.logits);
            CHECK(cut.streams == whole.streams);
            CHECK(cut.picks == whole.picks);
        }
    }
}
