// Cases of the ops that read and write paged state: each Program stores rows and attends to them, since a page's bytes
// are the backend's own.
#include "core/conformance/cases.hpp"

#include <algorithm>

namespace dsv4::conformance {
namespace {

using program::Op;
using program::Program;
using program::rows;

// Sequences of uneven length, cut into pieces that end at and beside every edge, several slots a batch.
struct Cut {
    int slots = 0;
    std::int64_t longest = 0;
    std::vector<std::vector<Row>> steps;
};

Cut ragged_cut(std::int64_t vocab, Random& random) {
    static const std::vector<std::vector<std::uint32_t>> pieces = {
        {1}, {3, 1, 1}, {64, 1, 62, 1, 1, 1, 1}, {130, 126, 1, 17, 1, 1, 6, 18}, {1, 2, 3, 5, 8, 13, 21, 34, 41, 1},
    };
    Cut cut;
    cut.slots = int(pieces.size());
    std::vector<std::int64_t> at(pieces.size(), 0);
    for (std::size_t step = 0;; ++step) {
        std::vector<Row> rows_of_step;
        for (std::size_t s = 0; s < pieces.size(); ++s) {
            if (step >= pieces[s].size()) continue;
            for (std::uint32_t i = 0; i < pieces[s][step]; ++i)
                rows_of_step.push_back(
                    {int(s), at[s]++, std::int32_t(random.below(std::uint32_t(vocab))), 0, DSV4_INPUT_GIVEN});
            cut.longest = std::max(cut.longest, at[s]);
        }
        if (rows_of_step.empty()) return cut;
        cut.steps.push_back(std::move(rows_of_step));
    }
}

std::size_t row_elements(const program::Value& v) {
    std::size_t count = 1;
    for (auto d : v.dims)
        if (d > 0) count *= std::size_t(d);
    return count;
}

} // namespace

std::vector<Case> attention_cases(const Subject& subject) {
    const model::Geometry& g = subject.geometry;
    const bool serve = subject.precision == DSV4_SERVE;
    const dsv4_element act = serve ? DSV4_BF16 : DSV4_F32;
    const std::int64_t heads = g.num_attention_heads, d = g.head_dim;
    std::vector<Case> cases;
    for (const int layer : {0, 1, 2}) {
        const int ratio = g.ratio(layer);
        const bool compressed = ratio > 0;
        const std::string prefix = "layers." + std::to_string(layer) + ".attn.";
        Program p;
        p.precision = subject.precision;
        p.name = "check.attention_ratio_" + std::to_string(ratio);
        auto input = [&](const char* name, dsv4_element e, std::vector<std::int64_t> dims) {
            p.inputs.push_back(p.value(name, e, std::move(dims)));
            return p.inputs.back();
        };
        auto weight = [&](const std::string& name) {
            const lower::TableEntry& e = subject.weights.find(prefix + name);
            return p.weight(e.name, e.format, e.dims);
        };
        auto rotation = [&](Op& op) {
            op.attributes["eps"] = g.rms_norm_eps;
            op.attributes["rope_dim"] = g.qk_rope_head_dim;
            op.attributes["rope_theta"] = compressed ? g.compress_rope_theta : g.rope_theta;
            op.attributes["rope_factor"] = compressed ? g.yarn.factor : 1.0;
            op.attributes["rope_original"] = g.yarn.original_max_position_embeddings;
            op.attributes["rope_beta_fast"] = g.yarn.beta_fast;
            op.attributes["rope_beta_slow"] = g.yarn.beta_slow;
        };
        const auto q = input("q", act, {rows, heads, d});
        const auto kv = input("kv", act, {rows, d});
        const auto window = p.state(DSV4_STATE_WINDOW, layer, {std::uint32_t(d)}, act);
        const auto kv_norm = weight("kv_norm");
        {
            Op& op = p.op("kv_store");
            op.inputs = {kv};
            op.weights = {kv_norm};
            op.states = {window};
            rotation(op);
        }
        std::vector<program::StateId> attended = {window};
        auto compress = [&](const std::string& name, std::int64_t width, dsv4_state_kind partial_kind,
                            dsv4_state_kind rows_kind, bool index) {
            const std::int64_t c = ratio == 4 ? 2 : 1;
            const auto u = input(index ? "iu" : "u", DSV4_F32, {rows, c * width});
            const auto z = input(index ? "iz" : "z", DSV4_F32, {rows, c * width});
            const auto partial = p.state(partial_kind, layer, {2, std::uint32_t(c * width)}, DSV4_F32);
            const auto kept = p.state(rows_kind, layer, {std::uint32_t(width)}, act);
            const auto ape = weight(name + ".ape"), norm = weight(name + ".norm");
            Op& op = p.op("compress");
            op.inputs = {u, z};
            op.weights = {ape, norm};
            op.states = {partial, kept};
            rotation(op);
            op.attributes["ratio"] = std::int64_t(ratio);
            op.attributes["index"] = std::int64_t(index);
            return kept;
        };
        std::vector<program::ValueId> attend_inputs = {q};
        if (ratio == 4) {
            attended.push_back(compress("compressor", d, DSV4_STATE_CSA_PARTIAL, DSV4_STATE_CSA, false));
            const auto keys =
                compress("indexer.compressor", g.index_head_dim, DSV4_STATE_INDEX_PARTIAL, DSV4_STATE_INDEX, true);
            const auto iq = input("iq", act, {rows, g.index_n_heads, g.index_head_dim});
            const auto iw = input("iw", act, {rows, g.index_n_heads});
            const auto picks = p.value("picks", DSV4_I32, {rows, g.index_topk});
            Op& op = p.op("index_select");
            op.inputs = {iq, iw};
            op.states = {keys};
            op.outputs = {picks};
            op.attributes["ratio"] = std::int64_t(ratio);
            attend_inputs.push_back(picks);
            p.outputs.push_back(picks);
        } else if (ratio == 128) {
            attended.push_back(compress("compressor", d, DSV4_STATE_HCA_PARTIAL, DSV4_STATE_HCA, false));
        }
        const auto sink = weight("attn_sink");
        const auto o = p.value("o", act, {rows, heads, d});
        Op& op = p.op("attend");
        op.inputs = attend_inputs;
        op.weights = {sink};
        op.states = attended;
        op.outputs = {o};
        rotation(op);
        op.attributes.erase("eps");
        op.attributes["window"] = g.sliding_window;
        op.attributes["ratio"] = std::int64_t(ratio);
        op.attributes["block"] = std::int64_t(0);
        p.outputs.push_back(o);

        Case c;
        c.op = "attend/1";
        c.lines["picks"] = "index_select/1";
        c.what = ratio == 0 ? "window" : ratio == 4 ? "window, csa, indexer" : "window, hca";
        Random random(seed_of(c.what, subject.seed + (serve ? 1 : 0)));
        Cut cut = ragged_cut(g.vocab_size, random);
        c.slots = cut.slots;
        c.positions = cut.longest;
        auto fill = [&](Step& step, float scale) {
            for (auto id : p.inputs) {
                const program::Value& v = p.values[id];
                step.inputs[v.name] = random_values(random, v.element, step.rows.size() * row_elements(v), scale);
            }
        };
        // Junk in every page first: what a sequence must not see.
        Step junk;
        for (int s = 0; s < c.slots; ++s) {
            junk.resets[s] = {};
            for (std::int64_t at = 0; at < cut.longest; ++at) junk.rows.push_back({s, at, 0, 0, DSV4_INPUT_GIVEN});
        }
        junk.compared = false;
        fill(junk, 50);
        c.steps.push_back(std::move(junk));
        bool first = true;
        for (auto& rows_of_step : cut.steps) {
            Step step;
            step.rows = std::move(rows_of_step);
            if (first)
                for (int s = 0; s < c.slots; ++s) step.resets[s] = {};
            first = false;
            fill(step, 1);
            c.steps.push_back(std::move(step));
        }
        c.tolerances["picks"] = {0, 0, 0, serve ? 0.99 : 1.0, true};
        c.tolerances["o"] = serve ? Tolerance{4e-3, 3e-2, 0} : Tolerance{2e-5, 5e-5, 5e-4};
        c.programs.push_back(std::move(p));
        cases.push_back(std::move(c));
    }
    return cases;
}

} // namespace dsv4::conformance
