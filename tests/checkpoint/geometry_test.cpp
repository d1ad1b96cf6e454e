// config.json: the published values arrive, and every bad field is refused by name.
#include "core/model/geometry.hpp"
#include "tests/checkpoint/support.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace dsv4;
using namespace dsv4::test;
using nlohmann::json;

namespace {

std::string error_of(const std::string& config) {
    const auto result = model::parse_geometry(config, "config.json");
    return result.ok() ? "accepted" : result.error().message;
}

// The 0731 config with one field changed; a null value removes it.
std::string with(const std::string& pointer, const json& value) {
    json config = json::parse(flash_0731_config());
    config[json::json_pointer(pointer)] = value;
    return config.dump();
}

} // namespace

TEST_CASE("the published 0731 config gives the published geometry") {
    const model::Geometry g = geometry_of(flash_0731_config());
    CHECK(g.hidden_size == 4096);
    CHECK(g.num_hidden_layers == 43);
    CHECK(g.num_attention_heads == 64);
    CHECK(g.head_dim == 512);
    CHECK(g.qk_rope_head_dim == 64);
    CHECK(g.q_lora_rank == 1024);
    CHECK(g.o_groups == 8);
    CHECK(g.o_lora_rank == 1024);
    CHECK(g.sliding_window == 128);
    CHECK(g.index_n_heads == 64);
    CHECK(g.index_head_dim == 128);
    CHECK(g.index_topk == 512);
    CHECK(g.rope_theta == 10000);
    CHECK(g.compress_rope_theta == 160000);
    CHECK(g.yarn.factor == 16);
    CHECK(g.yarn.original_max_position_embeddings == 65536);
    CHECK(g.yarn.beta_fast == 32);
    CHECK(g.yarn.beta_slow == 1);
    CHECK(g.max_position_embeddings == 1048576);
    CHECK(g.n_routed_experts == 256);
    CHECK(g.num_experts_per_tok == 6);
    CHECK(g.moe_intermediate_size == 2048);
    CHECK(g.num_hash_layers == 3);
    CHECK(g.routed_scaling_factor == 1.5);
    CHECK(g.swiglu_limit == 10);
    CHECK(g.hc_mult == 4);
    CHECK(g.hc_sinkhorn_iters == 20);
    CHECK(g.hc_eps == 1e-6);
    CHECK(g.rms_norm_eps == 1e-6);
    CHECK(g.bos_token_id == 0);
    CHECK(g.eos_token_ids == std::vector<std::int64_t>{1});
    CHECK_FALSE(g.pad_token_id);
    CHECK(g.num_nextn_predict_layers == 1);
    REQUIRE(g.dspark);
    CHECK(g.dspark->block_size == 5);
    CHECK(g.dspark->noise_token_id == 128799);
    CHECK(g.dspark->target_layer_ids == std::vector<std::int64_t>{40, 41, 42});
    CHECK(g.dspark->markov_rank == 256);
    // 2 window layers, 21 with an indexer, 20 without; three draft layers behind them.
    CHECK(std::count(g.compress_ratios.begin(), g.compress_ratios.end(), 0) == 2);
    CHECK(std::count(g.compress_ratios.begin(), g.compress_ratios.end(), 4) == 21);
    CHECK(std::count(g.compress_ratios.begin(), g.compress_ratios.end(), 128) == 20);
    CHECK(g.draft_ratios == std::vector<int>{0, 0, 0});
    CHECK(g.ratio(2) == 4);
    CHECK(g.ratio(41) == 128);
    CHECK(g.ratio(43) == 0);
    CHECK(g.hash_routed(2));
    CHECK_FALSE(g.hash_routed(3));
    CHECK(model::family(g) == model::Family::flash);
}

