// Stacks routed experts and translates storage formats.
#include "core/lower/weight_table.hpp"

namespace dsv4::lower {
namespace {

dsv4_format format_of(model::Format format) {
    switch (format) {
    case model::Format::bf16: return program::formats::bf16;
    case model::Format::f32: return program::formats::f32;
    case model::Format::i32: return program::formats::i32;
    case model::Format::i64: return program::formats::i64;
    case model::Format::fp8_block128: return program::formats::fp8_block128;
    case model::Format::fp4_block32: return program::formats::fp4_block32;
    }
    throw Failure(Code::internal, "a weight has an unknown storage format");
}

// "layers.3.ffn.experts.17.w1" -> "layers.3.ffn.experts.w1"
std::string entry_name(const model::Weight& weight) {
    if (weight.expert < 0) return weight.name;
    std::string number = std::to_string(weight.expert);
    number.insert(0, 1, '.').push_back('.');
    const auto at = weight.name.rfind(number);
    if (at == std::string::npos) throw Failure(Code::internal, "expert weight '" + weight.name + "' has no number");
    return weight.name.substr(0, at) + weight.name.substr(at + number.size() - 1);
}

} // namespace

WeightTable::WeightTable(const std::vector<model::Weight>& weights) {
    for (const model::Weight& w : weights) {
        const std::string name = entry_name(w);
        auto [it, fresh] = by_name_.emplace(name, std::uint32_t(entries_.size()));
        if (fresh) {
            entries_.push_back({name, format_of(w.format), w.dims, 1});
            if (w.expert >= 0) entries_.back().dims.insert(entries_.back().dims.begin(), 1);
            continue;
        }
        TableEntry& entry = entries_[it->second];
        if (w.expert < 0 || !program::same_format(entry.format, format_of(w.format)) ||
            !std::equal(w.dims.begin(), w.dims.end(), entry.dims.begin() + 1, entry.dims.end()))
            throw Failure(Code::corrupt, "weight '" + w.name + "' does not fit the other parts of '" + name + "'");
        entry.parts = std::max(entry.parts, std::uint32_t(w.expert) + 1);
        entry.dims[0] = entry.parts;
    }
}

const TableEntry& WeightTable::find(std::string_view name) const {
    auto it = by_name_.find(name);
    if (it == by_name_.end())
        throw Failure(Code::not_found, "the checkpoint has no weight '" + std::string(name) + "'");
    return entries_[it->second];
}

bool WeightTable::contains(const model::Weight& weight) const { return contains(entry_name(weight)); }

Part WeightTable::part_of(const model::Weight& weight) const {
    auto it = by_name_.find(entry_name(weight));
    if (it == by_name_.end()) throw Failure(Code::not_found, "weight '" + weight.name + "' is not in the table");
    return {it->second, weight.expert < 0 ? 0u : std::uint32_t(weight.expert)};
}

} // namespace dsv4::lower
