// Values of every kind, and how their mistakes are put.
#include "dsl/value_check.hpp"

#include "dsl/suggest.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace dsv4::dsl {

void ValueCheck::check(Node& node, const Field& field, const std::string& name) {
    switch (field.kind) {
    case ValueKind::boolean:
        if (node.kind != Node::Kind::boolean) wrong_type(node, field, name);
        return;
    case ValueKind::integer:
        if (node.kind != Node::Kind::integer) return wrong_type(node, field, name);
        return check_limits(node, field, name);
    case ValueKind::number:
        if (node.kind != Node::Kind::integer && node.kind != Node::Kind::number) return wrong_type(node, field, name);
        return check_limits(node, field, name);
    case ValueKind::text:
    case ValueKind::path:
        if (node.kind != Node::Kind::text) wrong_type(node, field, name);
        return;
    case ValueKind::choice:
        if (node.kind != Node::Kind::text) return wrong_type(node, field, name);
        return check_choice(node, field, name);
    case ValueKind::text_list:
    case ValueKind::path_list: return check_list(node, field, name, Node::Kind::text);
    case ValueKind::integer_list: return check_list(node, field, name, Node::Kind::integer);
    case ValueKind::size: return check_size(node, field, name);
    case ValueKind::count: return check_count(node, field, name);
    case ValueKind::count_or_auto:
        if (node.kind == Node::Kind::text && node.text == "auto") return;
        return check_count(node, field, name);
    case ValueKind::length: return check_length(node, field, name);
    case ValueKind::duration: return check_duration(node, field, name);
    case ValueKind::topology: return check_expression(node, field, name, parse_topology);
    case ValueKind::version: return check_expression(node, field, name, parse_version);
    case ValueKind::predicate: return check_expression(node, field, name, parse_predicate);
    case ValueKind::code: return check_code(node, field, name);
    default: return; // tables belong to the schema pass
    }
}

Diagnostic& ValueCheck::report(DiagnosticCode code, std::string message, SourceRange range, std::string label) {
    Diagnostic diagnostic;
    diagnostic.code = code;
    diagnostic.message = std::move(message);
    diagnostic.primary = {range, std::move(label)};
    diagnostics_.push_back(std::move(diagnostic));
    return diagnostics_.back();
}

void ValueCheck::suggest(Diagnostic& diagnostic, std::string title, SourceRange range, std::string replacement,
                         Applicability applicability) {
    diagnostic.fixes.push_back({std::move(title), {{range, std::move(replacement)}}, applicability});
}

void ValueCheck::wrong_type(Node& node, const Field& field, std::string_view name) {
    Diagnostic& diagnostic =
        report(codes::wrong_type,
               fmt::format("`{}` wants {}, got {} `{}`", name, describe(field.kind),
                           node.kind == Node::Kind::integer ? "the integer" : fmt::format("a {}", to_string(node.kind)),
                           shown(node)),
               node.range, fmt::format("expected {}", describe(field.kind)));
    if (const std::string literal = literal_of(node, field); !literal.empty())
        suggest(diagnostic, fmt::format("write `{} = {}`", field.key(), literal), node.range, literal,
                node.kind == Node::Kind::text ? Applicability::machine_applicable : Applicability::maybe_incorrect);
    else if (!field.fallback.empty())
        diagnostic.helps.push_back(fmt::format("for example `{} = {}`", field.key(), example(field)));
    node.poisoned = true;
}

// The same value in the wanted type, where there is one.
std::string ValueCheck::literal_of(const Node& node, const Field& field) const {
    if (node.kind == Node::Kind::text) {
        if (field.kind == ValueKind::boolean && (node.text == "true" || node.text == "false")) return node.text;
        const char* end = node.text.data() + node.text.size();
        std::int64_t integer = 0;
        const bool is_integer = std::from_chars(node.text.data(), end, integer).ptr == end && !node.text.empty();
        if ((field.kind == ValueKind::integer || field.kind == ValueKind::number) && is_integer) return node.text;
        return {};
    }
    const bool scalar = node.kind == Node::Kind::integer || node.kind == Node::Kind::number;
    const bool wants_text = field.kind == ValueKind::text || field.kind == ValueKind::version;
    if (scalar && wants_text) return fmt::format("\"{}\"", sources_.text(node.range));
    return {};
}