TEST_CASE("a bad field is refused by name, with what it holds and what is expected") {
    struct Case {
        const char* pointer;
        json value;
        const char* message;
    };
    const Case cases[] = {
        {"/hidden_size", nullptr, "hidden_size is missing; expected an integer from 2 to 262144"},
        {"/hidden_size", -4096, "hidden_size is -4096; expected an integer from 2 to 262144"},
        {"/hidden_size", 4096.0, "hidden_size is 4096.0; expected an integer"},
        {"/hidden_size", "4096", "hidden_size is \"4096\"; expected an integer"},
        {"/hidden_size", 4097, "hidden_size is 4097; expected an even number"},
        {"/hidden_size", std::uint64_t{1} << 63, "hidden_size is 9223372036854775808; expected an integer"},
        {"/num_hidden_layers", 0, "num_hidden_layers is 0; expected an integer from 1"},
        {"/num_hidden_layers", 47, "at least num_hidden_layers (47) entries, found 46"},
        {"/vocab_size", 1, "vocab_size is 1; expected an integer from 2"},
        {"/compress_ratios/3", 8, "expected entries of 0, 4 or 128, found 8 at index 3"},
        {"/compress_ratios/3", -4, "compress_ratios is [0,0,4,-4,"},
        {"/compress_ratios/44", 4, "expected 0 for draft layers (behind the first 43), found 4 at index 44"},
        {"/index_head_dim", 96, "index_head_dim is 96; expected a power of two"},
        {"/index_head_dim", 32, "index_head_dim is 32; expected at least qk_rope_head_dim (64)"},
        {"/qk_rope_head_dim", 63, "qk_rope_head_dim is 63; expected an even number of at most head_dim (512)"},
        {"/qk_rope_head_dim", 514, "qk_rope_head_dim is 514; expected an even number of at most head_dim (512)"},
        {"/o_groups", 7, "o_groups is 7; expected a divisor of num_attention_heads (64)"},
        {"/num_experts_per_tok", 65, "num_experts_per_tok is 65; expected an integer from 1 to 64"},
        {"/n_routed_experts", 4, "num_experts_per_tok is 6; expected at most n_routed_experts (4)"},
        {"/n_routed_experts", 65536,
         "n_routed_experts is 65536; expected at most 262144 experts over all 46 main and draft layers"},
        {"/n_shared_experts", 2, "n_shared_experts is 2; expected an integer from 1 to 1"},
        {"/num_hash_layers", 44, "num_hash_layers is 44; expected an integer from 0 to 43"},
        {"/num_key_value_heads", 8, "num_key_value_heads is 8; expected 1 (the only value"},
        {"/scoring_func", "sigmoid", "scoring_func is \"sigmoid\"; expected \"sqrtsoftplus\""},
        {"/topk_method", "greedy", "topk_method is \"greedy\"; expected \"noaux_tc\""},
        {"/hidden_act", "gelu", "hidden_act is \"gelu\"; expected \"silu\""},
        {"/norm_topk_prob", false, "norm_topk_prob is false; expected true"},
        {"/tie_word_embeddings", true, "tie_word_embeddings is true; expected false"},
        {"/model_type", "deepseek_v41", "model_type is \"deepseek_v41\"; expected \"deepseek_v4\""},
        {"/architectures/0", "LlamaForCausalLM", "architectures is [\"LlamaForCausalLM\"]; expected"},
        {"/swiglu_limit", 0, "swiglu_limit is 0; expected a number above 0"},
        {"/rms_norm_eps", "tiny", "rms_norm_eps is \"tiny\"; expected a number above 0"},
        {"/rope_theta", 0.5, "rope_theta is 0.5; expected a number above 1"},
        {"/rope_scaling", nullptr, "rope_scaling is missing; expected an object"},
        {"/rope_scaling/type", "linear", "rope_scaling.type is \"linear\"; expected \"yarn\""},
        {"/rope_scaling/beta_slow", 32, "rope_scaling.beta_fast is 32; expected a number above rope_scaling.beta_slow"},
        {"/rope_scaling/factor", 0.5, "rope_scaling.factor is 0.5; expected a number of at least 1"},
        {"/eos_token_id", 129280, "eos_token_id is 129280; expected an integer from 0 to 129279"},
        {"/eos_token_id", json::array(), "eos_token_id is []; expected a token id, or a list of at least one"},
        {"/dspark_block_size", nullptr,
         "dspark_block_size is missing; expected a value, because other dspark_* fields"},
        {"/dspark_block_size", 0, "dspark_block_size is 0; expected an integer from 1 to 64"},
        {"/dspark_noise_token_id", 129280, "dspark_noise_token_id is 129280; expected an integer from 0 to 129279"},
        {"/dspark_target_layer_ids/2", 43, "dspark_target_layer_ids is [40,41,43]; expected a list"},
        {"/dspark_target_layer_ids", json::array(), "dspark_target_layer_ids is []; expected at least one layer"},
        {"/quantization_config/weight_block_size/0", 32,
         "quantization_config.weight_block_size is [32,128]; expected [128,128]"},
        {"/dsv4_encoding", "v41", "dsv4_encoding is \"v41\"; expected \"v4-preview\" or \"v4-0731\""},
    };
    for (const Case& c : cases) {
        INFO(c.pointer << " = " << c.value.dump());
        CHECK_THAT(error_of(with(c.pointer, c.value)), ContainsSubstring(c.message));
    }
}

TEST_CASE("a config that is not one JSON object of unique keys is refused") {
    CHECK_THAT(error_of(""), ContainsSubstring("config.json is not valid JSON"));
    CHECK_THAT(error_of("[1]"), ContainsSubstring("config.json does not hold a JSON object"));
    CHECK_THAT(error_of("{\"a\":1}}"), ContainsSubstring("config.json is not valid JSON"));
    CHECK_THAT(error_of("{\"hidden_size\":1,\"hidden_size\":2}"),
               ContainsSubstring("states the key \"hidden_size\" twice"));
    CHECK_THAT(error_of("{\"a\":\"\xff\"}"), ContainsSubstring("not valid JSON"));
    CHECK_THAT(error_of("{\"a\":" + std::string(100000, '[')), ContainsSubstring("config.json"));
}

TEST_CASE("optional fields: lists of end ids, padding, hash layers, the newer spelling of yarn") {
    json config = json::parse(flash_0731_config());
    config["eos_token_id"] = {1, 7};
    config["pad_token_id"] = 2;
    config.erase("num_hash_layers");
    config["rope_scaling"].erase("type");
    config["rope_scaling"]["rope_type"] = "yarn";
    const model::Geometry g = geometry_of(config.dump());
    CHECK(g.eos_token_ids == std::vector<std::int64_t>{1, 7});
    CHECK(g.pad_token_id == 2);
    CHECK(g.num_hash_layers == 0);
    CHECK(g.yarn.factor == 16);
}
