// The model's layers over the kernels.
#include "reference_model.hpp"

#include <filesystem>
#include <fstream>

#include "plugins/backend-cpu/kernels/embed.hpp"
#include "plugins/backend-cpu/kernels/index_select.hpp"
#include "plugins/backend-cpu/kernels/norm.hpp"
#include "plugins/backend-cpu/kernels/query_key.hpp"
#include "plugins/backend-cpu/kernels/route.hpp"

namespace dsv4::test {
using namespace cpu;
namespace {
const Serial serial;
constexpr LinearOptions quantised{Quantiser::fp8_128, true};
constexpr LinearOptions exact{Quantiser::none, false};
constexpr LinearOptions plain{Quantiser::none, true};

struct Buffer {
    std::vector<float> data;
    std::size_t count, width;
    Buffer(std::size_t n, std::size_t w) : data(n * w), count(n), width(w) {}
    operator RowsOut() { return {data.data(), count, width}; }
    operator RowsIn() const { return {data.data(), count, width}; }
};
} // namespace

ReferenceModel::ReferenceModel(const std::string& directory) {
    std::ifstream in(directory + "/config.json");
    config_ = nlohmann::json::parse(in);
    for (const auto& file : std::filesystem::directory_iterator(directory))
        if (file.path().extension() == ".safetensors" && file.path().filename().string().starts_with("model"))
            read_safetensors(file.path().string(), tensors_);
    for (const auto& [name, t] : tensors_) {
        if ((t.dtype == "F32" || t.dtype == "BF16") && (t.shape.size() == 1 || t.dtype == "F32"))
            floats_[name] = t.floats();
        if (t.dtype == "I64") tables_[name] = t.ints();
    }
    const auto get = [&](const char* key) { return config_[key].get<std::size_t>(); };
    hidden_ = get("hidden_size"), streams_ = get("hc_mult"), heads_ = get("num_attention_heads");
    head_dim_ = get("head_dim"), vocabulary_ = get("vocab_size"), top_k_ = get("index_topk");
    ratios_ = config_["compress_ratios"].get<std::vector<std::size_t>>();
    ratios_.resize(get("num_hidden_layers"));
    const auto& scaling = config_["rope_scaling"];
    RopeParameters p{get("qk_rope_head_dim"), config_["rope_theta"].get<double>()};
    ropes_.emplace_back(p);
    p = {p.dim,
         config_["compress_rope_theta"].get<double>(),
         scaling["factor"].get<double>(),
         scaling["original_max_position_embeddings"].get<double>(),
         scaling["beta_fast"].get<double>(),
         scaling["beta_slow"].get<double>()};
    ropes_.emplace_back(p);
}

Matrix ReferenceModel::matrix(const std::string& name) const {
    const Tensor& t = tensors_.at(name + ".weight");
    Matrix m{WeightFormat::f32, t.shape[0], t.shape[1], t.bytes.data(), nullptr};
    if (t.dtype == "BF16") m.format = WeightFormat::bf16;
    if (t.dtype == "F8_E4M3") m.format = WeightFormat::fp8_block128;
    if (t.dtype == "I8") m.format = WeightFormat::fp4_block32, m.cols *= 2;
    if (const auto s = tensors_.find(name + ".scale"); s != tensors_.end()) m.scales = s->second.bytes.data();
    return m;
}

HyperConnection ReferenceModel::site(const std::string& prefix) const {
    return {floats(prefix + "_fn"),
            floats(prefix + "_base"),
            floats(prefix + "_scale"),
            streams_,
            config_["hc_sinkhorn_iters"].get<std::size_t>(),
            config_["rms_norm_eps"].get<float>(),
            config_["hc_eps"].get<float>()};
}

std::vector<float> ReferenceModel::embed(std::span<const std::int32_t> ids) const {
    Buffer s(ids.size(), stream_width());
    cpu::embed(ids, matrix("embed"), streams_, s);
    return s.data;
}

void ReferenceModel::layer(std::size_t index, std::span<const std::int32_t> ids, std::int64_t first, LayerState& state,
                           std::vector<float>& streams, Picks& picks, const Numerics& numerics) const {
    const std::string p = "layers." + std::to_string(index) + ".", a = p + "attn.", f = p + "ffn.";
    const std::size_t n = ids.size(), ratio = ratios_[index];
    const float eps = config_["rms_norm_eps"].get<float>();
    const RopeTable& rope = ropes_[ratio > 0 ? 1 : 0];
    std::vector<std::int64_t> positions(n);
    for (std::size_t i = 0; i < n; ++i) positions[i] = first + static_cast<std::int64_t>(i);
    const RowsOut s{streams.data(), n, stream_width()};
    Buffer x(n, hidden_), post(n, streams_), comb(n, streams_ * streams_), y(n, hidden_);

    hc_pre(s, site(p + "hc_attn"), floats(p + "attn_norm.weight"), x, post, comb, numerics, serial);

    const Matrix wq_a = matrix(a + "wq_a");
    Buffer qa(n, wq_a.rows), qr(n, wq_a.rows), q(n, heads_ * head_dim_), kv(n, head_dim_), rows(n, head_dim_);
    linear(x, wq_a, qa, quantised, numerics, serial);
    norm(qa, floats(a + "q_norm.weight"), eps, qr, numerics, serial);
    linear(qr, matrix(a + "wq_b"), q, quantised, numerics, serial);
    head_norm_rope(q, heads_, eps, rope, positions, numerics, serial);
    linear(x, matrix(a + "wkv"), kv, quantised, numerics, serial);
    kv_rows(kv, floats(a + "kv_norm.weight"), eps, rope, positions, rows, numerics, serial);
    state.window.insert(state.window.end(), rows.data.begin(), rows.data.end());

    const auto compress = [&](const std::string& c, EntryKind kind, std::size_t d, std::vector<float>& us,
                              std::vector<float>& zs, std::vector<float>& entries) {
        const Compressor compressor{ratio, d, kind, floats(c + ".ape"), floats(c + ".norm.weight"), eps};
        const std::size_t width = compressor.token_width();
        Buffer u(n, width), z(n, width);
        linear(x, matrix(c + ".wkv"), u, exact, numerics, serial);
        linear(x, matrix(c + ".wgate"), z, exact, numerics, serial);
        add_gate_positions(z, positions, compressor);
        us.insert(us.end(), u.data.begin(), u.data.end());
        zs.insert(zs.end(), z.data.begin(), z.data.end());
        for (const std::int64_t t : positions) {
            if ((t + 1) % static_cast<std::int64_t>(ratio) != 0) continue;
            std::vector<Partial> tokens(compressor.slots());
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                const std::int64_t at = t + 1 - static_cast<std::int64_t>(tokens.size() - i);
                if (at >= 0)
                    tokens[i] = {&us[static_cast<std::size_t>(at) * width], &zs[static_cast<std::size_t>(at) * width]};
            }
            entries.resize(entries.size() + d);
            close_window(tokens, t / static_cast<std::int64_t>(ratio), compressor, rope, std::span(entries).last(d),
                         numerics);
        }
    };
    const std::size_t index_dim = config_["index_head_dim"].get<std::size_t>(),
                      index_heads = config_["index_n_heads"].get<std::size_t>();
    Buffer iq(n, index_heads * index_dim), iw(n, index_heads);
    if (ratio > 0) compress(a + "compressor", EntryKind::attention, head_dim_, state.u, state.z, state.entries);
    if (ratio == 4) {
        compress(a + "indexer.compressor", EntryKind::index, index_dim, state.index_u, state.index_z, state.keys);
        linear(qr, matrix(a + "indexer.wq_b"), iq, quantised, numerics, serial);
        head_norm_rope(iq, index_heads, -1.0f, rope, positions, numerics, serial);
        for (std::size_t i = 0; i < n * index_heads; ++i)
            index_round(std::span(iq.data).subspan(i * index_dim, index_dim), numerics);
        linear(x, matrix(a + "indexer.weights_proj"), iw, plain, numerics, serial);
        for (std::size_t i = 0; i < n; ++i) scale_head_weights(RowsOut(iw)[i], index_dim, numerics);
    }

