// The catalogue of checks, by area. Each function gives the cases of one precision; weights are those of the geometry.
#pragma once

#include "core/conformance/case.hpp"
#include "core/model/geometry.hpp"

namespace dsv4::conformance {

struct Subject {
    const model::Geometry& geometry;
    const lower::WeightTable& weights;
    dsv4_precision precision;
    std::uint64_t seed;
    std::vector<std::uint32_t> row_counts;
};

// Ops whose rows do not look at each other.
std::vector<Case> row_cases(const Subject& subject);
// Window, compressor, indexer and attention over paged state.
std::vector<Case> attention_cases(const Subject& subject);
// Mask, sample, markov_step, verify.
std::vector<Case> sampling_cases(const Subject& subject);
// Whole layers, and whole Programs cut in different ways.
std::vector<Case> layer_cases(const Subject& subject);

// Weights that no geometry has: those of draft heads.
std::vector<lower::TableEntry> draft_entries(const model::Geometry& geometry);

} // namespace dsv4::conformance
