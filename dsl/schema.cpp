// Look-up in a schema, and its reference page.
#include "dsl/schema.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dsv4::dsl {

std::string_view describe(ValueKind kind) noexcept {
    switch (kind) {
    case ValueKind::table: return "a table";
    case ValueKind::table_list: return "a list of tables";
    case ValueKind::options: return "a table of options";
    case ValueKind::plugin_options: return "a table of options for each plugin";
    case ValueKind::boolean: return "true or false";
    case ValueKind::integer: return "an integer";
    case ValueKind::number: return "a number";
    case ValueKind::text: return "a string";
    case ValueKind::choice: return "a string";
    case ValueKind::text_list: return "a list of strings";
    case ValueKind::integer_list: return "a list of integers";
    case ValueKind::size: return "a size such as \"20 GiB\"";
    case ValueKind::count: return "an integer or a count such as \"32Ki\"";
    case ValueKind::count_or_auto: return "an integer, a count such as \"32Ki\", or \"auto\"";
    case ValueKind::length: return "a count, or a table of p50, p95 and max";
    case ValueKind::duration: return "a number of seconds or a duration such as \"30 s\"";
    case ValueKind::path: return "a path in quotes";
    case ValueKind::path_list: return "a list of paths";
    case ValueKind::topology: return "a topology such as \"tp2 x dp4 + ep\"";
    case ValueKind::version: return "a version such as \"0.25.0\"";
    case ValueKind::predicate: return "a condition in quotes";
    case ValueKind::code: return "a code such as \"DSV4-W0703\"";
    }
    return "a value";
}

bool takes_text(ValueKind kind) noexcept {
    switch (kind) {
    case ValueKind::table:
    case ValueKind::table_list:
    case ValueKind::options:
    case ValueKind::plugin_options:
    case ValueKind::boolean:
    case ValueKind::integer:
    case ValueKind::number:
    case ValueKind::integer_list: return false;
    default: return true;
    }
}

std::string describe(const Limits& limits) {
    constexpr double no_limit = 9007199254740992.0; // 2^53
    if (!limits.limited) return "any number";
    if (limits.above_least)
        return limits.most >= no_limit ? fmt::format("above {}", limits.least)
                                       : fmt::format("above {} and up to {}", limits.least, limits.most);
    return limits.most >= no_limit ? fmt::format("{} and up", limits.least)
                                   : fmt::format("{} to {}", limits.least, limits.most);
}

Schema::Schema(std::span<const Field> fields, std::span<const ForeignName> foreign)
    : fields_(fields), foreign_(foreign) {
    for (const Field& field : fields) {
        const std::size_t dot = field.path.rfind('.');
        children_[std::string(dot == std::string_view::npos ? std::string_view{} : field.path.substr(0, dot))]
            .push_back(&field);
    }
    for (const Field& field : fields)
        if (!field.same_as.empty()) children_[std::string(field.path)] = children_.find(field.same_as)->second;
}

const Field* Schema::find(std::string_view path) const {
    const std::size_t dot = path.rfind('.');
    return dot == std::string_view::npos ? child({}, path) : child(path.substr(0, dot), path.substr(dot + 1));
}

const Field* Schema::child(std::string_view table, std::string_view key) const {
    for (const Field* field : children(table))
        if (field->key() == key) return field;
    return nullptr;
}

std::span<const Field* const> Schema::children(std::string_view path) const {
    const auto found = children_.find(path);
    if (found == children_.end()) return {};
    return found->second;
}

const ForeignName* Schema::foreign(std::string_view key) const noexcept {
    const auto found =
        std::find_if(foreign_.begin(), foreign_.end(), [&](const ForeignName& n) { return n.foreign == key; });
    return found == foreign_.end() ? nullptr : &*found;
}

std::string schema_markdown(const Schema& schema) {
    std::string out = "# Keys of a pipeline file\n";
    const auto escaped = [](std::string_view text) {
        std::string safe;
        for (const char c : text) safe += c == '|' ? std::string("\\|") : std::string(1, c);
        return safe;
    };
    const auto rows = [&](std::string_view table) {
        bool header = false;
        for (const Field* field : schema.children(table)) {
            if (field->kind == ValueKind::table || field->kind == ValueKind::table_list) continue;
            if (!header) out += "\n| key | value | default | meaning |\n|---|---|---|---|\n";
            header = true;
            std::string value(describe(field->kind));
            if (field->kind == ValueKind::choice) {
                value.clear();
                for (const Choice& choice : field->choices)
                    value += fmt::format("{}`{}` ({})", value.empty() ? "" : ", ", choice.name, choice.meaning);
            } else if (field->limits.limited) {
                value += ", " + describe(field->limits);
            }
            out +=
                fmt::format("| `{}` | {} | {} | {} |\n", field->key(), escaped(value),
                            field->fallback.empty() ? "" : fmt::format("`{}`", field->fallback), escaped(field->doc));
        }
    };
    const auto write = [&](const auto& self, std::string_view table) -> void {
        rows(table);
        for (const Field* field : schema.children(table)) {
            if (field->kind != ValueKind::table && field->kind != ValueKind::table_list) continue;
            out += field->kind == ValueKind::table ? fmt::format("\n## `[{}]`\n\n{}\n", field->path, field->doc)
                                                   : fmt::format("\n## `[[{}]]`\n\n{}\n", field->path, field->doc);
            if (field->same_as.empty()) self(self, field->path);
        }
    };
    write(write, {});
    return out;
}

} // namespace dsv4::dsl
