// The expression grammar: tables of texts and what they mean, and where errors point.
#include "dsl/expression.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4::dsl;

namespace {

std::string error_at(const auto& parsed) {
    const auto* error = std::get_if<ExpressionError>(&parsed);
    if (error == nullptr) return "no error";
    return std::to_string(error->begin) + "-" + std::to_string(error->end) + " " + error->message;
}

// A predicate in prefix form.
std::string prefix(const Expression& e) {
    std::string out;
    switch (e.kind) {
    case Expression::Kind::number:
        out = std::to_string(e.number.digits);
        if (e.number.scale != 0) out += "e-" + std::to_string(e.number.scale);
        return out + e.text;
    case Expression::Kind::string: return "'" + e.text + "'";
    case Expression::Kind::path: return e.text;
    case Expression::Kind::version: return "v" + e.text;
    case Expression::Kind::list: out = "(list"; break;
    case Expression::Kind::call: out = "(call " + e.text; break;
    default: out = "(" + e.text;
    }
    for (const Expression& operand : e.operands) out += " " + prefix(operand);
    return out + ")";
}

} // namespace

TEST_CASE("sizes are exact whole bytes") {
    struct Row {
        const char* text;
        std::int64_t bytes;
    };
    const Row rows[] = {{"0", 0},
                        {"1", 1},
                        {"20 GiB", 21474836480},
                        {"20GiB", 21474836480},
                        {"  20   GiB  ", 21474836480},
                        {"1.5 GiB", 1610612736},
                        {"0.5KiB", 512},
                        {"384Ki", 393216},
                        {"64KB", 64000},
                        {"64kB", 64000},
                        {"64KiB", 65536},
                        {"1 MB", 1000000},
                        {"1 MiB", 1048576},
                        {"2Mi", 2097152},
                        {"1 GB", 1000000000},
                        {"3Gi", 3221225472},
                        {"1 TB", 1000000000000},
                        {"1 TiB", 1099511627776},
                        {"1Ti", 1099511627776},
                        {"7 B", 7},
                        {"000000000000000000000000001 kB", 1000},
                        {"0.001 kB", 1},
                        {"8388607.9999990000000 TiB", 0},
                        {"8388607 TiB", 9223370937343148032},
                        {"9223372036854775.807 kB", 0}};
    for (const Row& row : rows) {
        INFO(row.text);
        const auto parsed = parse_size(row.text);
        if (row.bytes == 0 && std::string(row.text) != "0") {
            CHECK(std::holds_alternative<ExpressionError>(parsed)); // more than 18 digits
            continue;
        }
        REQUIRE(std::holds_alternative<std::int64_t>(parsed));
        CHECK(std::get<std::int64_t>(parsed) == row.bytes);
    }
}

TEST_CASE("size errors point at their part") {
    CHECK(error_at(parse_size("")) == "0-0 expected a size such as 20 GiB, found the end");
    CHECK(error_at(parse_size("   ")) == "3-3 expected a size such as 20 GiB, found the end");
    CHECK(error_at(parse_size("GiB")) == "0-3 expected a size such as 20 GiB, found `GiB`");
    CHECK(error_at(parse_size("-1 GiB")) == "0-1 expected a size such as 20 GiB, found `-`");
    CHECK(error_at(parse_size("20 gb")) == "3-5 unknown unit `gb`");
    CHECK(error_at(parse_size("20 GiB x")) == "7-8 expected a unit or the end, found `x`");
    CHECK(error_at(parse_size("20 GiBs")) == "3-7 unknown unit `GiBs`");
    CHECK(error_at(parse_size("1.")) == "1-2 expected a unit or the end, found `.`");
    CHECK(error_at(parse_size("1e3")) == "1-3 unknown unit `e3`");
    CHECK(error_at(parse_size("20 \xC3\xA9")) == "3-5 unknown unit `\xC3\xA9`");
    CHECK(error_at(parse_size("0.3 B")) == "0-5 `0.3 B` is not a whole number of bytes");
    CHECK(error_at(parse_size("8388608 TiB")) == "0-11 `8388608 TiB` is more than 2^63 - 1 bytes");
    CHECK(error_at(parse_size("9999999999999999999")) ==
          "0-19 expected a number of at most 18 digits, found `9999999999999999999`");
}

