// A batch as the backend keeps it: everything a submit passes, copied and checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record.hpp"

namespace dsv4::cpu {

class Executable;
class StateStore;

struct PageTable {
    std::int32_t kind = 0;
    std::int64_t first_page = 0;
    std::vector<std::int32_t> ids;

    // The page with this number, or -1.
    std::int32_t page(std::int64_t number) const {
        const std::int64_t i = number - first_page;
        return i < 0 || i >= static_cast<std::int64_t>(ids.size()) ? -1 : ids[static_cast<std::size_t>(i)];
    }
};

struct BatchSlot {
    std::int32_t slot = 0;
    bool reset = false;
    std::int64_t committed = 0;
    std::optional<Sampling> sampling;
    std::vector<std::int32_t> prompt, generated;
    std::vector<PageTable> tables;

    const PageTable* table(std::int32_t kind) const {
        for (const PageTable& t : tables)
            if (t.kind == kind) return &t;
        return nullptr;
    }
};

// A Program input (copied bytes) or output (the caller's memory).
struct BoundTensor {
    std::size_t number = 0; // in the Program's input or output list
    std::vector<std::byte> bytes;
    std::byte* out = nullptr;
};

struct Batch {
    std::vector<dsv4_row> rows;
    std::vector<BatchSlot> slots;
    std::vector<dsv4_page_copy> copies;
    std::vector<BoundTensor> inputs, outputs;
};

// Copies `from` for `executable`; throws Failure(invalid) naming the first thing that is wrong. `slots`: records there
// are.
Batch copy_batch(const dsv4_batch& from, const Executable& executable, const StateStore& state, std::uint32_t slots);

} // namespace dsv4::cpu
