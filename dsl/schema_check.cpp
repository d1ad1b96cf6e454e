// The schema pass: walks a document along the schema; keys, defaults, options and what is missing.
#include "dsl/schema.hpp"
#include "dsl/suggest.hpp"
#include "dsl/value_check.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <set>

namespace dsv4::dsl {
namespace {

class Checker {
  public:
    Checker(const Schema& schema, const SourceMap& sources, Diagnostics& diagnostics)
        : schema_(schema), sources_(sources), values_(sources, diagnostics) {}

    void run(Node& root) {
        if (!check_version(root)) return;
        check_table(root, {}, {});
        check_required(root);
    }

  private:
    // ---- reporting ----

    // ---- keys ----

    void unknown_key(std::string_view table, std::string_view table_name, Member& member) {
        member.value.poisoned = true;
        Diagnostic& diagnostic =
            values_.report(codes::unknown_key,
                           fmt::format("unknown key `{}`", shown(std::string_view(child_path(table_name, member.key)))),
                           member.key_range, {});
        std::vector<std::string_view> keys;
        for (const Field* field : schema_.children(table)) keys.push_back(field->key());
        if (const std::string_view close = nearest(member.key, keys); !close.empty()) {
            diagnostic.primary.text = fmt::format("did you mean `{}`?", close);
            ValueCheck::suggest(diagnostic, fmt::format("write `{}`", close), member.key_range, std::string(close),
                                Applicability::maybe_incorrect);
            presumed_.insert(child_path(table, close));
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
            Diagnostic& diagnostic = values_.report(codes::duplicate_key,
                                                    fmt::format("`{}` is defined at {}:{} and again at {}:{}",
                                                                child_path(table_name, native), first.line,
                                                                first.column, again.line, again.column),
                                                    member.key_range, "another spelling of the same key");
            diagnostic.secondary.push_back({other->key_range, "the key"});
            diagnostic.helps.push_back("keep one");
            member.value.poisoned = true;
            return field;
        }
        Diagnostic& diagnostic =
            values_.report(codes::foreign_spelling,
                           fmt::format("`{}` looks like a command-line flag of another server",
                                       shown(std::string_view(child_path(table_name, member.key)))),
                           member.key_range, fmt::format("taken as `{}`", native));
        ValueCheck::suggest(diagnostic, fmt::format("write `{}`", native), member.key_range, native,
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
                check_value(member.value, *field, child_path(table, field->key()), child_path(name, field->key()));
        }
        for (const Field* field : schema_.children(table)) {
            if (node.member(field->key()) != nullptr) continue;
            const std::string path = child_path(table, field->key());
            if (field->required && !presumed_.contains(path)) {
                values_
                    .report(codes::required_missing,
                            fmt::format("pipeline has no `{}`", child_path(name, field->key())), node.range,
                            fmt::format("needs `{}`", field->key()))
                    .helps.push_back(fmt::format("`{}`: {}", field->key(), field->doc));
                node.poisoned = true;
            }
            if (field->kind == ValueKind::table && has_defaults(path)) {
                Node section = default_node(node.range);
                check_table(section, path, child_path(name, field->key()));
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
                   (field->kind == ValueKind::table && has_defaults(child_path(table, field->key())));
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
            if (node.kind != Node::Kind::table) return values_.wrong_type(node, field, name);
            return check_table(node, path, name);
        case ValueKind::table_list: return check_table_list(node, field, path, name);
        case ValueKind::options:
            if (node.kind != Node::Kind::table) return values_.wrong_type(node, field, name);
            return check_options(node, name);
        case ValueKind::plugin_options: return check_plugin_options(node, field, name);
        default: return values_.check(node, field, name);
        }
    }

    void check_table_list(Node& node, const Field& field, std::string_view path, const std::string& name) {
        if (node.kind != Node::Kind::list) return values_.wrong_type(node, field, name);
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            Node& item = node.items[i];
            const std::string item_name = fmt::format("{}[{}]", name, i);
            if (item.kind != Node::Kind::table)
                values_.wrong_type(item, {.path = field.path, .kind = ValueKind::table, .doc = {}}, item_name);
            else
                check_table(item, path, item_name);
        }
    }

    void check_option(Node& node, const std::string& name, bool in_list) {
        const bool list = node.kind == Node::Kind::list && !in_list;
        if (node.kind == Node::Kind::table || node.kind == Node::Kind::date ||
            (node.kind == Node::Kind::list && !list)) {
            values_.report(codes::wrong_type,
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
        for (Member& member : node.members) check_option(member.value, child_path(name, member.key), false);
    }

    void check_plugin_options(Node& node, const Field& field, const std::string& name) {
        if (node.kind != Node::Kind::table) return values_.wrong_type(node, field, name);
        for (Member& member : node.members) {
            const std::string plugin = child_path(name, shown(std::string_view(member.key)));
            if (member.value.kind != Node::Kind::table)
                values_.wrong_type(member.value, {.path = field.path, .kind = ValueKind::options, .doc = {}}, plugin);
            else
                check_options(member.value, plugin);
        }
    }

    // ---- whole document ----

    bool check_version(Node& root) {
        const Member* version = root.member("schema");
        if (version == nullptr || version->value.kind != Node::Kind::integer ||
            version->value.integer == schema_version)
            return true; // another type is reported like any other key
        values_
            .report(codes::schema_version,
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
            values_
                .report(codes::required_missing, fmt::format("pipeline has no `{}`", what),
                        present ? section->key_range : place,
                        present ? "nothing stated here"
                                : fmt::format("no [{}] in this file", what.substr(0, what.find('.'))))
                .helps.push_back(need.help);
        }
    }

    const Schema& schema_;
    const SourceMap& sources_;
    ValueCheck values_;
    std::set<std::string, std::less<>> presumed_; // paths that a reported mistake was meant to state
};

} // namespace

void check_schema(const Schema& schema, Node& root, const SourceMap& sources, Diagnostics& diagnostics) {
    Checker(schema, sources, diagnostics).run(root);
}

} // namespace dsv4::dsl
