// Serving plan and geometry to engine configuration.
#include "core/engine/config.hpp"

#include <algorithm>

namespace dsv4::engine {
namespace {

std::uint32_t clamp_count(std::int64_t value, std::uint32_t otherwise) {
    return value <= 0 ? otherwise : std::uint32_t(std::min<std::int64_t>(value, 1 << 20));
}

} // namespace

EngineConfig config_from(const plan::ServingPlan& plan, const model::Geometry& geometry) {
    EngineConfig c;
    c.model_name = plan::model_name(plan);
    c.vocab_size = geometry.vocab_size;
    c.sliding_window = geometry.sliding_window;
    c.max_model_len = std::min(plan.context.max_model_len.value_or(geometry.max_position_embeddings),
                               geometry.max_position_embeddings);
    c.begin_id = std::int32_t(geometry.bos_token_id);
    for (std::int64_t id : geometry.eos_token_ids) c.stop_ids.push_back(std::int32_t(id));
    c.max_sequences = clamp_count(plan.context.max_num_seqs, c.max_sequences);
    c.max_batched_tokens =
        std::max(clamp_count(plan.context.max_num_batched_tokens, c.max_batched_tokens), c.max_sequences);
    c.chunked_prefill = plan.context.chunked_prefill;
    if (!c.chunked_prefill) // the longest prompt fits beside everyone else's next token
        c.max_batched_tokens =
            std::max(c.max_batched_tokens, clamp_count(c.max_model_len, c.max_batched_tokens) + c.max_sequences);
    c.prefix_caching = plan.kv.prefix_caching;
    c.sampling = {plan.sampling.temperature, plan.sampling.top_p, plan.sampling.top_k, plan.sampling.min_p};
    c.thinking = plan.reasoning.thinking;
    c.effort = plan.reasoning.effort;
    c.default_max_tokens = plan.reasoning.max_output_tokens.value_or(-1);
    return c;
}

} // namespace dsv4::engine
