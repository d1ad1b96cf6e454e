// The mistakes, applied to what the wrapped backend computed.
#pragma once

#include "dsv4/backend.h"
#include "dsv4/sdk/program.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace dsv4::wrong {

enum class Mistake {
    none,
    noise,            // 2 % relative error: what a quantisation left out costs
    gross,            // 30 %: a wrong window, table or index
    ulp,              // the last bit of every element
    nan,              // one element is NaN
    unwritten,        // outputs are left as they were
    outside,          // one byte behind an output is written
    refuses_empty,    // a batch without rows is an error
    shifted_token,    // emitted tokens are one too high
    accepts_more,     // one draft too many is reported as accepted
    ignores_masks,    // late masks allow everything
    commits_drafts,   // draft rows run as ordinary rows
    commits_verifies, // rows that verify should judge run as ordinary rows
    loses_page,       // an import leaves one page out
    accepts_any_blob, // an import looks at no header
};

struct Settings {
    Mistake mistake = Mistake::none;
    std::string op;        // empty: any
    std::string precision; // any, score, serve
    std::string rows;      // as in the manifest
    std::int64_t slot = -1;

    bool applies_to(const program::Program& program) const;
    // Whether the Program output is one to spoil: written by `op`, or any.
    bool spoils_output(const program::Program& program, program::ValueId output) const;
};

// What is known of a batch's row when its outputs are spoiled.
struct RowFacts {
    std::int32_t slot = 0;
    std::int64_t position = 0; // -1: relative
    bool logits = false;
    bool alone = false; // the only row of its slot
};

// Changes the rows of `tensor`, the value `value` of a Program, that the settings pick.
void spoil(const Settings& settings, const program::Value& value, const std::vector<RowFacts>& rows,
           const dsv4_tensor& tensor);

Mistake mistake_named(const std::string& name);

} // namespace dsv4::wrong
