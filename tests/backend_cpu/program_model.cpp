// The layers as ops, straight from config.json and the tensors' names.
#include "program_model.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace dsv4::test {
namespace {

using namespace program;

struct Writer {
    nlohmann::json config;
    Tensors tensors;
    ProgramModel out;
    Program& p = out.program;
    dsv4_element act = DSV4_BF16;
    std::string prefix;

    std::int64_t get(const char* key) const { return config[key].get<std::int64_t>(); }
    double real(const char* key) const { return config[key].get<double>(); }

    static dsv4_format format_of(const Tensor& t) {
        if (t.dtype == "BF16") return formats::bf16;
        if (t.dtype == "I64") return formats::i64;
        if (t.dtype == "F8_E4M3") return formats::fp8_block128;
        if (t.dtype == "I8") return formats::fp4_block32;
        return formats::f32;
    }
    // Weights take the names of their tensors without ".weight".
    const Tensor& tensor(const std::string& name) const {
        const auto it = tensors.find(name + ".weight");
        return it != tensors.end() ? it->second : tensors.at(name);
    }
    std::pair<std::vector<std::uint8_t>, std::vector<std::uint8_t>> part(const std::string& name) const {
        const auto scale = tensors.find(name + ".scale");
        return {tensor(name).bytes, scale != tensors.end() ? scale->second.bytes : std::vector<std::uint8_t>()};
    }
    static std::vector<std::int64_t> dims_of(const Tensor& t) {
        std::vector<std::int64_t> dims(t.shape.begin(), t.shape.end());
        if (t.dtype == "I8") dims.back() *= 2;
        return dims;
    }
    WeightId weight(const std::string& name) {
        const Tensor& t = tensor(prefix + name);
        const std::size_t before = p.weights.size();
        const WeightId id = p.weight(prefix + name, format_of(t), dims_of(t));
        if (p.weights.size() > before)
            out.weights.push_back({prefix + name, format_of(t), dims_of(t), {part(prefix + name)}});
        return id;
    }
    WeightId expert_stack(const std::string& which) {
        const std::int64_t count = get("n_routed_experts");
        WeightData w{prefix + "ffn.experts." + which, formats::fp4_block32, {}, {}};
        for (std::int64_t e = 0; e < count; ++e) {
            const std::string name = prefix + "ffn.experts." + std::to_string(e) + "." + which;
            w.format = format_of(tensor(name));
            w.dims = dims_of(tensor(name));
            w.parts.push_back(part(name));
        }
        w.dims.insert(w.dims.begin(), count);
        out.weights.push_back(w);
        return p.weight(w.name, w.format, w.dims);
    }
    ValueId value(const std::string& name, dsv4_element element, std::vector<std::int64_t> tail,
                  std::int64_t first = rows) {
        tail.insert(tail.begin(), first);
        return p.value(prefix + name, element, tail);
    }
    Op& op(const std::string& name, std::vector<ValueId> in, std::vector<WeightId> w, std::vector<ValueId> to) {
        Op& o = p.op(name);
        o.inputs = std::move(in);
        o.weights = std::move(w);
        o.outputs = std::move(to);
        return o;
    }
    void rotation(Op& o, bool compressed) {
        const auto& scaling = config["rope_scaling"];
        o.attributes["rope_dim"] = get("qk_rope_head_dim");
        o.attributes["rope_theta"] = compressed ? real("compress_rope_theta") : real("rope_theta");
        o.attributes["rope_factor"] = compressed ? scaling["factor"].get<double>() : 1.0;
        o.attributes["rope_original"] = scaling["original_max_position_embeddings"].get<std::int64_t>();
        o.attributes["rope_beta_fast"] = scaling["beta_fast"].get<double>();
        o.attributes["rope_beta_slow"] = scaling["beta_slow"].get<double>();
    }
    ValueId linear(ValueId x, const std::string& name, const char* quant, dsv4_element element, double scale = 1.0) {
        const WeightId w = weight(name);
        const ValueId y = value(name + ".out", element, {p.weights[w].dims[0]});
        Op& o = op("linear", {x}, {w}, {y});
        o.attributes["quant"] = std::string(quant);
        o.attributes["scale"] = scale;
        return y;
    }
    StateId compressor(ValueId x, const std::string& name, int layer, std::int64_t ratio, bool index) {
        const std::int64_t d = index ? get("index_head_dim") : get("head_dim"), c = ratio == 4 ? 2 : 1;
        const ValueId u = linear(x, name + ".wkv", "none", DSV4_F32), z = linear(x, name + ".wgate", "none", DSV4_F32);
        Op& o = op("compress", {u, z}, {weight(name + ".ape"), weight(name + ".norm")}, {});
        const auto partial = index        ? DSV4_STATE_INDEX_PARTIAL
                             : ratio == 4 ? DSV4_STATE_CSA_PARTIAL
                                          : DSV4_STATE_HCA_PARTIAL;
        const auto kind = index ? DSV4_STATE_INDEX : ratio == 4 ? DSV4_STATE_CSA : DSV4_STATE_HCA;
        const StateId entries = p.state(kind, layer, {static_cast<std::uint32_t>(d)}, act);
        o.states = {p.state(partial, layer, {2, static_cast<std::uint32_t>(c * d)}, DSV4_F32), entries};
        o.attributes["ratio"] = ratio;
        o.attributes["eps"] = real("rms_norm_eps");
        o.attributes["index"] = static_cast<std::int64_t>(index);
        rotation(o, true);
        return entries;
    }
    struct Mixed {
        ValueId x, post, comb;
    };
    Mixed hc_pre(ValueId s, const std::string& site, const std::string& norm) {
        const std::int64_t n = get("hc_mult"), d = get("hidden_size");
        const Mixed m{value(site + ".x", act, {d}), value(site + ".post", DSV4_F32, {n}),
                      value(site + ".comb", DSV4_F32, {n, n})};
        Op& o = op("hc_pre", {s}, {weight(site + "_fn"), weight(site + "_base"), weight(site + "_scale"), weight(norm)},
                   {m.x, m.post, m.comb});
        o.attributes["eps"] = real("rms_norm_eps");
        o.attributes["hc_eps"] = real("hc_eps");
        o.attributes["sinkhorn_iterations"] = get("hc_sinkhorn_iters");
        return m;
    }
    ValueId norm(ValueId x, const std::string& name, std::int64_t width) {
        const ValueId y = value(name + ".out", act, {width});
        op("norm", {x}, {weight(name)}, {y}).attributes["eps"] = real("rms_norm_eps");
        return y;
    }
    ValueId layer(int l, ValueId s) {
        prefix = "layers." + std::to_string(l) + ".";
        const std::int64_t ratio = config["compress_ratios"][static_cast<std::size_t>(l)].get<std::int64_t>();
        const std::int64_t heads = get("num_attention_heads"), d = get("head_dim"), n = get("hc_mult"),
                           D = get("hidden_size");
        const double eps = real("rms_norm_eps");
        const Mixed a = hc_pre(s, "hc_attn", "attn_norm");
        const ValueId qr = norm(linear(a.x, "attn.wq_a", "fp8_128", act), "attn.q_norm", get("q_lora_rank"));
        const ValueId q_raw = linear(qr, "attn.wq_b", "fp8_128", act), q = value("q", act, {heads, d});
        Op& hn = op("head_norm_rope", {q_raw}, {}, {q});
        hn.attributes["eps"] = eps;
        rotation(hn, ratio > 0);
        const ValueId kv = linear(a.x, "attn.wkv", "fp8_128", act);
        const StateId window = p.state(DSV4_STATE_WINDOW, l, {static_cast<std::uint32_t>(d)}, act);
        Op& store = op("kv_store", {kv}, {weight("attn.kv_norm")}, {});
        store.states = {window};
        store.attributes["eps"] = eps;
        rotation(store, ratio > 0);
        std::vector<StateId> seen{window};
        std::vector<ValueId> in{q};
        if (ratio > 0) seen.push_back(compressor(a.x, "attn.compressor", l, ratio, false));
        if (ratio == 4) {
            const std::int64_t ih = get("index_n_heads"), id = get("index_head_dim");
            const StateId keys = compressor(a.x, "attn.indexer.compressor", l, ratio, true);
            const ValueId raw = linear(qr, "attn.indexer.wq_b", "fp8_128", act), iq = value("iq", act, {ih, id});
            rotation(op("index_query", {raw}, {}, {iq}), true);
            const ValueId iw =
                linear(a.x, "attn.indexer.weights_proj", "none", act,
                       std::pow(static_cast<double>(id), -0.5) * std::pow(static_cast<double>(ih), -0.5));
            const ValueId picks = value("picks", DSV4_I32, {get("index_topk")});
            Op& select = op("index_select", {iq, iw}, {}, {picks});
            select.states = {keys};
            select.attributes["ratio"] = ratio;
            in.push_back(picks);
            p.values[picks].name = "picks." + std::to_string(l);
            p.outputs.push_back(picks);
        }
        const ValueId o = value("o", act, {heads, d});
        Op& attend = op("attend", in, {weight("attn.attn_sink")}, {o});
        attend.states = seen;
        attend.attributes["window"] = get("sliding_window");
        attend.attributes["ratio"] = ratio;
        attend.attributes["block"] = std::int64_t{0};
        rotation(attend, ratio > 0);
        const ValueId t = value("t", act, {get("o_groups") * get("o_lora_rank")});
        op("group_linear", {o}, {weight("attn.wo_a")}, {t}).attributes["groups"] = get("o_groups");
        const ValueId y = linear(t, "attn.wo_b", "fp8_128", act), middle = value("middle", act, {n, D});
        op("hc_post", {y, s, a.post, a.comb}, {}, {middle});
        const Mixed f = hc_pre(middle, "hc_ffn", "ffn_norm");
        const bool hash = l < get("num_hash_layers");
        const ValueId ids = value("ids", DSV4_I32, {get("num_experts_per_tok")}),
                      w = value("w", DSV4_F32, {get("num_experts_per_tok")});
        Op& route =
            op("route", {f.x}, {weight("ffn.gate"), weight(hash ? "ffn.gate.tid2eid" : "ffn.gate.bias")}, {ids, w});
        route.attributes["hash"] = static_cast<std::int64_t>(hash);
        route.attributes["scale"] = real("routed_scaling_factor");
        const ValueId ffn = value("ffn", act, {D}), next = value("next", act, {n, D});
        Op& moe = op("experts", {f.x, ids, w},
                     {expert_stack("w1"), expert_stack("w2"), expert_stack("w3"), weight("ffn.shared_experts.w1"),
                      weight("ffn.shared_experts.w2"), weight("ffn.shared_experts.w3")},
                     {ffn});
        moe.attributes["limit"] = real("swiglu_limit");
        moe.attributes["quant"] = std::string("fp8_128");
        op("hc_post", {ffn, middle, f.post, f.comb}, {}, {next});
        prefix.clear();
        return next;
    }
};

} // namespace

