// Checks a document against the schema and makes it regular.
#include "dsl/expression.hpp"
#include "dsl/schema.hpp"
#include "dsl/suggest.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <set>

namespace dsv4::dsl {
namespace {

std::string join(std::string_view path, std::string_view key) {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

class Checker {
  public:
    Checker(const Schema& schema, const SourceMap& sources, Diagnostics& diagnostics)
        : schema_(schema), sources_(sources), diagnostics_(diagnostics) {}

    void run(Node& root) {
        if (!check_version(root)) return;
        check_table(root, {}, {});
        check_required(root);
    }

  private:
    // ---- reporting ----

    Diagnostic& report(DiagnosticCode code, std::string message, SourceRange range, std::string label) {
        Diagnostic diagnostic;
        diagnostic.code = code;
        diagnostic.message = std::move(message);
        diagnostic.primary = {range, std::move(label)};
        diagnostics_.push_back(std::move(diagnostic));
        return diagnostics_.back();
    }

    static void suggest(Diagnostic& diagnostic, std::string title, SourceRange range, std::string replacement,
                        Applicability applicability) {
        diagnostic.fixes.push_back({std::move(title), {{range, std::move(replacement)}}, applicability});
    }

    void wrong_type(Node& node, const Field& field, std::string_view name) {
        Diagnostic& diagnostic = report(
            codes::wrong_type,
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
    std::string literal_of(const Node& node, const Field& field) const {
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

    static std::string example(const Field& field) {
        const bool quoted = takes_text(field.kind) && (field.fallback[0] < '0' || field.fallback[0] > '9');
        return quoted ? fmt::format("\"{}\"", field.fallback) : std::string(field.fallback);
    }

    // The place of part of a string's text: exact where the text stands in the source letter by letter, else the whole.
    SourceRange part_of(const Node& node, std::size_t begin, std::size_t end) const {
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

    void expression_error(Node& node, const Field& field, std::string_view name, const ExpressionError& error) {
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

    void out_of_range(Node& node, const Field& field, std::string_view name) {
        report(codes::out_of_range,
               fmt::format("`{}` = {} is outside the range {}", name,
                           sources_.text(node.range).empty() ? shown(node) : shown(sources_.text(node.range)),
                           describe(field.limits)),
               node.range, fmt::format("legal: {}", describe(field.limits)));
        node.poisoned = true;
    }

    // ---- keys ----

    void unknown_key(std::string_view table, std::string_view table_name, Member& member) {
        member.value.poisoned = true;
        Diagnostic& diagnostic = report(
            codes::unknown_key, fmt::format("unknown key `{}`", shown(std::string_view(join(table_name, member.key)))),
            member.key_range, {});
        std::vector<std::string_view> keys;
        for (const Field* field : schema_.children(table)) keys.push_back(field->key());
        if (const std::string_view close = nearest(member.key, keys); !close.empty()) {
            diagnostic.primary.text = fmt::format("did you mean `{}`?", close);
            suggest(diagnostic, fmt::format("write `{}`", close), member.key_range, std::string(close),
                    Applicability::maybe_incorrect);
            presumed_.insert(join(table, close));
            return;
        }
        diagnostic.primary.text = table.empty() ? "no such section or key" : fmt::format("not a key of [{}]", table);
        if (const ForeignName* foreign = schema_.foreign(member.key)) {
            diagnostic.helps.push_back(
                fmt::format("`{}` is {}'s name; here it is `{}`", foreign->foreign, foreign->server, foreign->native));
            presumed_.insert(std::string(foreign->native));
            return;
        }
        std::string elsewhere;
        for (const Field& field : schema_.fields())
            if (field.key() == member.key && field.kind != ValueKind::table)
                elsewhere += fmt::format("{}`{}`", elsewhere.empty() ? "" : " and ", field.path);
        if (!elsewhere.empty()) {
            diagnostic.helps.push_back(fmt::format("there is {}", elsewhere));
            return;
        }
        std::string all;
        for (const std::string_view key : keys) all += fmt::format("{}{}", all.empty() ? "" : ", ", key);
        diagnostic.helps.push_back(table.empty() ? fmt::format("known: {}", all)
                                                 : fmt::format("[{}] has: {}", table, all));
    }

    // `--max-num-seqs` and `max-num-seqs` are taken as `max_num_seqs`, with a warning.
    const Field* foreign_spelling(std::string_view table, std::string_view table_name, Node& node, Member& member) {
        std::string native = member.key;
        native.erase(0, std::min(native.find_first_not_of('-'), native.size()));
        std::replace(native.begin(), native.end(), '-', '_');
        if (native == member.key) return nullptr;
        const Field* field = schema_.child(table, native);
        if (field == nullptr) return nullptr;
        if (const Member* other = node.member(native)) {
            const Position first = sources_.position(other->key_range.source, other->key_range.begin);
            const Position again = sources_.position(member.key_range.source, member.key_range.begin);
            Diagnostic& diagnostic =
                report(codes::duplicate_key,
                       fmt::format("`{}` is defined at {}:{} and again at {}:{}", join(table_name, native), first.line,
                                   first.column, again.line, again.column),
                       member.key_range, "another spelling of the same key");
            diagnostic.secondary.push_back({other->key_range, "the key"});
            diagnostic.helps.push_back("keep one");
            member.value.poisoned = true;
            return field;
        }
        Diagnostic& diagnostic = report(codes::foreign_spelling,
                                        fmt::format("`{}` looks like a command-line flag of another server",
                                                    shown(std::string_view(join(table_name, member.key)))),
                                        member.key_range, fmt::format("taken as `{}`", native));
        suggest(diagnostic, fmt::format("write `{}`", native), member.key_range, native,
                Applicability::machine_applicable);
        member.key = std::move(native);
        return field;
    }

    // `table` is the schema's path, `name` what messages call it.
    void check_table(Node& node, std::string_view table, std::string_view name) {
        for (std::size_t i = 0; i < node.members.size(); ++i) {
            Member& member = node.members[i];
            const Field* field = schema_.child(table, member.key);
            if (field == nullptr) field = foreign_spelling(table, name, node, member);
            if (field == nullptr) {
                unknown_key(table, name, member);
                continue;
            }
            // `same_as` tables share fields, so the path is built from where we are.
            if (!member.value.poisoned)
                check_value(member.value, *field, join(table, field->key()), join(name, field->key()));
        }
        for (const Field* field : schema_.children(table)) {
            if (node.member(field->key()) != nullptr) continue;
            const std::string path = join(table, field->key());
            if (field->required && !presumed_.contains(path)) {
                report(codes::required_missing, fmt::format("pipeline has no `{}`", join(name, field->key())),
                       node.range, fmt::format("needs `{}`", field->key()))
                    .helps.push_back(fmt::format("`{}`: {}", field->key(), field->doc));
                node.poisoned = true;
            }
            if (field->kind == ValueKind::table && has_defaults(path)) {
                Node section = default_node(node.range);
                check_table(section, path, join(name, field->key()));
                node.members.push_back({std::string(field->key()), {}, std::move(section)});
            } else if (!field->fallback.empty()) {
                node.members.push_back({std::string(field->key()), {}, fallback(*field, node.range)});
            }
        }
    }

    bool has_defaults(std::string_view table) const {
        const auto fields = schema_.children(table);
        return std::any_of(fields.begin(), fields.end(), [&](const Field* field) {
            return !field->fallback.empty() ||
                   (field->kind == ValueKind::table && has_defaults(join(table, field->key())));
        });
    }

    static Node default_node(SourceRange where) {
        Node node;
        node.origin = plan::OriginKind::default_;
        node.range = where;
        return node;
    }

    static Node fallback(const Field& field, SourceRange where) {
        Node node = default_node(where);
        const std::string text(field.fallback);
        switch (field.kind) {
        case ValueKind::boolean:
            node.kind = Node::Kind::boolean;
            node.boolean = text == "true";
            break;
        case ValueKind::integer:
        case ValueKind::count:
            node.kind = Node::Kind::integer;
            node.integer = std::strtoll(text.c_str(), nullptr, 10);
            break;
        case ValueKind::number:
            node.kind = Node::Kind::number;
            std::from_chars(text.data(), text.data() + text.size(), node.number);
            break;
        default: node.kind = Node::Kind::text; node.text = text;
        }
        return node;
    }

    // ---- values ----

    void check_value(Node& node, const Field& field, std::string_view path, const std::string& name) {
        switch (field.kind) {
        case ValueKind::table:
            if (node.kind != Node::Kind::table) return wrong_type(node, field, name);
            return check_table(node, path, name);
        case ValueKind::table_list: return check_table_list(node, field, path, name);
        case ValueKind::options:
            if (node.kind != Node::Kind::table) return wrong_type(node, field, name);
            return check_options(node, name);
        case ValueKind::plugin_options: return check_plugin_options(node, field, name);
        case ValueKind::boolean:
            if (node.kind != Node::Kind::boolean) wrong_type(node, field, name);
            return;
        case ValueKind::integer:
            if (node.kind != Node::Kind::integer) return wrong_type(node, field, name);
            return check_limits(node, field, name);
        case ValueKind::number:
            if (node.kind != Node::Kind::integer && node.kind != Node::Kind::number)
                return wrong_type(node, field, name);
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
        }
    }

    void check_table_list(Node& node, const Field& field, std::string_view path, const std::string& name) {
        if (node.kind != Node::Kind::list) return wrong_type(node, field, name);
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            Node& item = node.items[i];
            const std::string item_name = fmt::format("{}[{}]", name, i);
            if (item.kind != Node::Kind::table)
                wrong_type(item, {.path = field.path, .kind = ValueKind::table, .doc = {}}, item_name);
            else
                check_table(item, path, item_name);
        }
    }

    void check_option(Node& node, const std::string& name, bool in_list) {
        const bool list = node.kind == Node::Kind::list && !in_list;
        if (node.kind == Node::Kind::table || node.kind == Node::Kind::date ||
            (node.kind == Node::Kind::list && !list)) {
            report(codes::wrong_type,
                   fmt::format("`{}` wants a boolean, number, string or list of them, got a {} `{}`",
                               shown(std::string_view(name)), to_string(node.kind), shown(node)),
                   node.range, "not a plugin option");
            node.poisoned = true;
        }
        if (list)
            for (std::size_t i = 0; i < node.items.size(); ++i)
                check_option(node.items[i], fmt::format("{}[{}]", name, i), true);
    }

    void check_options(Node& node, const std::string& name) {
        for (Member& member : node.members) check_option(member.value, join(name, member.key), false);
    }

    void check_plugin_options(Node& node, const Field& field, const std::string& name) {
        if (node.kind != Node::Kind::table) return wrong_type(node, field, name);
        for (Member& member : node.members) {
            const std::string plugin = join(name, shown(std::string_view(member.key)));
            if (member.value.kind != Node::Kind::table)
                wrong_type(member.value, {.path = field.path, .kind = ValueKind::options, .doc = {}}, plugin);
            else
                check_options(member.value, plugin);
        }
    }

    void check_limits(Node& node, const Field& field, std::string_view name) {
        const double value = node.kind == Node::Kind::integer ? static_cast<double>(node.integer) : node.number;
        if (!std::isfinite(value) || !field.limits.hold(value)) out_of_range(node, field, name);
    }

    void check_choice(Node& node, const Field& field, std::string_view name) {
        std::vector<std::string_view> names;
        std::string all;
        for (const Choice& choice : field.choices) {
            if (choice.name == node.text) return;
            names.push_back(choice.name);
            all += fmt::format("{}{}", all.empty() ? "" : ", ", choice.name);
        }
        Diagnostic& diagnostic = report(
            codes::not_in_enumeration,
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

    void check_list(Node& node, const Field& field, const std::string& name, Node::Kind element) {
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
        const Field item_field{.path = field.path,
                               .kind = integers ? ValueKind::integer : ValueKind::text,
                               .doc = {},
                               .limits = field.limits};
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            const std::string item_name = fmt::format("{}[{}]", name, i);
            if (node.items[i].kind != element)
                wrong_type(node.items[i], item_field, item_name);
            else if (integers)
                check_limits(node.items[i], item_field, item_name);
        }
    }

    static void make_integer(Node& node, std::int64_t value) {
        node.kind = Node::Kind::integer;
        node.integer = value;
    }

    void check_size(Node& node, const Field& field, const std::string& name) {
        if (node.kind == Node::Kind::integer) {
            if (node.integer > 0 && node.integer < 1'000'000)
                report(codes::bytes_without_unit, fmt::format("`{}` = {} reads as bytes", name, node.integer),
                       node.range, "no unit")
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

    void check_count(Node& node, const Field& field, const std::string& name) {
        if (node.kind == Node::Kind::text) {
            const auto parsed = parse_count(node.text);
            if (const auto* error = std::get_if<ExpressionError>(&parsed))
                return expression_error(node, field, name, *error);
            make_integer(node, std::get<std::int64_t>(parsed));
        }
        if (node.kind != Node::Kind::integer) return wrong_type(node, field, name);
        check_limits(node, field, name);
    }

    void check_length(Node& node, const Field& field, const std::string& name) {
        if (node.kind != Node::Kind::table) return check_count(node, field, name);
        static constexpr std::string_view keys[] = {"p50", "p95", "max"};
        for (Member& member : node.members) {
            if (std::find(std::begin(keys), std::end(keys), member.key) == std::end(keys)) {
                report(codes::unknown_key,
                       fmt::format("unknown key `{}`", shown(std::string_view(join(name, member.key)))),
                       member.key_range, "not a key of a length")
                    .helps.push_back("a length has: p50, p95, max");
                member.value.poisoned = true;
                continue;
            }
            const Field count{.path = field.path, .kind = ValueKind::count, .doc = {}, .limits = field.limits};
            check_count(member.value, count, join(name, member.key));
        }
    }

    void check_duration(Node& node, const Field& field, const std::string& name) {
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
    void check_expression(Node& node, const Field& field, const std::string& name,
                          Parsed<T> (*parse)(std::string_view)) {
        if (node.kind != Node::Kind::text) return wrong_type(node, field, name);
        const Parsed<T> parsed = parse(node.text);
        if (const auto* error = std::get_if<ExpressionError>(&parsed)) expression_error(node, field, name, *error);
    }

    void check_code(Node& node, const Field& field, const std::string& name) {
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

    // ---- whole document ----

    bool check_version(Node& root) {
        const Member* version = root.member("schema");
        if (version == nullptr || version->value.kind != Node::Kind::integer ||
            version->value.integer == schema_version)
            return true; // another type is reported like any other key
        report(codes::schema_version,
               fmt::format("pipeline schema {}, compiler speaks {}", version->value.integer, schema_version),
               version->value.range, "unknown version")
            .helps.push_back(version->value.integer > schema_version ? "use a newer dsv4"
                                                                     : "write `schema = 1` after checking every key");
        root.poisoned = true;
        return false;
    }

    // Whether the file says, or means to say, something at one of the paths.
    bool stated(const Node& root, std::initializer_list<std::string_view> paths) const {
        return std::any_of(paths.begin(), paths.end(), [&](std::string_view path) {
            const std::string_view section = path.substr(0, path.find('.'));
            const Member* table = root.member(section);
            return presumed_.contains(path) || presumed_.contains(section) ||
                   (table != nullptr && table->value.poisoned) || find(root, path) != nullptr;
        });
    }

    void check_required(Node& root) {
        struct Need {
            std::initializer_list<std::string_view> any_of;
            const char* what;
            const char* help;
        };
        const Need needs[] = {
            {{"checkpoint.id", "checkpoint.path"},
             "checkpoint.id",
             "name the weights: `id` with `revision`, or `path`"},
            {{"hardware.platform"}, "hardware.platform", "name the platform, such as `platform = \"b200\"`"},
            {{"topology.shape", "topology.tp", "topology.dp", "topology.mode", "topology.slots", "disagg.prefill"},
             "topology.shape",
             "write the topology, such as `shape = \"tp1 x dp4 + ep\"`"},
        };
        for (const Need& need : needs) {
            if (stated(root, need.any_of)) continue;
            const std::string_view what = need.what;
            const Member* section = root.member(what.substr(0, what.find('.')));
            const bool present = section != nullptr && section->key_range.valid();
            SourceRange place = root.range;
            place.end = place.begin;
            report(codes::required_missing, fmt::format("pipeline has no `{}`", what),
                   present ? section->key_range : place,
                   present ? "nothing stated here"
                           : fmt::format("no [{}] in this file", what.substr(0, what.find('.'))))
                .helps.push_back(need.help);
        }
    }

    const Schema& schema_;
    const SourceMap& sources_;
    Diagnostics& diagnostics_;
    std::set<std::string, std::less<>> presumed_; // paths that a reported mistake was meant to state
};

} // namespace

void check_schema(const Schema& schema, Node& root, const SourceMap& sources, Diagnostics& diagnostics) {
    Checker(schema, sources, diagnostics).run(root);
}

} // namespace dsv4::dsl