std::string ValueCheck::example(const Field& field) {
    const bool quoted = takes_text(field.kind) && (field.fallback[0] < '0' || field.fallback[0] > '9');
    return quoted ? fmt::format("\"{}\"", field.fallback) : std::string(field.fallback);
}

// The place of part of a string's text: exact where the text stands in the source letter by letter, else the whole.
SourceRange ValueCheck::part_of(const Node& node, std::size_t begin, std::size_t end) const {
    const std::string_view token = sources_.text(node.range);
    for (const std::size_t quote : {0u, 1u, 3u}) {
        if (token.size() != node.text.size() + 2 * quote || token.substr(quote, node.text.size()) != node.text)
            continue;
        const auto at = [&](std::size_t offset) {
            return node.range.begin + static_cast<std::uint32_t>(quote + offset);
        };
        return {node.range.source, at(begin), at(end)};
    }
    return node.range;
}

void ValueCheck::expression_error(Node& node, const Field& field, std::string_view name, const ExpressionError& error) {
    DiagnosticCode code = codes::does_not_parse;
    std::string message = fmt::format("`{}` does not parse: {}", name, error.message);
    if (error.kind == ExpressionError::Kind::unknown_unit) {
        if (field.kind == ValueKind::size) code = codes::unknown_unit;
        message = fmt::format("{} in `{}`", error.message, name);
    } else if (error.kind == ExpressionError::Kind::out_of_range) {
        code = codes::out_of_range;
        message = fmt::format("`{}`: {}", name, error.message);
    } else if (error.kind == ExpressionError::Kind::not_offered) {
        message = fmt::format("`{}`: {}", name, error.message);
    }
    const std::string label = error.expected.empty() ? std::string() : "expected " + error.expected;
    Diagnostic& diagnostic = report(code, std::move(message), part_of(node, error.begin, error.end), label);
    if (!error.help.empty()) diagnostic.helps.push_back(error.help);
    node.poisoned = true;
}

void ValueCheck::out_of_range(Node& node, const Field& field, std::string_view name) {
    report(codes::out_of_range,
           fmt::format("`{}` = {} is outside the range {}", name,
                       sources_.text(node.range).empty() ? shown(node) : shown(sources_.text(node.range)),
                       describe(field.limits)),
           node.range, fmt::format("legal: {}", describe(field.limits)));
    node.poisoned = true;
}

void ValueCheck::check_limits(Node& node, const Field& field, std::string_view name) {
    const double value = node.kind == Node::Kind::integer ? static_cast<double>(node.integer) : node.number;
    if (!std::isfinite(value) || !field.limits.hold(value)) out_of_range(node, field, name);
}

void ValueCheck::check_choice(Node& node, const Field& field, std::string_view name) {
    std::vector<std::string_view> names;
    std::string all;
    for (const Choice& choice : field.choices) {
        if (choice.name == node.text) return;
        names.push_back(choice.name);
        all += fmt::format("{}{}", all.empty() ? "" : ", ", choice.name);
    }
    Diagnostic& diagnostic =
        report(codes::not_in_enumeration,
               fmt::format("`{}` is not a value of `{}`; allowed: {}", shown(std::string_view(node.text)), name, all),
               node.range, {});
    if (const std::string_view close = nearest(node.text, names); !close.empty()) {
        diagnostic.primary.text = fmt::format("did you mean `{}`?", close);
        suggest(diagnostic, fmt::format("write `{}`", close), node.range, fmt::format("\"{}\"", close),
                Applicability::maybe_incorrect);
    }
    for (const Choice& choice : field.choices)
        diagnostic.helps.push_back(fmt::format("`{}`: {}", choice.name, choice.meaning));
    node.poisoned = true;
}

void ValueCheck::check_list(Node& node, const Field& field, const std::string& name, Node::Kind element) {
    if (node.kind == element) {
        Node list;
        list.kind = Node::Kind::list;
        list.range = node.range;
        list.origin = node.origin;
        list.items.push_back(std::move(node));
        node = std::move(list);
    }
    if (node.kind != Node::Kind::list) return wrong_type(node, field, name);
    const bool integers = element == Node::Kind::integer;
    const Field item_field{
        .path = field.path, .kind = integers ? ValueKind::integer : ValueKind::text, .doc = {}, .limits = field.limits};
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        const std::string item_name = fmt::format("{}[{}]", name, i);
        if (node.items[i].kind != element)
            wrong_type(node.items[i], item_field, item_name);
        else if (integers)
            check_limits(node.items[i], item_field, item_name);
    }
}

