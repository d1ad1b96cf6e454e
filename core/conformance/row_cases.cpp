// Cases of the ops that work row by row.
#include "core/conformance/cases.hpp"
#include "core/lower/deepseek_v4.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace dsv4::conformance {
namespace {

using program::Op;
using program::Program;
using program::rows;

std::size_t elements(const program::Value& v, std::size_t n, std::size_t m) {
    std::size_t count = 1;
    for (auto d : v.dims)
        count *= d == rows || d == program::received_rows ? n : d == program::logit_rows ? m : std::size_t(d);
    return count;
}

// Rows of `width` distinct experts.
Bytes expert_ids(Random& random, std::size_t count, std::uint32_t width, std::int64_t experts) {
    Bytes bytes(count * 4);
    for (std::size_t r = 0; r < count / width; ++r) {
        const std::uint32_t start = random.below(std::uint32_t(experts));
        for (std::uint32_t j = 0; j < width; ++j) {
            const std::uint32_t id = (start + j) % std::uint32_t(experts);
            std::memcpy(bytes.data() + 4 * (r * width + j), &id, 4);
        }
    }
    return bytes;
}

} // namespace

std::vector<std::int64_t> edge_positions(std::int64_t limit) {
    std::vector<std::int64_t> edges;
    for (std::int64_t p : {0, 1, 3, 4, 31, 32, 63, 64, 127, 128, 129, 255, 256, 257, 1000, 65535, 65536, 1000000})
        if (p < limit) edges.push_back(p);
    return edges;
}

std::vector<Row> ragged_rows(std::uint32_t n, std::int64_t limit, std::int64_t vocab, Random& random,
                             std::map<int, Reset>& resets) {
    static constexpr std::uint32_t lengths[] = {1, 2, 5, 1, 17, 3, 64, 1, 130};
    const auto edges = edge_positions(limit);
    std::vector<Row> list;
    for (int slot = 0; list.size() < n; ++slot) {
        const auto length =
            std::min<std::uint32_t>(lengths[std::size_t(slot) % std::size(lengths)], n - std::uint32_t(list.size()));
        auto start = edges[random.below(std::uint32_t(edges.size()))];
        start = std::max<std::int64_t>(0, std::min<std::int64_t>(start, limit - length));
        resets[slot].committed = start;
        for (std::uint32_t i = 0; i < length; ++i)
            list.push_back({slot, start + i, std::int32_t(random.below(std::uint32_t(vocab))), 0, DSV4_INPUT_GIVEN});
    }
    return list;
}

