// The expression grammar (Spirit X3), and the exact arithmetic of its quantities. X3 stays in this file.
#include "dsl/expression.hpp"

#include "dsl/document.hpp"

#include <array>
#include <boost/fusion/include/at_c.hpp>
#include <boost/spirit/home/x3.hpp>
#include <fmt/format.h>
#include <limits>
#include <span>

// An expectation names the parser it missed; a parser with an action is called what it is called without.
namespace boost::spirit::x3 {
template <class Subject, class Action> struct get_info<action<Subject, Action>> {
    using result_type = std::string;
    std::string operator()(const action<Subject, Action>& parser) const { return what(parser.subject); }
};
} // namespace boost::spirit::x3

namespace dsv4::dsl {
namespace {

namespace x3 = boost::spirit::x3;
using Iterator = std::string_view::const_iterator;
using Slice = boost::iterator_range<Iterator>;

// ---- results of the grammar that still need arithmetic ----

struct Quantity {
    Decimal number;
    Slice digits, unit;
};

struct Factor {
    std::string axis;
    std::uint64_t value = 0;
    Slice at;
};

struct Shape {
    std::vector<Factor> factors;
    bool ep = false;
};

std::string text_of(const Slice& slice) { return std::string(slice.begin(), slice.end()); }

struct BeginTag {};

std::size_t offset_in(auto& context, Iterator at) {
    return static_cast<std::size_t>(at - x3::get<BeginTag>(context).get());
}

// ---- actions ----

const auto take_digits = [](auto& context) {
    Decimal value;
    bool fraction = false;
    std::size_t used = 0;
    for (const char c : x3::_attr(context)) {
        if (c == '.') {
            fraction = true;
            continue;
        }
        used += used != 0 || c != '0' || fraction ? 1 : 0;
        if (used > 18) { // 10^18 < 2^63, so that later products fit 128 bits
            x3::_pass(context) = false;
            return;
        }
        value.digits = value.digits * 10 + static_cast<std::uint64_t>(c - '0');
        value.scale += fraction ? 1 : 0;
    }
    x3::_val(context) = value;
};

const auto node = [](Expression::Kind kind) {
    return [kind](auto& context) {
        Expression made;
        made.kind = kind;
        made.text = text_of(x3::_attr(context));
        made.begin = offset_in(context, x3::_attr(context).begin());
        made.end = offset_in(context, x3::_attr(context).end());
        if (kind == Expression::Kind::string) made.text = made.text.substr(1, made.text.size() - 2);
        x3::_val(context) = std::move(made);
    };
};

const auto take = [](auto& context) { x3::_val(context) = std::move(x3::_attr(context)); };

const auto fold = [](auto& context) {
    Expression right = std::move(boost::fusion::at_c<1>(x3::_attr(context)));
    Expression made;
    made.kind = Expression::Kind::binary;
    made.text = text_of(boost::fusion::at_c<0>(x3::_attr(context)));
    made.begin = x3::_val(context).begin;
    made.end = right.end;
    made.operands.push_back(std::move(x3::_val(context)));
    made.operands.push_back(std::move(right));
    x3::_val(context) = std::move(made);
};

const auto negate = [](const char* word) {
    return [word](auto& context) {
        const Slice& at = boost::fusion::at_c<0>(x3::_attr(context));
        Expression made;
        made.kind = Expression::Kind::unary;
        made.text = word;
        made.operands.push_back(std::move(boost::fusion::at_c<1>(x3::_attr(context))));
        made.begin = offset_in(context, at.begin());
        made.end = made.operands.front().end;
        x3::_val(context) = std::move(made);
    };
};

const auto take_number = [](auto& context) {
    const Quantity& quantity = x3::_attr(context);
    Expression made;
    made.kind = Expression::Kind::number;
    made.number = quantity.number;
    made.text = text_of(quantity.unit);
    made.begin = offset_in(context, quantity.digits.begin());
    made.end = offset_in(context, quantity.unit.empty() ? quantity.digits.end() : quantity.unit.end());
    x3::_val(context) = std::move(made);
};

const auto take_operands = [](Expression::Kind kind) {
    return [kind](auto& context) {
        const Slice& head = boost::fusion::at_c<0>(x3::_attr(context));
        const Slice& close = boost::fusion::at_c<2>(x3::_attr(context));
        Expression made;
        made.kind = kind;
        if (kind == Expression::Kind::call) made.text = text_of(head);
        if (auto& operands = boost::fusion::at_c<1>(x3::_attr(context))) made.operands = std::move(*operands);
        made.begin = offset_in(context, head.begin());
        made.end = offset_in(context, close.end());
        x3::_val(context) = std::move(made);
    };
};

// ---- the grammar ----
// A rule's name is what an error says was expected.

// The bytes that a parser matched.
const auto slice = [](auto parser, const char* what = "an operator") {
    return x3::rule<struct SliceTag, Slice>{what} = x3::raw[parser];
};

const auto letter = x3::char_("a-zA-Z_");
const auto word_end = !x3::char_("a-zA-Z0-9_");
const auto keyword = [](const char* word) { return x3::lexeme[x3::lit(word) >> word_end]; };

// Words of the predicate language, which are neither names nor units.
const auto reserved = keyword("and") | keyword("or") | keyword("not") | keyword("in") | keyword("matches");

const x3::rule<struct DecimalTag, Decimal> decimal = "a number of at most 18 digits";
const auto decimal_def = x3::lexeme[slice(+x3::digit >> -('.' >> +x3::digit))][take_digits];
BOOST_SPIRIT_DEFINE(decimal)

const auto set_number = [](auto& context) { x3::_val(context).number = x3::_attr(context); };
const auto set_digits = [](auto& context) { x3::_val(context).digits = x3::_attr(context); };
const auto set_unit = [](auto& context) { x3::_val(context).unit = x3::_attr(context); };

const x3::rule<struct QuantityTag, Quantity> quantity = "a number";
const auto unit_letter = x3::alpha | x3::char_("\x80-\xff");
const auto quantity_def = &x3::lexeme[slice(+x3::digit >> -('.' >> +x3::digit))][set_digits] > decimal[set_number] >
                          -x3::lexeme[!reserved >> slice(unit_letter >> *(unit_letter | x3::digit))][set_unit];
BOOST_SPIRIT_DEFINE(quantity)

const x3::rule<struct AxisTag, std::string> axis = "tp, dp, pp, pcp or dcp";
const auto axis_def = x3::string("tp") | x3::string("dp") | x3::string("pp") | x3::string("pcp") | x3::string("dcp");
BOOST_SPIRIT_DEFINE(axis)

const x3::rule<struct RanksTag, std::uint64_t> ranks = "a number of ranks";
const auto ranks_def = x3::uint_parser<std::uint64_t>{};
BOOST_SPIRIT_DEFINE(ranks)

const auto set_axis = [](auto& context) { x3::_val(context).axis = x3::_attr(context); };
const auto set_value = [](auto& context) { x3::_val(context).value = x3::_attr(context); };
const auto set_at = [](auto& context) { x3::_val(context).at = x3::_attr(context); };

const x3::rule<struct FactorTag, Factor> factor = "tp, dp, pp, pcp or dcp with a number, such as tp2";
const auto factor_def = &slice(x3::lexeme[+x3::alnum])[set_at] >> x3::lexeme[axis[set_axis] > ranks[set_value]];
BOOST_SPIRIT_DEFINE(factor)

const x3::rule<struct EpTag> ep = "ep";
const auto ep_def = keyword("ep");
BOOST_SPIRIT_DEFINE(ep)

const auto add_factor = [](auto& context) { x3::_val(context).factors.push_back(x3::_attr(context)); };
const auto set_ep = [](auto& context) { x3::_val(context).ep = true; };

const x3::rule<struct ShapeTag, Shape> shape = "a topology such as `tp2 x dp4 + ep`";
const auto shape_def = x3::eps > factor[add_factor] > *((x3::lit('x') | "\xC3\x97") > factor[add_factor]) >
                       -('+' > ep[set_ep]);
BOOST_SPIRIT_DEFINE(shape)

const x3::rule<struct VersionTag, Version> version = "a version such as 0.25.0";
const auto add_part = [](auto& context) { x3::_val(context).numbers.push_back(x3::_attr(context)); };
const auto set_suffix = [](auto& context) { x3::_val(context).suffix = text_of(x3::_attr(context)); };
const x3::uint_parser<std::int64_t, 10, 1, 9> version_part{};
const auto version_def = x3::lexeme[version_part[add_part] >> *('.' >> version_part[add_part]) >>
                                    -slice(x3::char_("a-zA-Z+-") >> *x3::char_("a-zA-Z0-9.+-"))[set_suffix]];
BOOST_SPIRIT_DEFINE(version)

using Expressions = std::vector<Expression>;
const x3::rule<struct PredicateTag, Expression> predicate = "a condition";
const x3::rule<struct AndTag, Expression> conjunction = "a condition";
const x3::rule<struct NotTag, Expression> negation = "a condition";
const x3::rule<struct CompareTag, Expression> comparison = "a condition";
const x3::rule<struct SumTag, Expression> sum = "a value";
const x3::rule<struct TermTag, Expression> term = "a value";
const x3::rule<struct SignedTag, Expression> signed_value = "a value";
const x3::rule<struct PrimaryTag, Expression> primary = "a value";
const x3::rule<struct NumberTag, Expression> number = "a number";
const x3::rule<struct StringTag, Expression> string = "a string";
const x3::rule<struct PathTag, Expression> path = "a name";
const x3::rule<struct VersionLiteralTag, Expression> version_literal = "a version";
const x3::rule<struct CallTag, Expression> call = "a call";
const x3::rule<struct ListTag, Expression> list = "a list";
const x3::rule<struct CloseTag, Slice> close_bracket = "`,` or `)`";
const x3::rule<struct CloseListTag, Slice> close_list = "`,` or `]`";
const x3::rule<struct CloseGroupTag> close_group = "`)`";

const auto name = !reserved >> x3::lexeme[letter >> *x3::char_("a-zA-Z0-9_")];
const auto comparator = slice(x3::lit("==") | "!=" | "<=" | ">=" | "<" | ">" | keyword("in") | keyword("matches"));

const auto close_bracket_def = slice(x3::lit(')'));
const auto close_list_def = slice(x3::lit(']'));
const auto close_group_def = x3::lit(')');
const auto number_def = quantity[take_number];
const auto string_def = x3::lexeme[slice(('\'' >> *~x3::char_('\'') >> '\'') | ('"' >> *~x3::char_('"') >> '"'))]
                                  [node(Expression::Kind::string)];
const auto path_def = x3::lexeme[slice(name >> *('.' >> name))][node(Expression::Kind::path)];
// Two dots tell a version from a decimal.
const auto version_literal_def =
    x3::lexeme[slice(+x3::digit >> '.' >> +x3::digit >> '.' >> +x3::digit >> *x3::char_("a-zA-Z0-9.+-"))]
              [node(Expression::Kind::version)];
const auto call_def =
    ((x3::lexeme[slice(name)] >> '(' >> -(predicate % ',')) > close_bracket)[take_operands(Expression::Kind::call)];
const auto list_def = ((slice(x3::lit('[')) >> -(predicate % ',')) > close_list)[take_operands(Expression::Kind::list)];
const auto primary_def = version_literal[take] | number[take] | string[take] | call[take] | path[take] | list[take] |
                         ('(' > predicate[take] > close_group);
const auto signed_value_def = (slice(x3::lit('-')) >> primary)[negate("-")] | primary[take];
const auto term_def = signed_value[take] >> *(slice(x3::char_("*/")) > signed_value)[fold];
const auto sum_def = term[take] >> *(slice(x3::char_("+-")) > term)[fold];
const auto comparison_def = sum[take] >> -(comparator > sum)[fold];
const auto negation_def = (slice(keyword("not")) > comparison)[negate("not")] | comparison[take];
const auto conjunction_def = negation[take] >> *(slice(keyword("and")) > negation)[fold];
const auto predicate_def = conjunction[take] >> *(slice(keyword("or")) > conjunction)[fold];
BOOST_SPIRIT_DEFINE(predicate, conjunction, negation, comparison, sum, term, signed_value, primary, number, string,
                    path, version_literal, call, list, close_bracket, close_list, close_group)

// ---- running it ----

ExpressionError fail(ExpressionError::Kind kind, std::size_t begin, std::size_t end, std::string message,
                     std::string help = {}) {
    ExpressionError error;
    error.kind = kind;
    error.begin = begin;
    error.end = end;
    error.message = std::move(message);
    error.help = std::move(help);
    return error;
}

// The word or sign at `at`, whole code points only.
std::size_t token_end(std::string_view text, std::size_t at) {
    const auto wordly = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    std::size_t end = at;
    while (end < text.size() && wordly(text[end])) ++end;
    if (end != at || at >= text.size()) return end;
    char32_t ignored = 0;
    return at + std::max<std::size_t>(1, decode_utf8(text, at, ignored));
}

ExpressionError syntax_error(std::string_view text, std::size_t at, std::string expected) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')) ++at;
    const std::size_t end = token_end(text, at);
    ExpressionError error;
    error.begin = at;
    error.end = end;
    error.found = at == text.size() ? "the end" : fmt::format("`{}`", shown(text.substr(at, end - at)));
    error.message = fmt::format("expected {}, found {}", expected, error.found);
    error.expected = std::move(expected);
    return error;
}

// Brackets outside strings, before the recursive grammar sees them.
std::optional<ExpressionError> check_extent(std::string_view text) {
    if (text.size() > max_expression_bytes)
        return fail(ExpressionError::Kind::out_of_range, 0, text.size(),
                    fmt::format("the text is {} bytes long, the limit is {}", text.size(), max_expression_bytes));
    std::size_t depth = 0;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '(' || c == '[') {
            if (++depth > max_expression_depth)
                return fail(ExpressionError::Kind::out_of_range, i, i + 1,
                            fmt::format("brackets are nested deeper than {}", max_expression_depth));
        } else if ((c == ')' || c == ']') && depth != 0) {
            --depth;
        }
    }
    return std::nullopt;
}

