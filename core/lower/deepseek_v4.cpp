// Emits the ops of docs/ops.md for each layer.
#include "core/lower/deepseek_v4.hpp"

#include <cmath>

namespace dsv4::lower {
namespace {

using program::Op;
using program::Program;
using program::rows;
using program::ValueId;

class Lowering {
  public:
    Lowering(const model::Geometry& geometry, const WeightTable& weights, dsv4_precision precision,
             std::string program_name)
        : g_(geometry), table_(weights), act_(precision == DSV4_SCORE ? DSV4_F32 : DSV4_BF16) {
        p_.name = std::move(program_name);
        p_.precision = precision;
    }

    Program finish() && {
        program::validate(p_);
        return std::move(p_);
    }

    ValueId input_streams(const std::string& name) {
        const ValueId v = p_.value(name, act_, {rows, g_.hc_mult, g_.hidden_size});
        p_.inputs.push_back(v);
        return v;
    }

    ValueId embed() {
        Op& op = p_.op("embed");
        op.weights = {weight("embed")};
        return writes(op, streams("streams"));
    }

    void output(ValueId v, const std::string& name) {
        p_.values[v].name = name;
        p_.outputs.push_back(v);
    }

    struct LayerResult {
        ValueId streams;
        ValueId picks;
        bool has_picks;
    };

    LayerResult layer(const std::string& prefix, ValueId in, const LayerOptions& options) {
        prefix_ = prefix + ".";
        const Mixed a = hc_pre(in, "hc_attn", "attn_norm");
        LayerResult r{0, 0, false};
        const ValueId o = attention(a.x, options, r);
        const ValueId middle = hc_post(o, in, a, "attn_streams");
        const Mixed f = hc_pre(middle, "hc_ffn", "ffn_norm");
        r.streams = hc_post(experts(f.x, options.hash_routed), middle, f, "streams");
        prefix_.clear();
        return r;
    }

    ValueId head(ValueId in) {
        Op& mix = p_.op("hc_head");
        mix.inputs = {in};
        mix.weights = {weight("hc_head_fn"), weight("hc_head_base"), weight("hc_head_scale")};
        mix.attributes["eps"] = g_.rms_norm_eps;
        mix.attributes["hc_eps"] = g_.hc_eps;
        mix.outputs = {value("head_x", {rows, g_.hidden_size})};
        const ValueId x = norm(mix.outputs[0], "norm", "head_norm", {rows, g_.hidden_size});
        Op& op = p_.op("head");
        op.inputs = {x};
        op.weights = {weight("head")};
        return writes(op, p_.value("logits", DSV4_F32, {program::logit_rows, g_.vocab_size}));
    }

    void sample(ValueId logits) {
        Op& mask = p_.op("mask");
        mask.inputs = {logits};
        mask.outputs = {p_.value("masked_logits", DSV4_F32, {program::logit_rows, g_.vocab_size})};
        const ValueId masked = mask.outputs[0];
        Op& op = p_.op("sample");
        op.inputs = {masked};
        op.states = {p_.state(DSV4_STATE_TOKEN_COUNTS, 0, {std::uint32_t(g_.vocab_size)}, DSV4_I32)};
        op.outputs = {p_.value("token", DSV4_I32, {program::logit_rows}),
                      p_.value("logprob", DSV4_F32, {program::logit_rows})};
    }

  private:
    struct Mixed {
        ValueId x, post, comb;
    };

    static ValueId writes(Op& op, ValueId v) {
        op.outputs = {v};
        return v;
    }
    ValueId value(const std::string& name, std::vector<std::int64_t> dims) {
        return p_.value(prefix_ + name, act_, std::move(dims));
    }
    ValueId wide_value(const std::string& name, std::vector<std::int64_t> dims) {
        return p_.value(prefix_ + name, DSV4_F32, std::move(dims));
    }
    ValueId streams(const std::string& name) { return value(name, {rows, g_.hc_mult, g_.hidden_size}); }

    program::WeightId weight(const std::string& name) {
        const TableEntry& e = table_.find(prefix_ + name);
        return p_.weight(e.name, e.format, e.dims);
    }

    Mixed hc_pre(ValueId in, const std::string& site, const std::string& norm_name) {
        Op& op = p_.op("hc_pre");
        op.inputs = {in};
        op.weights = {weight(site + "_fn"), weight(site + "_base"), weight(site + "_scale"), weight(norm_name)};
        op.attributes["eps"] = g_.rms_norm_eps;
        op.attributes["hc_eps"] = g_.hc_eps;
        op.attributes["sinkhorn_iterations"] = g_.hc_sinkhorn_iters;
        const Mixed m{value(site + "_x", {rows, g_.hidden_size}), wide_value(site + "_post", {rows, g_.hc_mult}),
                      wide_value(site + "_comb", {rows, g_.hc_mult, g_.hc_mult})};
        op.outputs = {m.x, m.post, m.comb};
        return m;
    }

    ValueId hc_post(ValueId y, ValueId in, const Mixed& m, const std::string& name) {
        Op& op = p_.op("hc_post");
        op.inputs = {y, in, m.post, m.comb};
        return writes(op, streams(name));
    }

