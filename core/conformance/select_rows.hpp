// Parts of a case whose rows do not look at each other.
#pragma once

#include "core/conformance/case.hpp"
#include "core/conformance/execute.hpp"

#include <cstddef>
#include <vector>

namespace dsv4::conformance {

// The case (one step) with only those rows and their inputs. `rows` ascend.
Case select_rows(const Case& whole, const std::vector<std::size_t>& rows);

// The outputs of the rows `kept` (ascending) out of `output`, which is what the rows `ran` of `whole` gave.
CaseOutput select_outputs(const Case& whole, const CaseOutput& output, const std::vector<std::size_t>& ran,
                          const std::vector<std::size_t>& kept);

// Rows for a reference that is too slow for all: every row of small batches, both ends and a spread of large ones.
std::vector<std::size_t> sample_rows(const std::vector<std::uint32_t>& row_counts);

} // namespace dsv4::conformance