ProgramModel program_model(const std::string& directory, dsv4_precision precision, bool sampling) {
    Writer w;
    std::ifstream in(directory + "/config.json");
    w.config = nlohmann::json::parse(in);
    for (const auto& file : std::filesystem::directory_iterator(directory))
        if (file.path().extension() == ".safetensors" && file.path().filename().string().starts_with("model"))
            read_safetensors(file.path().string(), w.tensors);
    w.act = precision == DSV4_SCORE ? DSV4_F32 : DSV4_BF16;
    w.p.name = "test";
    w.p.precision = precision;
    const std::int64_t n = w.get("hc_mult"), d = w.get("hidden_size"), v = w.get("vocab_size");
    ValueId s = w.value("streams", w.act, {n, d});
    w.op("embed", {}, {w.weight("embed")}, {s});
    const auto layers = w.get("num_hidden_layers");
    for (int l = 0; l < layers; ++l) {
        s = w.layer(l, s);
        w.p.values[s].name = "streams." + std::to_string(l);
        w.p.outputs.push_back(s);
    }
    const ValueId x = w.value("head.x", w.act, {d});
    Op& head = w.op("hc_head", {s}, {w.weight("hc_head_fn"), w.weight("hc_head_base"), w.weight("hc_head_scale")}, {x});
    head.attributes["eps"] = w.real("rms_norm_eps");
    head.attributes["hc_eps"] = w.real("hc_eps");
    const ValueId y = w.norm(x, "norm", d), logits = w.value("logits", DSV4_F32, {v}, logit_rows);
    w.op("head", {y}, {w.weight("head")}, {logits});
    if (sampling) {
        w.p.outputs.clear();
        const ValueId masked = w.value("masked", DSV4_F32, {v}, logit_rows),
                      token = w.value("token", DSV4_I32, {}, logit_rows),
                      logprob = w.value("logprob", DSV4_F32, {}, logit_rows);
        w.op("mask", {logits}, {}, {masked});
        w.op("sample", {masked}, {}, {token, logprob}).states = {
            w.p.state(DSV4_STATE_TOKEN_COUNTS, 0, {static_cast<std::uint32_t>(v)}, DSV4_I32)};
    } else {
        w.p.outputs.push_back(logits);
    }
    program::validate(w.p);
    w.out.layers = static_cast<std::size_t>(layers);
    w.out.vocabulary = static_cast<std::size_t>(v);
    w.out.stream_width = static_cast<std::size_t>(n * d);
    w.out.top_k = static_cast<std::size_t>(w.get("index_topk"));
    return std::move(w.out);
}

} // namespace dsv4::test
