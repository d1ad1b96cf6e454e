// Reads config.json into a Geometry and refuses what the engine could not run.
#include "core/model/geometry.hpp"

#include "core/model/strict_json.hpp"

#include <bit>
#include <cmath>
#include <initializer_list>
#include <tuple>

namespace dsv4::model {
namespace {

using nlohmann::json;

constexpr std::size_t max_config_bytes = 16u << 20;
constexpr std::int64_t max_width = std::int64_t{1} << 18;
constexpr std::int64_t max_tokens = std::int64_t{1} << 31;

// One level of the file: reads fields and says in full what is wrong with them.
class Reader {
  public:
    Reader(const json& object, std::string where, std::string prefix = {})
        : object_(object), where_(std::move(where)), prefix_(std::move(prefix)) {}

    [[noreturn]] void fail(std::string_view field, const std::string& expected) const {
        const json* found = find(field);
        const std::string holds =
            found ? "is " + shorten(found->dump(-1, ' ', false, json::error_handler_t::replace)) : "is missing";
        throw Failure(Code::invalid,
                      where_ + ": " + prefix_ + std::string(field) + " " + holds + "; expected " + expected,
                      "use the config.json that was published with these weights");
    }

    const json* find(std::string_view field) const {
        const auto it = object_.find(field);
        return it == object_.end() || it->is_null() ? nullptr : &*it;
    }

    std::int64_t integer(std::string_view field, std::int64_t low, std::int64_t high) const {
        const json* v = find(field);
        if (!v || !fits(*v, low, high)) fail(field, range(low, high));
        return v->get<std::int64_t>();
    }
    std::int64_t integer_or(std::string_view field, std::int64_t fallback, std::int64_t low, std::int64_t high) const {
        return find(field) ? integer(field, low, high) : fallback;
    }
    double positive(std::string_view field, double high) const {
        const json* v = find(field);
        const double x = v && v->is_number() ? v->get<double>() : 0;
        if (!(x > 0 && x <= high)) fail(field, "a number above 0 and at most " + json(high).dump());
        return x;
    }
    std::vector<std::int64_t> integers(std::string_view field, std::size_t most, std::int64_t low,
                                       std::int64_t high) const {
        const json* v = find(field);
        std::vector<std::int64_t> out;
        bool good = v && v->is_array() && v->size() <= most;
        for (std::size_t i = 0; good && i < v->size(); ++i) {
            good = fits((*v)[i], low, high);
            if (good) out.push_back((*v)[i].get<std::int64_t>());
        }
        if (!good) fail(field, "a list of at most " + std::to_string(most) + " integers, each " + range(low, high));
        return out;
    }
    std::string text_or_empty(std::string_view field) const {
        const json* v = find(field);
        if (!v) return {};
        if (!v->is_string()) fail(field, "a string");
        return v->get<std::string>();
    }
    // A field that changes the arithmetic: the one value that is implemented, or absent where `may_be_absent`.
    void only(std::string_view field, const json& value, bool may_be_absent) const {
        const json* v = find(field);
        if (!v && may_be_absent) return;
        if (!v || *v != value) fail(field, value.dump() + " (the only value this model family defines)");
    }
    const json& object(std::string_view field) const {
        const json* v = find(field);
        if (!v || !v->is_object()) fail(field, "an object");
        return *v;
    }

  private:
    static bool fits(const json& v, std::int64_t low, std::int64_t high) {
        if (v.is_number_unsigned() && v.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) return false;
        if (!v.is_number_integer()) return false;
        const auto x = v.get<std::int64_t>();
        return x >= low && x <= high;
    }
    static std::string range(std::int64_t low, std::int64_t high) {
        return "an integer from " + std::to_string(low) + " to " + std::to_string(high);
    }
    static std::string shorten(const std::string& text) {
        if (text.size() <= 80) return text;
        std::size_t end = 77; // not inside a UTF-8 sequence
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
        return text.substr(0, end) + "...";
    }

