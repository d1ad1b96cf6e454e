// Geometry presets of the backend check.
#include "core/conformance/geometries.hpp"

namespace dsv4::conformance {
namespace {

model::Geometry common() {
    model::Geometry g;
    g.num_hidden_layers = 3;
    g.compress_ratios = {0, 4, 128};
    g.num_hash_layers = 1;
    g.rms_norm_eps = 1e-6;
    g.hc_mult = 4;
    g.hc_sinkhorn_iters = 20;
    g.hc_eps = 1e-6;
    g.qk_rope_head_dim = 64;
    g.rope_theta = 10000;
    g.compress_rope_theta = 160000;
    g.yarn = {16, 65536, 32, 1};
    g.index_head_dim = 128;
    g.n_shared_experts = 1;
    g.routed_scaling_factor = 1.5;
    g.swiglu_limit = 10;
    g.bos_token_id = 0;
    g.eos_token_ids = {1};
    g.expert_dtype = "fp4";
    return g;
}

model::Geometry small() {
    model::Geometry g = common();
    g.hidden_size = 256;
    g.num_attention_heads = 8;
    g.head_dim = 128;
    g.q_lora_rank = 128;
    g.o_groups = 4;
    g.o_lora_rank = 64;
    g.moe_intermediate_size = 128;
    return g;
}

model::Geometry published() {
    model::Geometry g = common();
    g.vocab_size = 129280;
    g.head_dim = 512;
    g.o_lora_rank = 1024;
    g.sliding_window = 128;
    g.index_n_heads = 64;
    g.num_experts_per_tok = 6;
    g.max_position_embeddings = 1048576;
    // The reference runs on a CPU: 16 experts of full width show every path that 256 do.
    g.n_routed_experts = 16;
    return g;
}

} // namespace

model::Geometry geometry(std::string_view name) {
    if (name == "tiny") {
        model::Geometry g = small();
        g.vocab_size = 2048;
        g.sliding_window = 64;
        g.index_n_heads = 4;
        g.index_topk = 64;
        g.n_routed_experts = 16;
        g.num_experts_per_tok = 6;
        g.max_position_embeddings = 4096;
        return g;
    }
    if (name == "golden") {
        model::Geometry g = small();
        g.vocab_size = 1024;
        g.sliding_window = 32;
        g.index_n_heads = 32;
        g.index_topk = 16;
        g.n_routed_experts = 8;
        g.num_experts_per_tok = 3;
        g.max_position_embeddings = 8192;
        return g;
    }
    if (name == "flash") {
        model::Geometry g = published();
        g.hidden_size = 4096;
        g.num_attention_heads = 64;
        g.q_lora_rank = 1024;
        g.o_groups = 8;
        g.index_topk = 512;
        g.moe_intermediate_size = 2048;
        return g;
    }
    if (name == "pro") {
        model::Geometry g = published();
        g.hidden_size = 7168;
        g.num_attention_heads = 128;
        g.q_lora_rank = 1536;
        g.o_groups = 16;
        g.index_topk = 1024;
        g.moe_intermediate_size = 3072;
        g.routed_scaling_factor = 2.5;
        return g;
    }
    throw Failure(Code::invalid, "there is no geometry '" + std::string(name) + "'", "use tiny, golden, flash or pro");
}

const std::vector<std::string_view>& geometry_names() {
    static const std::vector<std::string_view> names{"tiny", "golden", "flash", "pro"};
    return names;
}

} // namespace dsv4::conformance