    ValueId norm(ValueId x, const std::string& weight_name, const std::string& name, std::vector<std::int64_t> dims) {
        Op& op = p_.op("norm");
        op.inputs = {x};
        op.weights = {weight(weight_name)};
        op.attributes["eps"] = g_.rms_norm_eps;
        return writes(op, value(name, std::move(dims)));
    }

    enum class Input { as_it_is, fp8 };
    ValueId linear(ValueId x, const std::string& weight_name, const std::string& name, Input input, bool wide = false,
                   double scale = 1.0) {
        Op& op = p_.op("linear");
        op.inputs = {x};
        op.weights = {weight(weight_name)};
        op.attributes["quant"] = std::string(input == Input::fp8 ? "fp8_128" : "none");
        op.attributes["scale"] = scale;
        const std::int64_t out = p_.weights[op.weights[0]].dims[0];
        return writes(op, wide ? wide_value(name, {rows, out}) : value(name, {rows, out}));
    }

    void rotation(Op& op, bool compressed) const {
        op.attributes["rope_dim"] = g_.qk_rope_head_dim;
        op.attributes["rope_theta"] = compressed ? g_.compress_rope_theta : g_.rope_theta;
        op.attributes["rope_factor"] = compressed ? g_.yarn.factor : 1.0;
        op.attributes["rope_original"] = g_.yarn.original_max_position_embeddings;
        op.attributes["rope_beta_fast"] = g_.yarn.beta_fast;
        op.attributes["rope_beta_slow"] = g_.yarn.beta_slow;
    }

    program::StateId row_state(dsv4_state_kind kind, int layer, std::int64_t width) {
        return p_.state(kind, layer, {std::uint32_t(width)}, act_);
    }

    // Projections, partial rows and closed windows of one compressor; `name` is its weight prefix.
    program::StateId compressor(ValueId x, const std::string& name, const LayerOptions& options, bool index) {
        const std::int64_t d = index ? g_.index_head_dim : g_.head_dim;
        const std::int64_t overlap = options.ratio == 4 ? 2 : 1;
        const ValueId u = linear(x, name + ".wkv", name + ".u", Input::as_it_is, true);
        const ValueId z = linear(x, name + ".wgate", name + ".z", Input::as_it_is, true);
        const auto partial_kind = index                ? DSV4_STATE_INDEX_PARTIAL
                                  : options.ratio == 4 ? DSV4_STATE_CSA_PARTIAL
                                                       : DSV4_STATE_HCA_PARTIAL;
        const auto rows_kind = index ? DSV4_STATE_INDEX : options.ratio == 4 ? DSV4_STATE_CSA : DSV4_STATE_HCA;
        const auto kept = row_state(rows_kind, options.state_layer, d);
        const auto partial = p_.state(partial_kind, options.state_layer, {2, std::uint32_t(overlap * d)}, DSV4_F32);
        Op& op = p_.op("compress");
        op.inputs = {u, z};
        op.weights = {weight(name + ".ape"), weight(name + ".norm")};
        op.states = {partial, kept};
        op.attributes["ratio"] = std::int64_t(options.ratio);
        op.attributes["eps"] = g_.rms_norm_eps;
        op.attributes["index"] = std::int64_t(index);
        rotation(op, true);
        return kept;
    }

    ValueId attention(ValueId x, const LayerOptions& options, LayerResult& result) {
        const std::int64_t heads = g_.num_attention_heads, d = g_.head_dim;
        const bool compressed = options.ratio > 0;
        const ValueId qa = linear(x, "attn.wq_a", "q_a", Input::fp8);
        const ValueId qr = norm(qa, "attn.q_norm", "q_r", {rows, g_.q_lora_rank});
        const ValueId q_raw = linear(qr, "attn.wq_b", "q_raw", Input::fp8);
        Op& hn = p_.op("head_norm_rope");
        hn.inputs = {q_raw};
        hn.attributes["eps"] = g_.rms_norm_eps;
        rotation(hn, compressed);
        const ValueId q = value("q", {rows, heads, d});
        hn.outputs = {q};

        const ValueId kv = linear(x, "attn.wkv", "kv", Input::fp8);
        const auto window =
            row_state(options.block ? DSV4_STATE_DRAFT_WINDOW : DSV4_STATE_WINDOW, options.state_layer, d);
        Op& store = p_.op(options.block ? "kv_rows" : "kv_store");
        store.inputs = {kv};
        store.weights = {weight("attn.kv_norm")};
        store.attributes["eps"] = g_.rms_norm_eps;
        rotation(store, compressed);
        if (options.block)
            store.outputs = {value("kv_block", {rows, d})};
        else
            store.states = {window};
        const std::vector<ValueId> block = store.outputs;

        std::vector<program::StateId> attended = {window};
        if (compressed) attended.push_back(compressor(x, "attn.compressor", options, false));
        if (options.ratio == 4) {
            result.picks = select(x, qr, options);
            result.has_picks = true;
        }

        Op& op = p_.op("attend");
        op.inputs = {q};
        if (result.has_picks) op.inputs.push_back(result.picks);
        op.inputs.insert(op.inputs.end(), block.begin(), block.end());
        op.weights = {weight("attn.attn_sink")};
        op.states = attended;
        op.attributes["window"] = g_.sliding_window;
        op.attributes["ratio"] = std::int64_t(options.ratio);
        op.attributes["block"] = std::int64_t(options.block);
        rotation(op, compressed);
        const ValueId o = value("o", {rows, heads, d});
        op.outputs = {o};

        Op& group = p_.op("group_linear");
        group.inputs = {o};
        group.weights = {weight("attn.wo_a")};
        group.attributes["groups"] = g_.o_groups;
        const ValueId t = value("o_a", {rows, g_.o_groups * g_.o_lora_rank});
        group.outputs = {t};
        return linear(t, "attn.wo_b", "attn_y", Input::fp8);
    }

