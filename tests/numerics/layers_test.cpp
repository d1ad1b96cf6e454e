// Each layer alone, on input streams of the reference: what a whole model cannot tell apart, a layer can.
#include "tests/numerics/golden.hpp"
#include "tests/numerics/model.hpp"
#include "tests/support/catch.hpp"

#include <iostream>

using namespace dsv4;
using namespace dsv4::numerics;

namespace {

const std::string layers_file = golden_a + "/golden_serve_layers.safetensors";

struct LayerDistance {
    double equal_rows = 0, median = 0, p90 = 0;
    double equal_picks = 1; // of the rows that leave entries out
    std::size_t rows_with_choice = 0;
};

LayerDistance run_layer(Model& model, int layer) {
    const model::Geometry& g = model.geometry();
    const auto tokens = ints(layers_file, "tokens");
    const auto width = std::size_t(g.hc_mult * g.hidden_size), topk = std::size_t(g.index_topk);
    runtime::ScoreOptions options;
    options.streams = true;
    options.first_layer = layer;
    options.end_layer = layer + 1;
    options.input_streams =
        layer == 0 ? model.embedded(tokens) : floats(layers_file, "streams." + std::to_string(layer - 1));
    const runtime::Score got = model.score(tokens, options);
    const auto wanted = floats(layers_file, "streams." + std::to_string(layer));
    const auto& streams = got.streams.at(layer);
    REQUIRE(streams.size() == wanted.size());
    LayerDistance d;
    std::vector<double> rows;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        d.equal_rows += double(same_bits(row(streams, t, width), row(wanted, t, width))) / double(tokens.size());
        rows.push_back(relative_rms(row(streams, t, width), row(wanted, t, width)));
    }
    d.median = quantile(rows, 0.5);
    d.p90 = quantile(rows, 0.9);
    if (g.ratio(layer) != 4) return d;
    const auto picks = ints(layers_file, "picks." + std::to_string(layer));
    std::size_t equal = 0;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        if ((t + 1) / 4 <= topk) continue; // every entry is taken
        ++d.rows_with_choice;
        const auto a = row(got.picks.at(layer), t, topk), b = row(picks, t, topk);
        equal += std::equal(a.begin(), a.end(), b.begin());
    }
    REQUIRE(d.rows_with_choice > 0);
    d.equal_picks = double(equal) / double(d.rows_with_choice);
    return d;
}

} // namespace

TEST_CASE("every layer with double sums gives the reference's bits") {
    Model model(golden_a, serve_f64);
    for (int layer = 0; layer < int(model.geometry().num_hidden_layers); ++layer) {
        INFO("layer " << layer);
        const LayerDistance d = run_layer(model, layer);
        CHECK(d.equal_rows == Approx(1).margin(1e-12));
        CHECK(d.p90 == 0);
        CHECK(d.equal_picks == 1);
    }
}

TEST_CASE("every layer with float32 sums stays within the measured distance") {
    Model model(golden_a, serve_f32);
    for (int layer = 0; layer < int(model.geometry().num_hidden_layers); ++layer) {
        INFO("layer " << layer);
        const LayerDistance d = run_layer(model, layer);
        std::cout << "serve, f32, layer " << layer << ": rows equal " << d.equal_rows << ", median " << d.median
                  << ", p90 " << d.p90 << ", picks equal " << d.equal_picks << " of " << d.rows_with_choice << "\n";
        CHECK(d.equal_rows >= 0.35);
        CHECK(d.median <= 1e-3);
        CHECK(d.p90 <= 5e-2);
        CHECK(d.equal_picks >= 0.97);
    }
}