TEST_CASE("counts and durations") {
    CHECK(std::get<std::int64_t>(parse_count("384Ki")) == 393216);
    CHECK(std::get<std::int64_t>(parse_count("32 k")) == 32000);
    CHECK(std::get<std::int64_t>(parse_count("1Mi")) == 1048576);
    CHECK(std::get<std::int64_t>(parse_count("1.5M")) == 1500000);
    CHECK(error_at(parse_count("1 GiB")) == "2-5 unknown unit `GiB`");
    CHECK(error_at(parse_count("1.5")) == "0-3 `1.5` is not a whole number of tokens");
    CHECK(std::get<std::int64_t>(parse_duration_us("250 ms")) == 250000);
    CHECK(std::get<std::int64_t>(parse_duration_us("1.5s")) == 1500000);
    CHECK(std::get<std::int64_t>(parse_duration_us("5 min")) == 300000000);
    CHECK(std::get<std::int64_t>(parse_duration_us("2h")) == 7200000000);
    CHECK(std::get<std::int64_t>(parse_duration_us("3us")) == 3);
    CHECK(error_at(parse_duration_us("30")) == "2-2 expected a unit (us, ms, s, min, h), found the end");
    CHECK(error_at(parse_duration_us("0.5us")) == "0-5 `0.5us` is not a whole number of microseconds");
}

TEST_CASE("topologies") {
    const auto parse = [](const char* text) {
        INFO(text);
        const auto parsed = parse_topology(text);
        REQUIRE(std::holds_alternative<TopologyShape>(parsed));
        return std::get<TopologyShape>(parsed);
    };
    const TopologyShape a = parse("tp2 x dp4 + ep");
    CHECK(a.tp == 2);
    CHECK(a.dp == 4);
    CHECK(!a.pp);
    CHECK(a.ep);
    const TopologyShape b = parse("tp8");
    CHECK(b.tp == 8);
    CHECK(!b.dp);
    CHECK(!b.ep);
    const TopologyShape c = parse("tp1xdp4+ep");
    CHECK(c.tp == 1);
    CHECK(c.dp == 4);
    CHECK(c.ep);
    const TopologyShape d = parse(" dp2 \xC3\x97 pp3 x pcp4 x dcp5 ");
    CHECK(!d.tp);
    CHECK(d.dp == 2);
    CHECK(d.pp == 3);
    CHECK(d.pcp == 4);
    CHECK(d.dcp == 5);

    CHECK(error_at(parse_topology("")) ==
          "0-0 expected tp, dp, pp, pcp or dcp with a number, such as tp2, found the end");
    CHECK(error_at(parse_topology("tp")) == "2-2 expected a number of ranks, found the end");
    CHECK(error_at(parse_topology("tpx")) == "2-3 expected a number of ranks, found `x`");
    CHECK(error_at(parse_topology("tp 2")) == "3-4 expected a number of ranks, found `2`");
    CHECK(error_at(parse_topology("tp2 x")) ==
          "5-5 expected tp, dp, pp, pcp or dcp with a number, such as tp2, found the end");
    CHECK(error_at(parse_topology("tp2 x zp4")) ==
          "6-9 expected tp, dp, pp, pcp or dcp with a number, such as tp2, found `zp4`");
    CHECK(error_at(parse_topology("tp2 dp4")) == "4-7 expected `x`, `+ ep` or the end, found `dp4`");
    CHECK(error_at(parse_topology("tp2 + epp")) == "6-9 expected ep, found `epp`");
    CHECK(error_at(parse_topology("tp2 + ep x dp2")) == "9-10 expected `x`, `+ ep` or the end, found `x`");
    CHECK(error_at(parse_topology("tp2 x dp4 x tp3")) == "12-15 `tp` stands twice");
    CHECK(error_at(parse_topology("dp4 x tp0")) == "6-9 `tp` = 0 is outside 1 to 1048576");
    CHECK(error_at(parse_topology("tp1048577")) == "0-9 `tp` = 1048577 is outside 1 to 1048576");
    CHECK(error_at(parse_topology("tp99999999999999999999")) ==
          "2-22 expected a number of ranks, found `99999999999999999999`");
    const auto pd = parse_topology("pd(tp1, tp1)");
    REQUIRE(std::holds_alternative<ExpressionError>(pd));
    CHECK(std::get<ExpressionError>(pd).kind == ExpressionError::Kind::not_offered);
}

