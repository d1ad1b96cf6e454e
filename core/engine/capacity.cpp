// Sizing of state pools.
#include "core/engine/capacity.hpp"

#include <algorithm>

namespace dsv4::engine {
namespace {

std::uint64_t pages_of(std::int64_t positions, const state::KindRule& rule) {
    return std::uint64_t((positions + rule.positions_per_page - 1) / std::int64_t(rule.positions_per_page));
}

} // namespace

PoolSizes size_pools(const std::vector<dsv4_state_layout>& layouts, const EngineConfig& config) {
    PoolSizes sizes;
    sizes.rules = state::kind_rules(layouts, config.sliding_window);
    const std::uint64_t slots = config.max_sequences;
    if (!config.pool_pages.empty()) {
        if (config.pool_pages.size() != sizes.rules.size())
            throw Failure(Code::invalid, "pool_pages names " + std::to_string(config.pool_pages.size()) +
                                             " pools, but the backend has " + std::to_string(sizes.rules.size()));
        sizes.pages = config.pool_pages;
        sizes.boundary_states = config.boundary_states;
        return sizes;
    }

    auto page_bytes = [&](const state::KindRule& rule) {
        return std::find_if(layouts.begin(), layouts.end(), [&](const auto& l) { return l.kind == rule.kind; })
            ->page_bytes;
    };
    std::uint64_t fixed = 0, block = 0, boundary = 0;
    for (const dsv4_state_layout& l : layouts)
        if (l.kind == DSV4_STATE_TOKEN_COUNTS) fixed += slots * l.page_bytes;
    std::vector<std::uint64_t> running(sizes.rules.size(), 0), kept(sizes.rules.size(), 0);
    for (std::size_t i = 0; i < sizes.rules.size(); ++i) {
        const state::KindRule& rule = sizes.rules[i];
        if (rule.grows()) {
            block += page_bytes(rule);
            continue;
        }
        kept[i] = pages_of(rule.boundary_positions, rule);
        // Reach, a page begun on either side, the boundary behind it; and the rows of two steps in flight.
        running[i] = slots * (pages_of(rule.reach_positions, rule) + 2 + kept[i]) +
                     2 * (pages_of(config.max_batched_tokens, rule) + 1);
        fixed += running[i] * page_bytes(rule);
        boundary += kept[i] * page_bytes(rule);
    }
    const std::uint64_t sequence_blocks =
        std::uint64_t((config.max_model_len + state::block_positions - 1) / state::block_positions) + 1;
    const std::uint64_t least_blocks = std::max<std::uint64_t>(slots, 4);
    if (config.cache_bytes < fixed + least_blocks * block)
        throw Failure(Code::exhausted,
                      "the cache has " + std::to_string(config.cache_bytes) + " bytes, but " + std::to_string(slots) +
                          " sequences and steps of " + std::to_string(config.max_batched_tokens) +
                          " tokens need at least " + std::to_string(fixed + least_blocks * block),
                      "raise kv.cache_bytes or lower context.max_num_seqs or context.max_num_batched_tokens");
    const std::uint64_t spare = config.cache_bytes - fixed;
    const std::uint64_t most_blocks = std::min<std::uint64_t>(sequence_blocks * slots * 4, 1u << 24);
    const bool keep_boundaries = config.prefix_caching && boundary > 0;
    // One sequence of full length comes first; boundary states get a third of the rest.
    std::uint64_t for_boundaries = 0;
    if (keep_boundaries && spare > sequence_blocks * block) for_boundaries = (spare - sequence_blocks * block) / 3;
    std::uint64_t blocks = block == 0 ? 0 : std::min((spare - for_boundaries) / block, most_blocks);
    const std::uint64_t states =
        keep_boundaries ? std::min<std::uint64_t>({for_boundaries / boundary, blocks, 1u << 20}) : 0;
    sizes.boundary_states = std::uint32_t(states);
    sizes.bytes = fixed + blocks * block + states * boundary;
    for (std::size_t i = 0; i < sizes.rules.size(); ++i)
        sizes.pages.push_back(std::uint32_t(sizes.rules[i].grows() ? blocks : running[i] + states * kept[i]));
    return sizes;
}

std::uint64_t cache_budget(const plan::KvPolicy& kv, const dsv4_device_info& device, const dsv4_memory_report& in_use) {
    if (kv.cache_bytes) return std::uint64_t(std::max<std::int64_t>(*kv.cache_bytes, 0));
    const double usable = double(device.memory_bytes) * kv.utilization;
    const double used =
        double(in_use.weights_bytes) + double(in_use.workspace_bytes) + double(in_use.executables_bytes);
    return usable > used ? std::uint64_t(usable - used) : 0;
}

} // namespace dsv4::engine
