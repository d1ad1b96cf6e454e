// One check: Programs, the batches to run through them, and how close a backend must come to the reference.
#pragma once

#include "core/conformance/random.hpp"
#include "dsv4/backend.h"
#include "dsv4/sdk/program.hpp"

#include <map>
#include <string>
#include <vector>

namespace dsv4::conformance {

// How two outputs are compared; all comparisons reject NaN on either side.
struct Tolerance {
    // Floating values: rows (the leading dimension) are compared by rms(difference) / rms(reference).
    double median = 0;  // of the rows
    double p90 = 0;     // 90th percentile of the rows
    double largest = 0; // of any single element, relative to the row's largest magnitude; 0: not bounded
    // Integers: the share of elements that must be equal. `as_sets` compares each row without its order.
    double equal = 1;
    bool as_sets = false;
};

struct Row {
    int slot = 0;
    std::int64_t position = 0;
    std::int32_t token = 0;
    std::uint32_t flags = 0;
    std::int32_t input = DSV4_INPUT_GIVEN;
    bool idle = false; // of a finished record: it emits nothing, and its outputs are unspecified
};

// What begins a record.
struct Reset {
    std::int64_t committed = 0;
    dsv4_sampling sampling{};
    std::vector<dsv4_bias> bias;
    std::vector<std::int32_t> stop_ids, prompt_ids, generated_ids;
};

struct Step {
    std::size_t program = 0; // index into Case::programs
    std::vector<Row> rows;
    std::map<int, Reset> resets;
    std::map<std::string, Bytes> inputs; // by value name
    std::vector<std::uint32_t> masks;    // words for supply(); empty: none
    bool compared = true;                // false: only fills state
    bool joined = false;                 // another work of the ticket of the step before
};

struct Case {
    std::string op;                           // the row of the report: "attend/1"
    std::string what;                         // "17 rows, csa, ragged"
    std::map<std::string, std::string> lines; // outputs that are judged on another row of the report: output -> op
    // Not empty: one step whose rows do not look at each other. It runs once for each count with its first rows; the
    // reference runs a sample of the rows, once.
    std::vector<std::uint32_t> row_counts;
    std::vector<program::Program> programs;
    std::vector<Step> steps;
    std::map<std::string, Tolerance> tolerances; // by output name; "" for all others; "tokens" for emitted tokens
    std::vector<std::string> slot_names;         // where each slot is an edge of its own: what it tests
    std::int64_t positions = 1;                  // pages are given for positions below this
    int slots = 1;
};

// Positions just before, at and after what kernels get wrong: windows of 4 and 128, sliding windows, pages.
std::vector<std::int64_t> edge_positions(std::int64_t limit);

// N rows over several slots of uneven length, each starting at another edge below `limit`. Tokens below `vocab`.
std::vector<Row> ragged_rows(std::uint32_t n, std::int64_t limit, std::int64_t vocab, Random& random,
                             std::map<int, Reset>& resets);

} // namespace dsv4::conformance
