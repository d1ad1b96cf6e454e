// Enumerates the weights of a geometry.
#include "core/model/weights.hpp"

#include <utility>

namespace dsv4::model {
namespace {

using Dims = std::vector<std::int64_t>;

class Lister {
  public:
    Lister(const Geometry& geometry, const WeightOptions& options) : g_(geometry), options_(options) {}

    std::vector<Weight> run() {
        matrix("embed", Format::bf16, {g_.vocab_size, g_.hidden_size}, Group::embedding);
        for (layer_ = 0; layer_ < g_.num_hidden_layers; ++layer_)
            block("layers." + std::to_string(layer_) + ".", g_.ratio(layer_), g_.hash_routed(layer_), options_.experts);
        layer_ = -1;
        matrix("norm", Format::bf16, {g_.hidden_size}, Group::norms);
        matrix("head", Format::bf16, {g_.vocab_size, g_.hidden_size}, Group::head);
        hc_head("");
        if (options_.draft != DraftKind::none) draft();
        return std::move(out_);
    }

  private:
    void add(std::string name, std::string data, std::string scale, Format format, Dims dims, Group group) {
        out_.push_back({std::move(name), format, std::move(dims), std::move(data), std::move(scale), group, draft_,
                        static_cast<int>(layer_), expert_});
    }
    // Stored as `<name>.weight`, with `<name>.scale` where the format has a scale.
    void matrix(const std::string& name, Format format, Dims dims, Group group) {
        const bool scaled = format == Format::fp8_block128 || format == Format::fp4_block32;
        add(name, name + ".weight", scaled ? name + ".scale" : "", format, std::move(dims), group);
    }
    // Stored under the bare name.
    void plain(const std::string& name, Format format, Dims dims, Group group) {
        add(name, name, "", format, std::move(dims), group);
    }

    void hc_head(const std::string& prefix) {
        const std::int64_t n = g_.hc_mult;
        plain(prefix + "hc_head_fn", Format::f32, {n, n * g_.hidden_size}, Group::hyper_connections);
        plain(prefix + "hc_head_base", Format::f32, {n}, Group::hyper_connections);
        plain(prefix + "hc_head_scale", Format::f32, {1}, Group::hyper_connections);
    }

    void block(const std::string& p, int ratio, bool hash, ExpertPrecision experts) {
        matrix(p + "attn_norm", Format::bf16, {g_.hidden_size}, Group::norms);
        matrix(p + "ffn_norm", Format::bf16, {g_.hidden_size}, Group::norms);
        // Rows of hc_*_fn: n for pre, n for post, n*n for the mixing matrix.
        const std::int64_t n = g_.hc_mult, rows = n * (n + 2);
        for (const char* site : {"hc_attn_", "hc_ffn_"}) {
            plain(p + site + "fn", Format::f32, {rows, n * g_.hidden_size}, Group::hyper_connections);
            plain(p + site + "base", Format::f32, {rows}, Group::hyper_connections);
            plain(p + site + "scale", Format::f32, {3}, Group::hyper_connections);
        }
        attention(p + "attn.", ratio);
        feed_forward(p + "ffn.", hash, experts);
    }

    void attention(const std::string& p, int ratio) {
        const std::int64_t q_width = g_.num_attention_heads * g_.head_dim, o_width = g_.o_groups * g_.o_lora_rank;
        matrix(p + "wq_a", Format::fp8_block128, {g_.q_lora_rank, g_.hidden_size}, Group::attention);
        matrix(p + "q_norm", Format::bf16, {g_.q_lora_rank}, Group::attention);
        matrix(p + "wq_b", Format::fp8_block128, {q_width, g_.q_lora_rank}, Group::attention);
        matrix(p + "wkv", Format::fp8_block128, {g_.head_dim, g_.hidden_size}, Group::attention);
        matrix(p + "kv_norm", Format::bf16, {g_.head_dim}, Group::attention);
        plain(p + "attn_sink", Format::f32, {g_.num_attention_heads}, Group::attention);
        // Block-diagonal: row block i of o_lora_rank rows reads the channels of head group i only.
        matrix(p + "wo_a", Format::fp8_block128, {o_width, q_width / g_.o_groups}, Group::attention);
        matrix(p + "wo_b", Format::fp8_block128, {g_.hidden_size, o_width}, Group::attention);
        if (ratio == 0) return;
        compressor(p + "compressor.", ratio, g_.head_dim, Group::compressor);
        if (ratio != 4) return;
        matrix(p + "indexer.wq_b", Format::fp8_block128, {g_.index_n_heads * g_.index_head_dim, g_.q_lora_rank},
               Group::indexer);
        matrix(p + "indexer.weights_proj", Format::bf16, {g_.index_n_heads, g_.hidden_size}, Group::indexer);
        compressor(p + "indexer.compressor.", ratio, g_.index_head_dim, Group::indexer);
    }

    void compressor(const std::string& p, int ratio, std::int64_t width, Group group) {
        // Ratio-4 windows overlap: half of the channels goes to the next window's entry.
        const std::int64_t channels = ratio == 4 ? 2 * width : width;
        matrix(p + "wkv", Format::bf16, {channels, g_.hidden_size}, group);
        matrix(p + "wgate", Format::bf16, {channels, g_.hidden_size}, group);
        plain(p + "ape", Format::f32, {ratio, channels}, group);
        matrix(p + "norm", Format::bf16, {width}, group);
    }