void ValueCheck::make_integer(Node& node, std::int64_t value) {
    node.kind = Node::Kind::integer;
    node.integer = value;
}

void ValueCheck::check_size(Node& node, const Field& field, const std::string& name) {
    if (node.kind == Node::Kind::integer) {
        if (node.integer > 0 && node.integer < 1'000'000)
            report(codes::bytes_without_unit, fmt::format("`{}` = {} reads as bytes", name, node.integer), node.range,
                   "no unit")
                .helps.push_back(fmt::format("write `{} = \"{} GiB\"` if that is what you mean, or \"{} B\"",
                                             field.key(), node.integer, node.integer));
    } else if (node.kind == Node::Kind::text) {
        const auto parsed = parse_size(node.text);
        if (const auto* error = std::get_if<ExpressionError>(&parsed))
            return expression_error(node, field, name, *error);
        make_integer(node, std::get<std::int64_t>(parsed));
    } else {
        return wrong_type(node, field, name);
    }
    Field at_least_zero = field;
    if (!field.limits.limited) at_least_zero.limits = {0, 9007199254740992.0, false, true};
    check_limits(node, at_least_zero, name);
}

void ValueCheck::check_count(Node& node, const Field& field, const std::string& name) {
    if (node.kind == Node::Kind::text) {
        const auto parsed = parse_count(node.text);
        if (const auto* error = std::get_if<ExpressionError>(&parsed))
            return expression_error(node, field, name, *error);
        make_integer(node, std::get<std::int64_t>(parsed));
    }
    if (node.kind != Node::Kind::integer) return wrong_type(node, field, name);
    check_limits(node, field, name);
}

void ValueCheck::check_length(Node& node, const Field& field, const std::string& name) {
    if (node.kind != Node::Kind::table) return check_count(node, field, name);
    static constexpr std::string_view keys[] = {"p50", "p95", "max"};
    for (Member& member : node.members) {
        if (std::find(std::begin(keys), std::end(keys), member.key) == std::end(keys)) {
            report(codes::unknown_key,
                   fmt::format("unknown key `{}`", shown(std::string_view(child_path(name, member.key)))),
                   member.key_range, "not a key of a length")
                .helps.push_back("a length has: p50, p95, max");
            member.value.poisoned = true;
            continue;
        }
        const Field count{.path = field.path, .kind = ValueKind::count, .doc = {}, .limits = field.limits};
        check_count(member.value, count, child_path(name, member.key));
    }
}

void ValueCheck::check_duration(Node& node, const Field& field, const std::string& name) {
    if (node.kind == Node::Kind::text) {
        const auto parsed = parse_duration_us(node.text);
        if (const auto* error = std::get_if<ExpressionError>(&parsed))
            return expression_error(node, field, name, *error);
        node.number = static_cast<double>(std::get<std::int64_t>(parsed)) / 1e6;
        node.kind = Node::Kind::number;
    }
    if (node.kind == Node::Kind::integer) {
        node.number = static_cast<double>(node.integer);
        node.kind = Node::Kind::number;
    }
    if (node.kind != Node::Kind::number) return wrong_type(node, field, name);
    Field seconds = field;
    seconds.limits = {0, 1e9, false, true};
    check_limits(node, seconds, name);
}

template <class T>
void ValueCheck::check_expression(Node& node, const Field& field, const std::string& name,
                                  Parsed<T> (*parse)(std::string_view)) {
    if (node.kind != Node::Kind::text) return wrong_type(node, field, name);
    const Parsed<T> parsed = parse(node.text);
    if (const auto* error = std::get_if<ExpressionError>(&parsed)) expression_error(node, field, name, *error);
}

void ValueCheck::check_code(Node& node, const Field& field, const std::string& name) {
    if (node.kind != Node::Kind::text) return wrong_type(node, field, name);
    DiagnosticCode code;
    const bool known = parse_diagnostic_code(node.text, code);
    if (known && code.severity != Severity::error) return;
    report(codes::not_in_enumeration,
           known ? fmt::format("`{}` is an error, and errors cannot be allowed", node.text)
                 : fmt::format("`{}` is not a diagnostic code", shown(std::string_view(node.text))),
           node.range, {})
        .helps.push_back("a warning or a note, such as \"DSV4-W0703\"");
    node.poisoned = true;
}

} // namespace dsv4::dsl