TEST_CASE("versions") {
    const auto version = std::get<Version>(parse_version("0.26.1rc0"));
    CHECK(version.numbers == std::vector<std::int64_t>{0, 26, 1});
    CHECK(version.suffix == "rc0");
    CHECK(std::get<Version>(parse_version("7")).numbers == std::vector<std::int64_t>{7});
    CHECK(std::get<Version>(parse_version("1.2.3.4")).numbers == std::vector<std::int64_t>{1, 2, 3, 4});
    CHECK(std::get<Version>(parse_version("1.2-dev.3+g12")).suffix == "-dev.3+g12");
    CHECK(error_at(parse_version("latest")) == "0-6 expected a version such as 0.25.0, found `latest`");
    CHECK(error_at(parse_version("1.2 3")) == "4-5 expected the end, found `3`");
    CHECK(error_at(parse_version("1.2.3.4.5")) == "0-9 `1.2.3.4.5` has 5 numbers, a version has at most 4");
}

TEST_CASE("predicates bind as usual") {
    const auto parse = [](const char* text) {
        INFO(text);
        const auto parsed = parse_predicate(text);
        INFO(error_at(parsed));
        REQUIRE(std::holds_alternative<Expression>(parsed));
        return prefix(std::get<Expression>(parsed));
    };
    CHECK(parse("sessions_that_fit >= workload.concurrency") == "(>= sessions_that_fit workload.concurrency)");
    CHECK(parse("a or b and not c == 1") == "(or a (and b (not (== c 1))))");
    CHECK(parse("(a or b) and c") == "(and (or a b) c)");
    CHECK(parse("1 + 2 * 3 - 4 / 5 < 6") == "(< (- (+ 1 (* 2 3)) (/ 4 5)) 6)");
    CHECK(parse("-1.5 < x") == "(< (- 15e-1) x)");
    CHECK(parse("kv.cache_bytes > 20 GiB or 3 ms < t") == "(or (> kv.cache_bytes 20GiB) (< 3ms t))");
    CHECK(parse("platform in ['b200', \"b300\"]") == "(in platform (list 'b200' 'b300'))");
    CHECK(parse("checkpoint.id matches 'deepseek-ai/*'") == "(matches checkpoint.id 'deepseek-ai/*')");
    CHECK(parse("missing(kv.dtype) and count() == 0") == "(and (call missing kv.dtype) (== (call count) 0))");
    CHECK(parse("runtime.version >= 0.25.0") == "(>= runtime.version v0.25.0)");
    CHECK(parse("android and order") == "(and android order)");
    CHECK(parse("max(a, min(b, c)) == []") == "(== (call max a (call min b c)) (list))");
}

TEST_CASE("predicate positions and errors") {
    const auto parsed = parse_predicate("ab  >= c.d(1");
    CHECK(error_at(parsed) == "10-11 expected an operator or the end, found `(`");
    const auto good = std::get<Expression>(parse_predicate("ab  >= c.d"));
    CHECK(good.begin == 0);
    CHECK(good.end == 10);
    CHECK(good.operands.at(1).begin == 7);
    CHECK(error_at(parse_predicate("")) == "0-0 expected a condition, found the end");
    CHECK(error_at(parse_predicate("a >=")) == "4-4 expected a value, found the end");
    CHECK(error_at(parse_predicate("a and")) == "5-5 expected a condition, found the end");
    CHECK(error_at(parse_predicate("(a")) == "2-2 expected `)`, found the end");
    CHECK(error_at(parse_predicate("f(a b)")) == "4-5 expected `,` or `)`, found `b`");
    CHECK(error_at(parse_predicate("[a b]")) == "3-4 expected `,` or `]`, found `b`");
    CHECK(error_at(parse_predicate("a b")) == "2-3 expected an operator or the end, found `b`");
    CHECK(error_at(parse_predicate("a < b < c")) == "6-7 expected an operator or the end, found `<`");
    CHECK(error_at(parse_predicate("'open")) == "0-1 expected a condition, found `'`");
}

TEST_CASE("long and deep expressions are refused") {
    CHECK(error_at(parse_predicate(std::string(max_expression_bytes + 1, 'a'))) ==
          "0-4097 the text is 4097 bytes long, the limit is 4096");
    const auto nested = [](std::size_t depth) { return std::string(depth, '(') + "a" + std::string(depth, ')'); };
    CHECK(std::holds_alternative<Expression>(parse_predicate(nested(max_expression_depth))));
    CHECK(error_at(parse_predicate(nested(max_expression_depth + 1))) == "32-33 brackets are nested deeper than 32");
    CHECK(std::holds_alternative<Expression>(parse_predicate("'" + std::string(100, '(') + "' == a")));
}