    void feed_forward(const std::string& p, bool hash, ExpertPrecision experts) {
        matrix(p + "gate", Format::bf16, {g_.n_routed_experts, g_.hidden_size}, Group::router);
        if (hash)
            plain(p + "gate.tid2eid", Format::i64, {g_.vocab_size, g_.num_experts_per_tok}, Group::router);
        else
            plain(p + "gate.bias", Format::f32, {g_.n_routed_experts}, Group::router);
        expert(p + "shared_experts.", Format::fp8_block128, Group::shared_experts);
        const Format format = expert_format(experts);
        for (expert_ = 0; expert_ < g_.n_routed_experts; ++expert_)
            expert(p + "experts." + std::to_string(expert_) + ".", format, Group::routed_experts);
        expert_ = -1;
    }

    // w1 is the gate, w3 the up, w2 the down projection.
    void expert(const std::string& p, Format format, Group group) {
        matrix(p + "w1", format, {g_.moe_intermediate_size, g_.hidden_size}, group);
        matrix(p + "w2", format, {g_.hidden_size, g_.moe_intermediate_size}, group);
        matrix(p + "w3", format, {g_.moe_intermediate_size, g_.hidden_size}, group);
    }

    static Format expert_format(ExpertPrecision precision) {
        if (precision == ExpertPrecision::fp4) return Format::fp4_block32;
        if (precision == ExpertPrecision::fp8) return Format::fp8_block128;
        throw Failure(Code::unsupported,
                      "routed experts stored as " + std::string(expert_precision_name(precision)) +
                          " cannot be read from a safetensors checkpoint",
                      "use a checkpoint with fp4 (E2M1, one scale per 32) or fp8 (E4M3, 128x128 blocks) experts");
    }

    int stages() const {
        if (options_.draft_stages > 0) return options_.draft_stages;
        if (!g_.draft_ratios.empty()) return static_cast<int>(g_.draft_ratios.size());
        return options_.draft == DraftKind::dspark ? 3 : 1;
    }

    void draft() {
        draft_ = true;
        const int count = stages();
        const std::int64_t d = g_.hidden_size;
        const bool dspark = options_.draft == DraftKind::dspark;
        if (dspark && !g_.dspark)
            throw Failure(Code::invalid, "a dspark draft needs the dspark_* fields, which config.json does not state");
        for (layer_ = 0; layer_ < count; ++layer_) {
            const std::string p = "mtp." + std::to_string(layer_) + ".";
            block(p, 0, false, options_.draft_experts);
            if (dspark)
                dspark_extras(p, *g_.dspark, layer_ == 0, layer_ + 1 == count);
            else
                mtp_extras(p, d);
        }
        layer_ = -1;
        draft_ = false;
    }

    void mtp_extras(const std::string& p, std::int64_t d) {
        matrix(p + "e_proj", Format::fp8_block128, {d, d}, Group::draft);
        matrix(p + "h_proj", Format::fp8_block128, {d, d}, Group::draft);
        matrix(p + "enorm", Format::bf16, {d}, Group::draft);
        matrix(p + "hnorm", Format::bf16, {d}, Group::draft);
        matrix(p + "norm", Format::bf16, {d}, Group::norms);
        hc_head(p);
    }

    // The first stage owns the tap projection, the last one the output side.
    void dspark_extras(const std::string& p, const Dspark& s, bool first, bool last) {
        const std::int64_t d = g_.hidden_size;
        if (first) {
            const auto taps = static_cast<std::int64_t>(s.target_layer_ids.size());
            matrix(p + "main_proj", Format::fp8_block128, {d, taps * d}, Group::draft);
            matrix(p + "main_norm", Format::bf16, {d}, Group::draft);
        }
        if (!last) return;
        matrix(p + "norm", Format::bf16, {d}, Group::norms);
        hc_head(p);
        matrix(p + "markov_head.markov_w1", Format::bf16, {g_.vocab_size, s.markov_rank}, Group::draft);
        matrix(p + "markov_head.markov_w2", Format::bf16, {g_.vocab_size, s.markov_rank}, Group::draft);
        matrix(p + "confidence_head.proj", Format::bf16, {1, d + s.markov_rank}, Group::draft);
    }

    const Geometry& g_;
    const WeightOptions& options_;
    std::vector<Weight> out_;
    std::int64_t layer_ = -1;
    int expert_ = -1;
    bool draft_ = false;
};

template <class Enum, std::size_t N>
std::string_view name_in(const std::array<std::string_view, N>& names, Enum value) noexcept {
    return names[static_cast<std::size_t>(value)];
}

constexpr std::array<std::string_view, 6> format_names{"bf16", "f32", "i32", "i64", "fp8_block128", "fp4_block32"};
constexpr std::array<std::string_view, group_count> group_names{
    "embedding",      "head",           "attention",         "compressor", "indexer", "router",
    "routed_experts", "shared_experts", "hyper_connections", "norms",      "draft"};
constexpr std::array<std::string_view, 3> draft_names{"none", "mtp", "dspark"};
constexpr std::array<std::string_view, 6> precision_names{"fp4", "fp8", "nvfp4", "int4", "bf16", "unknown"};

} // namespace

std::string_view format_name(Format format) noexcept { return name_in(format_names, format); }
std::string_view group_name(Group group) noexcept { return name_in(group_names, group); }
std::string_view draft_kind_name(DraftKind kind) noexcept { return name_in(draft_names, kind); }
std::string_view expert_precision_name(ExpertPrecision precision) noexcept {
    return name_in(precision_names, precision);
}

std::int64_t Weight::elements() const {
    std::int64_t n = 1;
    for (const auto d : dims) n *= d;
    return n;
}

std::vector<Weight> weights(const Geometry& geometry, const WeightOptions& options) {
    return Lister(geometry, options).run();
}

} // namespace dsv4::model
