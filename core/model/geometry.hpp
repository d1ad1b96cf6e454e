// The numbers that fix the shape and the arithmetic of one DeepSeek-V4 model, read from a checkpoint's config.json.
#pragma once

#include "dsv4/sdk/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::model {

// Long-context rescaling of the rotary frequencies; applies to layers with a compression ratio other than 0. There is
// no attention factor (mscale) in this model.
struct Yarn {
    double factor = 0;
    std::int64_t original_max_position_embeddings = 0; // tokens
    double beta_fast = 0;
    double beta_slow = 0;
};

// The DSpark draft module: blocks under `mtp.*` that draft `block_size` tokens at once from taps of the main model.
struct Dspark {
    std::int64_t block_size = 0;                // tokens the draft was trained to propose
    std::int64_t noise_token_id = 0;            // stands in the slots that are not known yet
    std::vector<std::int64_t> target_layer_ids; // main layers whose outputs are tapped, in the order of concatenation
    std::int64_t markov_rank = 0;
};

// Routed experts of all layers and draft stages together; V4-Pro has 23,808.
inline constexpr std::int64_t max_total_experts = std::int64_t{1} << 18;

// Every bound that parse_geometry checks keeps each tensor below 2^62 bytes and the list of tensors below two million.
struct Geometry {
    // Streams and layers.
    std::int64_t hidden_size = 0;       // D
    std::int64_t num_hidden_layers = 0; // main layers, without draft layers
    std::int64_t vocab_size = 0;
    double rms_norm_eps = 0;
    // Hyper-connections: `hc_mult` residual streams of width D.
    std::int64_t hc_mult = 0;
    std::int64_t hc_sinkhorn_iters = 0;
    double hc_eps = 0;
    // Attention: one latent vector of head_dim is key and value of all heads; its last qk_rope_head_dim channels turn.
    std::int64_t num_attention_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t qk_rope_head_dim = 0;
    std::int64_t q_lora_rank = 0;
    std::int64_t o_groups = 0;
    std::int64_t o_lora_rank = 0;     // per group
    std::int64_t sliding_window = 0;  // tokens, the current one included
    std::vector<int> compress_ratios; // one a main layer: 0 window only, 4 with indexer, 128 without
    std::vector<int> draft_ratios;    // what the file lists behind the main layers: one entry a draft layer, all 0
    double rope_theta = 0;            // layers of ratio 0
    double compress_rope_theta = 0;   // all other layers, with yarn
    Yarn yarn;
    std::int64_t max_position_embeddings = 0; // tokens
    // Indexer of ratio-4 layers.
    std::int64_t index_n_heads = 0;
    std::int64_t index_head_dim = 0; // a power of two: the Hadamard rotation needs one
    std::int64_t index_topk = 0;     // compressed entries a row attends to
    // Experts.
    std::int64_t n_routed_experts = 0;
    std::int64_t n_shared_experts = 0;
    std::int64_t num_experts_per_tok = 0;
    std::int64_t moe_intermediate_size = 0; // width of a routed and of the shared expert
    std::int64_t num_hash_layers = 0;       // the first layers, which choose experts by token id
    double routed_scaling_factor = 0;
    double swiglu_limit = 0;
    // Special ids.
    std::int64_t bos_token_id = 0;
    std::vector<std::int64_t> eos_token_ids;
    std::optional<std::int64_t> pad_token_id;
    // Draft.
    std::optional<Dspark> dspark;
    std::int64_t num_nextn_predict_layers = 0; // as stated; says nothing reliable about the draft module
    // Claims of the file, checked against the tensors where there are tensors.
    std::string expert_dtype;  // empty where not stated
    std::string dsv4_encoding; // prompt encoding stated by a custom checkpoint; empty where not stated

    // compress_ratios[layer] for main layers, 0 for draft layers (which follow the main ones).
    int ratio(std::int64_t layer) const {
        return layer < num_hidden_layers ? compress_ratios[static_cast<std::size_t>(layer)] : 0;
    }
    bool hash_routed(std::int64_t layer) const { return layer < num_hash_layers; }
};

// Parses the text of a config.json. `where` names the file in messages. An error names the field, what it holds and
// what is expected: positive sizes within bounds, ratios of 0, 4 or 128, heads divisible by groups, and so on.
Result<Geometry> parse_geometry(std::string_view config_json, std::string_view where = "config.json");

// Which published shape this is, by its dimensions.
enum class Family { flash, pro, custom };
Family family(const Geometry& geometry);

} // namespace dsv4::model
