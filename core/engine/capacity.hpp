// How many pages of each state kind fit a budget of bytes, and what they are for.
#pragma once

#include "core/engine/config.hpp"
#include "core/state/pages.hpp"
#include "dsv4/backend.h"

#include <cstdint>
#include <vector>

namespace dsv4::engine {

struct PoolSizes {
    std::vector<state::KindRule> rules;
    std::vector<std::uint32_t> pages; // of each rule
    std::uint32_t boundary_states = 0;
    std::uint64_t bytes = 0; // pools and slots
};

// Sliding pools are sized for every slot at once, two steps in flight and the boundary states; what remains goes to
// blocks (about two thirds) and boundary states (about one third). Throws Failure(exhausted) naming the bytes that the
// smallest useful size needs.
PoolSizes size_pools(const std::vector<dsv4_state_layout>& layouts, const EngineConfig& config);

// Bytes for size_pools: what the plan says, or its utilization of the device without what is in use there.
std::uint64_t cache_budget(const plan::KvPolicy& kv, const dsv4_device_info& device, const dsv4_memory_report& in_use);

} // namespace dsv4::engine