template <class T, class Rule>
Parsed<T> run(std::string_view text, const Rule& rule, const char* expected, const char* more) {
    if (auto error = check_extent(text)) return *error;
    T value{};
    Iterator at = text.begin();
    const auto offset = [&](Iterator where) { return static_cast<std::size_t>(where - text.begin()); };
    const Iterator begin = text.begin();
    try {
        if (!x3::phrase_parse(at, text.end(), x3::with<BeginTag>(std::cref(begin))[rule], x3::space, value))
            return syntax_error(text, offset(at), expected);
    } catch (const x3::expectation_failure<Iterator>& failure) {
        return syntax_error(text, offset(failure.where()), failure.which());
    }
    if (at != text.end()) return syntax_error(text, offset(at), more);
    return value;
}

// ---- quantities ----

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

constexpr std::uint64_t ki = 1024, mi = ki * ki, gi = mi * ki, ti = gi * ki;
constexpr std::array size_units{
    Unit{"B", 1},    Unit{"kB", 1'000}, Unit{"KB", 1'000}, Unit{"MB", 1'000'000}, Unit{"GB", 1'000'000'000},
    Unit{"KiB", ki}, Unit{"MiB", mi},   Unit{"GiB", gi},   Unit{"TiB", ti},       Unit{"TB", 1'000'000'000'000},
    Unit{"Ki", ki},  Unit{"Mi", mi},    Unit{"Gi", gi},    Unit{"Ti", ti}};
constexpr std::array count_units{Unit{"k", 1'000}, Unit{"M", 1'000'000}, Unit{"Ki", ki}, Unit{"Mi", mi}};
constexpr std::array duration_units{Unit{"us", 1}, Unit{"ms", 1'000}, Unit{"s", 1'000'000}, Unit{"min", 60'000'000},
                                    Unit{"h", 3'600'000'000}};

struct Dimension {
    std::span<const Unit> units;
    const char* example; // "a size such as 20 GiB"
    const char* whole;   // "bytes"
    const char* legal;   // the units in words
    bool unit_needed;
};

Parsed<std::int64_t> parse_quantity(std::string_view text, const Dimension& dimension) {
    const auto parsed =
        run<Quantity>(text, quantity, dimension.example, dimension.units.empty() ? "the end" : "a unit or the end");
    if (const auto* error = std::get_if<ExpressionError>(&parsed)) {
        ExpressionError refined = *error;
        if (refined.expected == "a number") {
            refined.expected = dimension.example;
            refined.message = fmt::format("expected {}, found {}", refined.expected, refined.found);
        }
        return refined;
    }
    const Quantity& value = std::get<Quantity>(parsed);
    const auto offset = [&](Iterator at) { return static_cast<std::size_t>(at - text.begin()); };
    const std::size_t begin = offset(value.digits.begin()), digits_end = offset(value.digits.end());
    std::uint64_t scale = 1;
    std::size_t end = digits_end;
    if (!value.unit.empty()) {
        const std::string unit = text_of(value.unit);
        const Unit* found = nullptr;
        for (const Unit& candidate : dimension.units)
            if (candidate.name == unit) found = &candidate;
        end = offset(value.unit.end());
        if (found == nullptr)
            return fail(ExpressionError::Kind::unknown_unit, offset(value.unit.begin()), end,
                        fmt::format("unknown unit `{}`", shown(std::string_view(unit))),
                        fmt::format("write one of {}", dimension.legal));
        scale = found->factor;
    } else if (dimension.unit_needed) {
        return syntax_error(text, digits_end, fmt::format("a unit ({})", dimension.legal));
    }
    // digits < 10^18 and scale < 2^42, so the product fits 128 bits.
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(value.number.digits) * scale;
    Wide divisor = 1;
    for (std::uint32_t i = 0; i < value.number.scale; ++i) divisor *= 10;
    if (product % divisor != 0)
        return fail(
            ExpressionError::Kind::out_of_range, begin, end,
            fmt::format("`{}` is not a whole number of {}", shown(text.substr(begin, end - begin)), dimension.whole),
            "use a smaller unit");
    const Wide result = product / divisor;
    if (result > static_cast<Wide>(std::numeric_limits<std::int64_t>::max()))
        return fail(
            ExpressionError::Kind::out_of_range, begin, end,
            fmt::format("`{}` is more than 2^63 - 1 {}", shown(text.substr(begin, end - begin)), dimension.whole));
    return static_cast<std::int64_t>(result);
}

} // namespace

Parsed<std::int64_t> parse_size(std::string_view text) {
    return parse_quantity(text, {size_units, "a size such as 20 GiB", "bytes",
                                 "B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)", false});
}

Parsed<std::int64_t> parse_count(std::string_view text) {
    return parse_quantity(text, {count_units, "a count such as 8192 or 32Ki", "tokens",
                                 "k, M (powers of 1000), Ki, Mi (powers of 1024)", false});
}

Parsed<std::int64_t> parse_duration_us(std::string_view text) {
    return parse_quantity(text, {duration_units, "a duration such as 30 s", "microseconds", "us, ms, s, min, h", true});
}

Parsed<TopologyShape> parse_topology(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first != std::string_view::npos && text.substr(first).starts_with("pd"))
        return fail(ExpressionError::Kind::not_offered, first, token_end(text, first),
                    "`pd(...)`, prefill and decode on separate devices, is not offered in `shape` yet",
                    "write one pool, such as `tp1 x dp4 + ep`");
    auto parsed = run<Shape>(text, shape, "a topology such as `tp2 x dp4 + ep`", "`x`, `+ ep` or the end");
    if (const auto* error = std::get_if<ExpressionError>(&parsed)) return *error;
    TopologyShape out;
    const Shape& read = std::get<Shape>(parsed);
    out.ep = read.ep;
    for (const Factor& item : read.factors) {
        const std::size_t begin = static_cast<std::size_t>(item.at.begin() - text.begin());
        const std::size_t end = begin + item.axis.size() + std::to_string(item.value).size();
        std::optional<std::int64_t>& slot = item.axis == "tp"    ? out.tp
                                            : item.axis == "dp"  ? out.dp
                                            : item.axis == "pp"  ? out.pp
                                            : item.axis == "pcp" ? out.pcp
                                                                 : out.dcp;
        if (slot)
            return fail(ExpressionError::Kind::syntax, begin, end, fmt::format("`{}` stands twice", item.axis),
                        "write each axis once");
        if (item.value < 1 || item.value > 1048576)
            return fail(ExpressionError::Kind::out_of_range, begin, end,
                        fmt::format("`{}` = {} is outside 1 to 1048576", item.axis, item.value));
        slot = static_cast<std::int64_t>(item.value);
    }
    return out;
}

Parsed<Version> parse_version(std::string_view text) {
    auto parsed = run<Version>(text, version, "a version such as 0.25.0", "the end");
    if (auto* read = std::get_if<Version>(&parsed); read != nullptr && read->numbers.size() > 4)
        return fail(ExpressionError::Kind::out_of_range, 0, text.size(),
                    fmt::format("`{}` has {} numbers, a version has at most 4", shown(text), read->numbers.size()));
    return parsed;
}

Parsed<Expression> parse_predicate(std::string_view text) {
    return run<Expression>(text, predicate, "a condition", "an operator or the end");
}

} // namespace dsv4::dsl