std::vector<Case> row_cases(const Subject& subject) {
    const model::Geometry& g = subject.geometry;
    const bool serve = subject.precision == DSV4_SERVE;
    const dsv4_element act = serve ? DSV4_BF16 : DSV4_F32;
    const std::int64_t width = g.hidden_size, streams = g.hc_mult, heads = g.num_attention_heads, d = g.head_dim;
    std::vector<Case> cases;

    const Tolerance one_rounding = serve ? Tolerance{2e-3, 4e-3, 2e-2} : Tolerance{1e-5, 2e-5, 1e-4};
    // A value that crosses a tie of an inner rounding moves to the next code of the quantiser behind it.
    const Tolerance two_roundings = serve ? Tolerance{1e-2, 2e-2, 0.15} : Tolerance{1e-5, 2e-5, 1e-4};
    const Tolerance wide{1e-5, 2e-5, 1e-4};

    // Builds the case of one op. `emit` adds values and the op to the Program.
    auto add = [&](const std::string& what, const Tolerance& tolerance, const std::function<void(Program&)>& emit,
                   bool logits = false, float input_scale = 1) {
        const std::uint32_t n = *std::max_element(subject.row_counts.begin(), subject.row_counts.end());
        Case c;
        Program p;
        p.precision = subject.precision;
        emit(p);
        c.op = p.ops.back().label();
        p.name = "check." + p.ops.back().name;
        p.outputs = p.ops.back().outputs;
        c.what = what;
        c.row_counts = subject.row_counts;
        Random random(seed_of(c.op + c.what, subject.seed + (serve ? 1 : 0)));
        Step step;
        step.rows = ragged_rows(n, g.max_position_embeddings, g.vocab_size, random, step.resets);
        std::size_t m = 0;
        if (logits)
            for (std::size_t i = 0; i < step.rows.size(); ++i)
                if (i % 3 != 1) step.rows[i].flags |= DSV4_ROW_LOGITS, ++m;
        for (auto id : p.inputs) {
            const program::Value& v = p.values[id];
            const std::size_t count = elements(v, n, m);
            step.inputs[v.name] = v.element == DSV4_I32
                                      ? expert_ids(random, count, std::uint32_t(v.dims.back()), g.n_routed_experts)
                                      : random_values(random, v.element, count, input_scale);
        }
        c.slots = int(step.resets.size()) + 1;
        c.tolerances[""] = tolerance;
        c.programs.push_back(std::move(p));
        c.steps.push_back(std::move(step));
        cases.push_back(std::move(c));
    };
    auto input = [](Program& p, const std::string& name, dsv4_element e, std::vector<std::int64_t> dims) {
        const auto v = p.value(name, e, std::move(dims));
        p.inputs.push_back(v);
        return v;
    };
    auto weight = [&](Program& p, const std::string& name) {
        const lower::TableEntry& e = subject.weights.find(name);
        return p.weight(e.name, e.format, e.dims);
    };
    auto rotation = [&](Op& op, bool compressed) {
        op.attributes["rope_dim"] = g.qk_rope_head_dim;
        op.attributes["rope_theta"] = compressed ? g.compress_rope_theta : g.rope_theta;
        op.attributes["rope_factor"] = compressed ? g.yarn.factor : 1.0;
        op.attributes["rope_original"] = g.yarn.original_max_position_embeddings;
        op.attributes["rope_beta_fast"] = g.yarn.beta_fast;
        op.attributes["rope_beta_slow"] = g.yarn.beta_slow;
    };
    // An op with one input, one output and weights.
    auto simple = [&](const char* name, const std::string& what, const Tolerance& tolerance,
                      std::vector<std::int64_t> in, dsv4_element out_element, std::vector<std::int64_t> out,
                      std::vector<std::string> weights, const std::function<void(Op&)>& attributes,
                      float input_scale = 1) {
        add(
            what, tolerance,
            [&, name](Program& p) {
                const auto x = input(p, "x", act, in);
                std::vector<program::WeightId> ids;
                for (const auto& w : weights) ids.push_back(weight(p, w));
                const auto y = p.value("y", out_element, out);
                Op& op = p.op(name);
                op.inputs = {x};
                op.weights = ids;
                op.outputs = {y};
                attributes(op);
            },
            false, input_scale);
    };

    add("table", Tolerance{0, 0, 0}, [&](Program& p) {
        const auto w = weight(p, "embed");
        const auto y = p.value("y", act, {rows, streams, width});
        Op& op = p.op("embed");
        op.weights = {w};
        op.outputs = {y};
    });
    for (const char* site : {"layers.0.hc_attn", "layers.1.hc_ffn"})
        add(site, one_rounding, [&](Program& p) {
            const auto s = input(p, "streams", act, {rows, streams, width});
            const std::string name = site;
            const auto norm = name.substr(0, 9) + (name.ends_with("attn") ? "attn_norm" : "ffn_norm");
            const std::vector<program::WeightId> w = {weight(p, name + "_fn"), weight(p, name + "_base"),
                                                      weight(p, name + "_scale"), weight(p, norm)};
            const auto x = p.value("x", act, {rows, width});
            const auto post = p.value("post", DSV4_F32, {rows, streams});
            const auto comb = p.value("comb", DSV4_F32, {rows, streams, streams});
            Op& op = p.op("hc_pre");
            op.inputs = {s};
            op.weights = w;
            op.outputs = {x, post, comb};
            op.attributes["eps"] = g.rms_norm_eps;
            op.attributes["hc_eps"] = g.hc_eps;
            op.attributes["sinkhorn_iterations"] = g.hc_sinkhorn_iters;
        });
    add("merge", one_rounding, [&](Program& p) {
        const std::vector<program::ValueId> in = {
            input(p, "y", act, {rows, width}), input(p, "streams", act, {rows, streams, width}),
            input(p, "post", DSV4_F32, {rows, streams}), input(p, "comb", DSV4_F32, {rows, streams, streams})};
        const auto out = p.value("out", act, {rows, streams, width});
        Op& op = p.op("hc_post");
        op.inputs = in;
        op.outputs = {out};
    });
    simple("hc_head", "final mixer", one_rounding, {rows, streams, width}, act, {rows, width},
           {"hc_head_fn", "hc_head_base", "hc_head_scale"}, [&](Op& op) {
               op.attributes["eps"] = g.rms_norm_eps;
               op.attributes["hc_eps"] = g.hc_eps;
           });
    for (float scale : {1.0f, 1e-3f, 300.0f})
        simple(
            "norm", "input x " + std::to_string(scale), one_rounding, {rows, width}, act, {rows, width}, {"norm"},
            [&](Op& op) { op.attributes["eps"] = g.rms_norm_eps; }, scale);
    struct LinearCase {
        const char* what;
        const char* weight;
        const char* quant;
        bool f32;
        double scale;
    };
    for (const LinearCase& l :
         {LinearCase{"fp8, wq_a", "layers.0.attn.wq_a", "fp8_128", false, 1},
          LinearCase{"fp8, wo_b", "layers.1.attn.wo_b", "fp8_128", false, 1},
          LinearCase{"fp8, wkv", "layers.2.attn.wkv", "fp8_128", false, 1},
          LinearCase{"fp8, plain input", "layers.0.attn.wkv", "none", false, 1},
          LinearCase{"bf16 to f32", "layers.1.attn.compressor.wkv", "none", true, 1},
          LinearCase{"bf16, scaled", "layers.1.attn.indexer.weights_proj", "none", false, 0.011}}) {
        const auto& dims = subject.weights.find(l.weight).dims;
        simple("linear", l.what, l.f32 ? wide : one_rounding, {rows, dims[1]}, l.f32 ? DSV4_F32 : act, {rows, dims[0]},
               {l.weight}, [&](Op& op) {
                   op.attributes["quant"] = std::string(l.quant);
                   op.attributes["scale"] = l.scale;
               });
    }
    for (bool compressed : {false, true})
        simple("head_norm_rope", compressed ? "yarn" : "plain", serve ? Tolerance{4e-3, 6e-3, 2e-2} : wide,
               {rows, heads * d}, act, {rows, heads, d}, {}, [&](Op& op) {
                   op.attributes["eps"] = g.rms_norm_eps;
                   rotation(op, compressed);
               });
    simple("index_query", "hadamard", serve ? Tolerance{2e-2, 4e-2, 0} : wide,
           {rows, g.index_n_heads * g.index_head_dim}, act, {rows, g.index_n_heads, g.index_head_dim}, {},
           [&](Op& op) { rotation(op, true); });
    for (bool compressed : {false, true})
        simple("kv_rows", compressed ? "yarn" : "plain", two_roundings, {rows, d}, act, {rows, d},
               {"layers.0.attn.kv_norm"}, [&](Op& op) {
                   op.attributes["eps"] = g.rms_norm_eps;
                   rotation(op, compressed);
               });
    simple("group_linear", "wo_a", one_rounding, {rows, heads, d}, act, {rows, g.o_groups * g.o_lora_rank},
           {"layers.0.attn.wo_a"}, [&](Op& op) { op.attributes["groups"] = g.o_groups; });
    for (bool hash : {true, false}) {
        add(hash ? "token table" : "scores", Tolerance{1e-5, 2e-5, 1e-4, 0.98, true}, [&](Program& p) {
            const auto x = input(p, "x", act, {rows, width});
            const std::string layer = hash ? "layers.0.ffn." : "layers.1.ffn.";
            const std::vector<program::WeightId> w = {weight(p, layer + "gate"),
                                                      weight(p, layer + (hash ? "gate.tid2eid" : "gate.bias"))};
            const auto ids = p.value("ids", DSV4_I32, {rows, g.num_experts_per_tok});
            const auto weights = p.value("w", DSV4_F32, {rows, g.num_experts_per_tok});
            Op& op = p.op("route");
            op.inputs = {x};
            op.weights = w;
            op.outputs = {ids, weights};
            op.attributes["hash"] = std::int64_t(hash);
            op.attributes["scale"] = g.routed_scaling_factor;
        });
    }
    for (bool shared : {true, false})
        add(shared ? "with shared" : "routed only", two_roundings, [&](Program& p) {
            const std::vector<program::ValueId> in = {input(p, "x", act, {rows, width}),
                                                      input(p, "ids", DSV4_I32, {rows, g.num_experts_per_tok}),
                                                      input(p, "w", DSV4_F32, {rows, g.num_experts_per_tok})};
            std::vector<program::WeightId> w;
            for (const char* name : {"w1", "w2", "w3"})
                w.push_back(weight(p, std::string("layers.1.ffn.experts.") + name));
            if (shared)
                for (const char* name : {"w1", "w2", "w3"})
                    w.push_back(weight(p, std::string("layers.1.ffn.shared_experts.") + name));
            const auto y = p.value("y", act, {rows, width});
            Op& op = p.op("experts");
            op.inputs = in;
            op.weights = w;
            op.outputs = {y};
            op.attributes["limit"] = g.swiglu_limit;
            op.attributes["quant"] = std::string("fp8_128");
        });
    add("two layers", one_rounding, [&](Program& p) {
        const std::vector<program::ValueId> in = {input(p, "a", act, {rows, streams, width}),
                                                  input(p, "b", act, {rows, streams, width})};
        const auto t = p.value("t", act, {rows, 2 * width});
        Op& op = p.op("tap");
        op.inputs = in;
        op.outputs = {t};
    });
    add(
        "lm head", wide,
        [&](Program& p) {
            const auto x = input(p, "x", act, {rows, width});
            const auto w = weight(p, "head");
            const auto y = p.value("logits", DSV4_F32, {program::logit_rows, g.vocab_size});
            Op& op = p.op("head");
            op.inputs = {x};
            op.weights = {w};
            op.outputs = {y};
        },
        true);
    for (const char* name : {"all_reduce", "all_gather", "reduce_scatter"})
        simple(name, "one rank", Tolerance{0, 0, 0}, {rows, width}, act, {rows, width}, {}, [](Op&) {});
    add("one rank, and back", Tolerance{0, 0, 0}, [&](Program& p) {
        const std::vector<program::ValueId> in = {input(p, "x", act, {rows, width}),
                                                  input(p, "ids", DSV4_I32, {rows, g.num_experts_per_tok}),
                                                  input(p, "w", DSV4_F32, {rows, g.num_experts_per_tok})};
        const std::vector<program::ValueId> out = {
            p.value("rx", act, {program::received_rows, width}),
            p.value("rids", DSV4_I32, {program::received_rows, g.num_experts_per_tok}),
            p.value("rw", DSV4_F32, {program::received_rows, g.num_experts_per_tok})};
        const auto back = p.value("back", act, {rows, width});
        Op& dispatch = p.op("dispatch");
        dispatch.inputs = in;
        dispatch.outputs = out;
        dispatch.attributes["capacity"] = std::int64_t(512);
        Op& combine = p.op("combine");
        combine.inputs = {out[0]};
        combine.outputs = {back};
    });
    return cases;
}

} // namespace dsv4::conformance