    ValueId select(ValueId x, ValueId qr, const LayerOptions& options) {
        const std::int64_t heads = g_.index_n_heads, d = g_.index_head_dim;
        const auto keys = compressor(x, "attn.indexer.compressor", options, true);
        const ValueId raw = linear(qr, "attn.indexer.wq_b", "iq_raw", Input::fp8);
        Op& query = p_.op("index_query");
        query.inputs = {raw};
        rotation(query, true);
        const ValueId iq = value("iq", {rows, heads, d});
        query.outputs = {iq};
        const ValueId iw = linear(x, "attn.indexer.weights_proj", "iw", Input::as_it_is, false,
                                  std::pow(double(d), -0.5) * std::pow(double(heads), -0.5));
        Op& op = p_.op("index_select");
        op.inputs = {iq, iw};
        op.states = {keys};
        op.attributes["ratio"] = std::int64_t(options.ratio);
        return writes(op, p_.value(prefix_ + "picks", DSV4_I32, {rows, g_.index_topk}));
    }

    ValueId experts(ValueId x, bool hash_routed) {
        Op& route = p_.op("route");
        route.inputs = {x};
        route.weights = {weight("ffn.gate"), weight(hash_routed ? "ffn.gate.tid2eid" : "ffn.gate.bias")};
        route.attributes["hash"] = std::int64_t(hash_routed);
        route.attributes["scale"] = g_.routed_scaling_factor;
        const ValueId ids = p_.value(prefix_ + "expert_ids", DSV4_I32, {rows, g_.num_experts_per_tok});
        const ValueId w = wide_value("expert_weights", {rows, g_.num_experts_per_tok});
        route.outputs = {ids, w};
        Op& op = p_.op("experts");
        op.inputs = {x, ids, w};
        for (const char* name : {"ffn.experts.w1", "ffn.experts.w2", "ffn.experts.w3"})
            op.weights.push_back(weight(name));
        if (g_.n_shared_experts > 0)
            for (const char* name : {"ffn.shared_experts.w1", "ffn.shared_experts.w2", "ffn.shared_experts.w3"})
                op.weights.push_back(weight(name));
        op.attributes["limit"] = g_.swiglu_limit;
        op.attributes["quant"] = std::string("fp8_128");
        return writes(op, value("ffn_y", {rows, g_.hidden_size}));
    }

    const model::Geometry& g_;
    const WeightTable& table_;
    const dsv4_element act_;
    std::string prefix_; // of the layer being emitted, with its dot
    Program p_;
};

} // namespace

Program lower(const model::Geometry& geometry, const WeightTable& weights, const Options& options) {
    const int layers = int(geometry.num_hidden_layers);
    const int end = options.end_layer < 0 ? layers : options.end_layer;
    if (options.first_layer < 0 || options.first_layer >= end || end > layers)
        throw Failure(Code::invalid, "layers " + std::to_string(options.first_layer) + " to " + std::to_string(end) +
                                         " are not a range of the model's " + std::to_string(layers));
    if (options.head && end != layers)
        throw Failure(Code::invalid,
                      "the head needs the last layer, but the Program ends at layer " + std::to_string(end));
    Lowering l(geometry, weights, options.precision, "deepseek_v4");
    ValueId s = options.streams_input || options.first_layer > 0 ? l.input_streams("streams.in") : l.embed();
    for (int layer = options.first_layer; layer < end; ++layer) {
        const std::string number = std::to_string(layer);
        const auto r = l.layer("layers." + number, s,
                               {options.precision, layer, geometry.ratio(layer), geometry.hash_routed(layer), false});
        s = r.streams;
        if (options.streams_output) l.output(s, "streams." + number);
        if (options.picks_output && r.has_picks) l.output(r.picks, "picks." + number);
    }
    if (options.head) {
        const ValueId logits = l.head(s);
        if (options.logits_output) l.output(logits, "logits");
        if (options.sample) l.sample(logits);
    }
    return std::move(l).finish();
}

Program lower_layer(const model::Geometry& geometry, const WeightTable& weights, std::string_view prefix,
                    const LayerOptions& options) {
    Lowering l(geometry, weights, options.precision, std::string(prefix));
    const auto r = l.layer(std::string(prefix), l.input_streams("streams.in"), options);
    l.output(r.streams, "streams");
    return std::move(l).finish();
}

} // namespace dsv4::lower
