// What the expression grammar yields: quantities, topologies, versions, and the predicates of [[require]] and of rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsv4::dsl {

// An exact decimal: digits / 10^scale.
struct Decimal {
    std::uint64_t digits = 0;
    std::uint32_t scale = 0;
};

// "tp2 x dp4 + ep"; a factor that is not written is absent.
struct TopologyShape {
    std::optional<std::int64_t> tp, dp, pp, pcp, dcp;
    bool ep = false;
};

// "0.25.0", "0.26.1rc0"
struct Version {
    std::vector<std::int64_t> numbers; // one to four
    std::string suffix;                // what follows them: "rc0", "-dev.3"; may be empty
};

// A node of a predicate. Offsets are bytes in the parsed text.
struct Expression {
    enum class Kind {
        number,  // `number`, scaled by `text`, which is its unit or empty
        string,  // `text`
        path,    // `text`, such as "workload.concurrency"
        version, // `text`
        list,    // operands
        call,    // `text` names the function; operands
        unary,   // `text` is "not" or "-"; one operand
        binary,  // `text` is the operator; two operands
    };
    Kind kind = Kind::number;
    std::string text;
    Decimal number;
    std::vector<Expression> operands;
    std::size_t begin = 0;
    std::size_t end = 0;
};

} // namespace dsv4::dsl
