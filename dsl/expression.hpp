// The expression grammar's entry points. One grammar reads every string that carries meaning in a pipeline.
#pragma once

#include "dsl/expression_ast.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace dsv4::dsl {

struct ExpressionError {
    enum class Kind {
        syntax,       // something else was expected
        unknown_unit, // a number with a suffix that is no unit of its kind
        out_of_range, // well formed, but not representable or not a whole number
        not_offered,  // understood, and not available in this version
    };
    Kind kind = Kind::syntax;
    std::size_t begin = 0; // bytes of the offending part; begin == end at the end of the text
    std::size_t end = 0;
    std::string expected; // for syntax: "a number"
    std::string found;    // for syntax: "`x`" or "the end"
    std::string message;  // one clause that stands alone: "expected a number, found `x`"
    std::string help;     // what to write instead; may be empty
};

template <class T> using Parsed = std::variant<T, ExpressionError>;

// Texts longer than this, and brackets nested deeper, are refused.
inline constexpr std::size_t max_expression_bytes = 4096;
inline constexpr std::size_t max_expression_depth = 32;

// "20 GiB", "1.5 GiB", "64kB", "384Ki" in bytes. Units: B, kB (or KB), MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB
// and their short forms Ki, Mi, Gi, Ti (powers of 1024). The result is a whole number below 2^63 or an error, never
// rounded.
Parsed<std::int64_t> parse_size(std::string_view text);
// "384Ki", "32k", "8192": a count with the suffixes k, M (powers of 1000), Ki, Mi (powers of 1024).
Parsed<std::int64_t> parse_count(std::string_view text);
// "250 ms", "1.5 s", "5 min" in microseconds. Units: us, ms, s, min, h.
Parsed<std::int64_t> parse_duration_us(std::string_view text);
// "tp2 x dp4 + ep", "tp8", "tp1 x pp2". Axes: tp, dp, pp, pcp, dcp, each at most once and from 1 to 1048576.
Parsed<TopologyShape> parse_topology(std::string_view text);
Parsed<Version> parse_version(std::string_view text);
// A predicate: or, and, not, comparisons (== != < <= > >=, in, matches), + - * /, calls, paths, numbers with units,
// strings, lists.
Parsed<Expression> parse_predicate(std::string_view text);

} // namespace dsv4::dsl
