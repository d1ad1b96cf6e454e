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

// One output of a case, over all its compared steps.
struct OutputComparison {
    Distance distance;
    std::string failure; // empty, or what is off and by how much
    // For each kind of row that kernels get wrong ("rows at position 127 of 128"): the distances of those rows, in
    // units of what the 90th percentile may be. A few rows of many move no quantile, so they are judged on their own.
    std::map<std::string, std::vector<double>> edges;
};

// By output name; "tokens" for emitted tokens. Rows of all compared steps are judged together, so that one row of a
// short step is no quantile.
std::map<std::string, OutputComparison> compare(const Case& check, const CaseOutput& got, const CaseOutput& wanted);

// Whether the rows of an edge, over all cases of a line, are off: empty, or a sentence.
std::string judge_edge(const std::string& edge, std::vector<double> distances);

} // namespace dsv4::conformance
