// Checks that need no reference: a whole Program run in other ways must give the same bits.
#pragma once

#include "core/conformance/execute.hpp"
#include "core/conformance/lines.hpp"
#include "core/model/geometry.hpp"

namespace dsv4::conformance {

// A sequence cut into batches in several ways, with rows that no verify accepts and with draft rows between, and two
// works in one ticket.
void check_cuts(Bench& bench, const model::Geometry& geometry, const lower::WeightTable& weights,
                dsv4_precision precision, std::uint64_t seed, Lines& lines);

// Export after half of a sequence, import into other pages of a fresh record, go on.
void check_transfer(Bench& bench, const model::Geometry& geometry, const lower::WeightTable& weights,
                    dsv4_precision precision, std::uint64_t seed, Lines& lines);

} // namespace dsv4::conformance
