// The weights as Programs and backends see them: routed experts stacked, everything else as it is.
#pragma once

#include "core/model/weights.hpp"
#include "dsv4/backend.h"
#include "dsv4/sdk/program.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::lower {

// One announced weight. The routed experts of a layer form the stacks "layers.L.ffn.experts.w1|w2|w3", dims [E, out,
// in], part e being expert e.
struct TableEntry {
    std::string name;
    dsv4_format format{};
    std::vector<std::int64_t> dims;
    std::uint32_t parts = 1;
};

// Where one weight of the checkpoint goes.
struct Part {
    std::uint32_t index = 0; // into entries()
    std::uint32_t part = 0;
};

// Immutable; any thread.
class WeightTable {
  public:
    explicit WeightTable(const std::vector<model::Weight>& weights);
    const std::vector<TableEntry>& entries() const noexcept { return entries_; }
    // Throws Failure(not_found) naming the weight.
    const TableEntry& find(std::string_view name) const;
    bool contains(std::string_view name) const { return by_name_.find(name) != by_name_.end(); }
    bool contains(const model::Weight& weight) const;
    Part part_of(const model::Weight& weight) const;

  private:
    std::vector<TableEntry> entries_;
    std::map<std::string, std::uint32_t, std::less<>> by_name_;
};

} // namespace dsv4::lower