    const std::size_t window = config_["sliding_window"].get<std::size_t>();
    Buffer o(n, heads_ * head_dim_);
    for (std::size_t i = 0; i < n; ++i) {
        const auto t = static_cast<std::size_t>(positions[i]);
        const std::size_t begin = t + 1 > window ? t + 1 - window : 0;
        std::vector<float> gathered(state.window.begin() + static_cast<std::ptrdiff_t>(begin * head_dim_),
                                    state.window.begin() + static_cast<std::ptrdiff_t>((t + 1) * head_dim_));
        const std::size_t visible = ratio > 0 ? (t + 1) / ratio : 0;
        std::vector<std::int32_t> list(visible);
        for (std::size_t w = 0; w < visible; ++w) list[w] = static_cast<std::int32_t>(w);
        if (ratio == 4) {
            list =
                index_select(RowsIn(iq)[i], RowsIn(iw)[i], {state.keys.data(), visible, index_dim}, top_k_, numerics);
            picks[index].push_back(list);
        }
        for (const std::int32_t w : list) {
            const auto from =
                state.entries.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(w) * head_dim_);
            gathered.insert(gathered.end(), from, from + static_cast<std::ptrdiff_t>(head_dim_));
        }
        attend(RowsIn(q)[i], {gathered.data(), gathered.size() / head_dim_, head_dim_}, t + 1 - begin,
               floats(a + "attn_sink"), rope, positions[i], {heads_, window, 64}, RowsOut(o)[i], numerics);
    }
    const Matrix wo_a = matrix(a + "wo_a");
    Buffer t(n, wo_a.rows);
    group_linear(o, wo_a, config_["o_groups"].get<std::size_t>(), t, plain, numerics, serial);
    linear(t, matrix(a + "wo_b"), y, quantised, numerics, serial);
    hc_post(y, s, post, comb, s, numerics, serial);

    hc_pre(s, site(p + "hc_ffn"), floats(p + "ffn_norm.weight"), x, post, comb, numerics, serial);
    Router router{matrix(f + "gate")};
    router.picks = config_["num_experts_per_tok"].get<std::size_t>();
    router.scaling = config_["routed_scaling_factor"].get<float>();
    if (const auto table = tables_.find(f + "gate.tid2eid"); table != tables_.end())
        router.table = table->second;
    else
        router.bias = floats(f + "gate.bias");
    std::vector<std::int32_t> chosen(n * router.picks);
    Buffer weights(n, router.picks);
    route(x, ids, router, chosen, weights, numerics, serial);
    const auto expert = [&](const std::string& e) {
        return Expert{matrix(e + ".w1"), matrix(e + ".w2"), matrix(e + ".w3")};
    };
    std::vector<Expert> routed;
    for (std::size_t e = 0; e < config_["n_routed_experts"].get<std::size_t>(); ++e)
        routed.push_back(expert(f + "experts." + std::to_string(e)));
    experts(x, chosen, weights, routed, expert(f + "shared_experts"), y,
            {config_["swiglu_limit"].get<float>(), Quantiser::fp8_128}, numerics, serial);
    hc_post(y, s, post, comb, s, numerics, serial);
}

std::vector<float> ReferenceModel::head(const std::vector<float>& streams, const Numerics& numerics) const {
    const std::size_t n = streams.size() / stream_width();
    Buffer x(n, hidden_), logits(n, vocabulary_);
    hc_head({streams.data(), n, stream_width()}, site("hc_head"), x, numerics, serial);
    norm(x, floats("norm.weight"), config_["rms_norm_eps"].get<float>(), x, numerics, serial);
    linear(x, matrix("head"), logits, exact, numerics, serial);
    return logits.data;
}

} // namespace dsv4::test