    const json& object_;
    std::string where_;
    std::string prefix_;
};

void read_ratios(const Reader& r, Geometry& g) {
    const auto all = r.integers("compress_ratios", static_cast<std::size_t>(g.num_hidden_layers) + 64, 0, 128);
    const auto layers = static_cast<std::size_t>(g.num_hidden_layers);
    if (all.size() < layers)
        r.fail("compress_ratios", "at least num_hidden_layers (" + std::to_string(layers) + ") entries, found " +
                                      std::to_string(all.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto ratio = static_cast<int>(all[i]);
        const std::string entry = std::to_string(ratio) + " at index " + std::to_string(i);
        if (ratio != 0 && ratio != 4 && ratio != 128)
            r.fail("compress_ratios", "entries of 0, 4 or 128, found " + entry);
        if (i >= layers && ratio != 0)
            r.fail("compress_ratios",
                   "0 for draft layers (behind the first " + std::to_string(layers) + "), found " + entry);
        (i < layers ? g.compress_ratios : g.draft_ratios).push_back(ratio);
    }
}

void read_attention(const Reader& r, const std::string& where, Geometry& g) {
    r.only("num_key_value_heads", 1, true);
    r.only("attention_bias", false, true);
    g.num_attention_heads = r.integer("num_attention_heads", 1, 4096);
    g.head_dim = r.integer("head_dim", 2, 16384);
    g.qk_rope_head_dim = r.integer("qk_rope_head_dim", 2, 16384);
    if (g.qk_rope_head_dim % 2 != 0 || g.qk_rope_head_dim > g.head_dim)
        r.fail("qk_rope_head_dim", "an even number of at most head_dim (" + std::to_string(g.head_dim) + ")");
    g.q_lora_rank = r.integer("q_lora_rank", 1, max_width);
    g.o_groups = r.integer("o_groups", 1, 4096);
    if (g.num_attention_heads % g.o_groups != 0)
        r.fail("o_groups", "a divisor of num_attention_heads (" + std::to_string(g.num_attention_heads) + ")");
    g.o_lora_rank = r.integer("o_lora_rank", 1, max_width);
    g.sliding_window = r.integer("sliding_window", 1, 1 << 20);
    g.index_n_heads = r.integer("index_n_heads", 1, 4096);
    g.index_head_dim = r.integer("index_head_dim", 2, 16384);
    if (!std::has_single_bit(static_cast<std::uint64_t>(g.index_head_dim)))
        r.fail("index_head_dim", "a power of two (the indexer rotates by a Hadamard matrix)");
    if (g.index_head_dim < g.qk_rope_head_dim)
        r.fail("index_head_dim", "at least qk_rope_head_dim (" + std::to_string(g.qk_rope_head_dim) + ")");
    g.index_topk = r.integer("index_topk", 1, 1 << 20);
    g.rope_theta = r.positive("rope_theta", 1e12);
    g.compress_rope_theta = r.positive("compress_rope_theta", 1e12);
    if (g.rope_theta <= 1) r.fail("rope_theta", "a number above 1");
    if (g.compress_rope_theta <= 1) r.fail("compress_rope_theta", "a number above 1");
    g.max_position_embeddings = r.integer("max_position_embeddings", 1, max_tokens);

    const Reader scaling(r.object("rope_scaling"), where, "rope_scaling.");
    scaling.only(scaling.find("type") ? "type" : "rope_type", "yarn", false);
    g.yarn.factor = scaling.positive("factor", 65536);
    if (g.yarn.factor < 1) scaling.fail("factor", "a number of at least 1");
    g.yarn.original_max_position_embeddings = scaling.integer("original_max_position_embeddings", 1, max_tokens);
    g.yarn.beta_fast = scaling.positive("beta_fast", 65536);
    g.yarn.beta_slow = scaling.positive("beta_slow", 65536);
    if (g.yarn.beta_fast <= g.yarn.beta_slow) scaling.fail("beta_fast", "a number above rope_scaling.beta_slow");
}

void read_experts(const Reader& r, Geometry& g) {
    r.only("hidden_act", "silu", true);
    r.only("scoring_func", "sqrtsoftplus", true);
    r.only("topk_method", "noaux_tc", true);
    r.only("norm_topk_prob", true, true);
    g.n_routed_experts = r.integer("n_routed_experts", 1, 65536);
    const std::int64_t layers = g.num_hidden_layers + static_cast<std::int64_t>(g.draft_ratios.size());
    if (g.n_routed_experts * layers > max_total_experts)
        r.fail("n_routed_experts", "at most " + std::to_string(max_total_experts) + " experts over all " +
                                       std::to_string(layers) + " main and draft layers");
    g.n_shared_experts = r.integer("n_shared_experts", 1, 1);
    g.num_experts_per_tok = r.integer("num_experts_per_tok", 1, 64);
    if (g.num_experts_per_tok > g.n_routed_experts)
        r.fail("num_experts_per_tok", "at most n_routed_experts (" + std::to_string(g.n_routed_experts) + ")");
    g.moe_intermediate_size = r.integer("moe_intermediate_size", 2, max_width);
    if (g.moe_intermediate_size % 2 != 0)
        r.fail("moe_intermediate_size", "an even number (two FP4 values share a byte)");
    g.num_hash_layers = r.integer_or("num_hash_layers", 0, 0, g.num_hidden_layers);
    g.routed_scaling_factor = r.positive("routed_scaling_factor", 1e4);
    g.swiglu_limit = r.positive("swiglu_limit", 1e6);
}

void read_ids(const Reader& r, Geometry& g) {
    g.bos_token_id = r.integer("bos_token_id", 0, g.vocab_size - 1);
    const json* eos = r.find("eos_token_id");
    if (eos && eos->is_array())
        g.eos_token_ids = r.integers("eos_token_id", 64, 0, g.vocab_size - 1);
    else
        g.eos_token_ids = {r.integer("eos_token_id", 0, g.vocab_size - 1)};
    if (g.eos_token_ids.empty()) r.fail("eos_token_id", "a token id, or a list of at least one");
    if (r.find("pad_token_id")) g.pad_token_id = r.integer("pad_token_id", 0, g.vocab_size - 1);
}

void read_dspark(const Reader& r, Geometry& g) {
    const std::initializer_list<std::string_view> fields{"dspark_block_size", "dspark_noise_token_id",
                                                         "dspark_target_layer_ids", "dspark_markov_rank"};
    bool stated = false;
    for (const auto field : fields) stated = stated || r.find(field);
    if (!stated) return;
    for (const auto field : fields)
        if (!r.find(field)) r.fail(field, "a value, because other dspark_* fields are stated");
    Dspark d;
    d.block_size = r.integer("dspark_block_size", 1, 64);
    d.noise_token_id = r.integer("dspark_noise_token_id", 0, g.vocab_size - 1);
    d.target_layer_ids = r.integers("dspark_target_layer_ids", 64, 0, g.num_hidden_layers - 1);
    if (d.target_layer_ids.empty()) r.fail("dspark_target_layer_ids", "at least one layer");
    d.markov_rank = r.integer("dspark_markov_rank", 1, max_width);
    g.dspark = std::move(d);
}

void read_quantization(const Reader& r, const std::string& where, Geometry& g) {
    g.expert_dtype = r.text_or_empty("expert_dtype");
    if (!r.find("quantization_config")) return;
    const Reader q(r.object("quantization_config"), where, "quantization_config.");
    if (q.text_or_empty("quant_method") != "fp8") return; // a derivative; the tensors decide what it is
    q.only("weight_block_size", json::array({128, 128}), true);
    q.only("fmt", "e4m3", true);
    q.only("scale_fmt", "ue8m0", true);
}

Geometry parse(std::string_view text, const std::string& where) {
    if (text.size() > max_config_bytes)
        throw Failure(Code::invalid, where + " has " + std::to_string(text.size()) + " bytes; expected at most " +
                                         std::to_string(max_config_bytes));
    const json root = parse_strict_object(text, where);
    const Reader r(root, where);
    Geometry g;
    const std::string type = r.text_or_empty("model_type");
    if (type != "deepseek_v4") r.fail("model_type", "\"deepseek_v4\" (V4.1 and other families are other models)");
    r.only("architectures", json::array({"DeepseekV4ForCausalLM"}), true);
    r.only("tie_word_embeddings", false, true);
    g.hidden_size = r.integer("hidden_size", 2, max_width);
    if (g.hidden_size % 2 != 0) r.fail("hidden_size", "an even number (two FP4 values share a byte)");
    g.num_hidden_layers = r.integer("num_hidden_layers", 1, 4096);
    g.vocab_size = r.integer("vocab_size", 2, 1 << 26);
    g.rms_norm_eps = r.positive("rms_norm_eps", 1);
    g.hc_mult = r.integer("hc_mult", 1, 16);
    g.hc_sinkhorn_iters = r.integer("hc_sinkhorn_iters", 1, 1000);
    g.hc_eps = r.positive("hc_eps", 1);
    read_ratios(r, g);
    read_attention(r, where, g);
    read_experts(r, g);
    read_ids(r, g);
    read_dspark(r, g);
    read_quantization(r, where, g);
    g.num_nextn_predict_layers = r.integer_or("num_nextn_predict_layers", 0, 0, 1024);
    g.dsv4_encoding = r.text_or_empty("dsv4_encoding");
    if (!g.dsv4_encoding.empty() && g.dsv4_encoding != "v4-preview" && g.dsv4_encoding != "v4-0731")
        r.fail("dsv4_encoding", "\"v4-preview\" or \"v4-0731\"");
    return g;
}

} // namespace

Result<Geometry> parse_geometry(std::string_view config_json, std::string_view where) {
    return guard([&] { return parse(config_json, std::string(where)); });
}

Family family(const Geometry& g) {
    const auto shape = std::tuple(g.hidden_size, g.num_hidden_layers, g.num_attention_heads, g.head_dim, g.q_lora_rank,
                                  g.n_routed_experts, g.moe_intermediate_size, g.vocab_size);
    if (shape == std::tuple(4096, 43, 64, 512, 1024, 256, 2048, 129280)) return Family::flash;
    if (shape == std::tuple(7168, 61, 128, 512, 1536, 384, 3072, 129280)) return Family::pro;
    return Family::custom;
}

} // namespace dsv4::model
