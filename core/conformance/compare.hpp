// The distance of two outputs of a case, and whether it is within the case's tolerance.
#pragma once

#include "core/conformance/case.hpp"
#include "core/conformance/execute.hpp"

#include <string>

namespace dsv4::conformance {

struct Distance {
    double median = 0, p90 = 0, largest = 0; // floating outputs, as in Tolerance; NaN on either side: infinity
    double unequal = 0;                      // integer outputs: 1 - share of equal elements
};

struct Comparison {
    Distance worst;      // over all outputs of the case
    std::string failure; // empty, or which output is off and by how much
};

// Judges each output over the rows of all compared steps together, so that one row of a short step is no quantile.
Comparison compare(const Case& check, const CaseOutput& got, const CaseOutput& wanted);

// Bit equality of all compared outputs and tokens; empty, or the first difference.
std::string first_difference(const CaseOutput& a, const CaseOutput& b);

} // namespace dsv4::conformance
