// Cases of whole layers on given input streams: what a backend fused must still be the layer.
#include "core/conformance/cases.hpp"
#include "core/lower/deepseek_v4.hpp"

namespace dsv4::conformance {

std::vector<Case> layer_cases(const Subject& subject) {
    const model::Geometry& g = subject.geometry;
    const bool serve = subject.precision == DSV4_SERVE;
    const dsv4_element act = serve ? DSV4_BF16 : DSV4_F32;
    std::vector<Case> cases;
    for (int layer = 0; layer < int(g.num_hidden_layers); ++layer) {
        lower::Options options;
        options.precision = subject.precision;
        options.first_layer = layer;
        options.end_layer = layer + 1;
        options.streams_input = true;
        options.head = false;
        options.streams_output = options.picks_output = true;
        Case c;
        c.op = "layer";
        c.what = "ratio " + std::to_string(g.ratio(layer)) + (g.hash_routed(layer) ? ", token table" : "");
        c.programs = {lower::lower(g, subject.weights, options)};
        c.slots = 3;
        c.positions = 160;
        Random random(seed_of("layer" + c.what, subject.seed));
        std::int64_t at[3] = {0, 0, 0};
        for (const auto& sizes : {std::vector<int>{1, 40, 0}, {1, 88, 1}, {1, 3, 6}, {2, 1, 17}}) {
            Step step;
            for (int s = 0; s < 3; ++s) {
                for (int i = 0; i < sizes[std::size_t(s)]; ++i)
                    step.rows.push_back(
                        {s, at[s]++, std::int32_t(random.below(std::uint32_t(g.vocab_size))), 0, DSV4_INPUT_GIVEN});
            }
            for (const Row& r : step.rows)
                if (r.position == 0) step.resets[r.slot] = {};
            step.inputs["streams.in"] =
                random_values(random, act, step.rows.size() * std::size_t(g.hc_mult * g.hidden_size));
            c.steps.push_back(std::move(step));
        }
        // A rare row takes another expert or entry, so no maximum. In serve, one value that crosses a rounding tie
        // moves its row by about 0.06: flipping the last bit of one input element does so with exact sums, at any
        // width. In narrow layers most rows cross none; in wide ones every row does, and only gross mistakes show here.
        // Rounding points are the business of the single ops.
        constexpr std::int64_t wide = 1024;
        const Tolerance crossing = g.hidden_size >= wide ? Tolerance{8e-2, 0.12, 0} : Tolerance{2e-2, 8e-2, 0};
        c.tolerances[""] = serve ? crossing : Tolerance{1e-4, 3e-4, 0};
        c.tolerances["picks." + std::to_string(layer)] = {0, 0, 0, serve ? 0.97 : 1.0, true};
        cases.push_back(std::move(c));
    }
    return cases;
}

} // namespace dsv4::conformance
