// Overrides from the command line.
#include "dsl/overrides.hpp"

#include "dsl/toml_reader.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dsv4::dsl {
namespace {

struct Part {
    std::string key;
    SourceRange range;
};

std::uint32_t narrow(std::size_t offset) { return static_cast<std::uint32_t>(offset); }

void report(Diagnostics& diagnostics, std::string message, SourceRange range, std::string label) {
    Diagnostic diagnostic;
    diagnostic.code = codes::does_not_parse;
    diagnostic.message = std::move(message);
    diagnostic.primary = {range, std::move(label)};
    diagnostic.helps.push_back("write --set path=value, such as --set context.max_num_seqs=8");
    diagnostics.push_back(std::move(diagnostic));
}

// The keys left of `=`; empty after a report.
std::vector<Part> read_path(std::string_view text, SourceId source, std::size_t equals, Diagnostics& diagnostics) {
    std::vector<Part> parts;
    for (std::size_t begin = 0; begin <= equals;) {
        const std::size_t end = std::min(text.find('.', begin), equals);
        std::size_t first = begin, last = end;
        while (first < last && text[first] == ' ') ++first;
        while (last > first && text[last - 1] == ' ') --last;
        const std::string_view key = text.substr(first, last - first);
        const SourceRange range{source, narrow(first), narrow(last)};
        const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
            return c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        });
        if (!bare || parts.size() == max_key_parts) {
            report(diagnostics, fmt::format("the override `{}` names no key", shown(text)), range,
                   "expected keys joined by dots");
            return {};
        }
        parts.push_back({std::string(key), range});
        begin = end + 1;
    }
    return parts;
}

bool wants_bare_text(ValueKind kind) {
    switch (kind) {
    case ValueKind::text:
    case ValueKind::choice:
    case ValueKind::path:
    case ValueKind::topology:
    case ValueKind::version:
    case ValueKind::predicate:
    case ValueKind::code: return true;
    default: return false;
    }
}

Node bare_text(std::string_view text, SourceRange range) {
    Node node;
    node.kind = Node::Kind::text;
    node.text = text;
    node.range = range;
    node.origin = plan::OriginKind::override_;
    return node;
}

// Follows the keys through a document that holds nothing else.
Node* follow(Node& document, const std::vector<Part>& parts) {
    Node* node = &document;
    for (const Part& part : parts) {
        if (node->kind != Node::Kind::table || node->members.size() != 1 || node->members.front().key != part.key)
            return nullptr;
        node = &node->members.front().value;
    }
    return node;
}

// `table` is the path of `under`.
void lay_over(const Schema& schema, const std::string& table, Node& under, Member over, const SourceMap& sources,
              Diagnostics& diagnostics) {
    Member* found = under.member(over.key);
    if (found == nullptr) {
        under.members.push_back(std::move(over));
        return;
    }
    const std::string path = child_path(table, over.key);
    if (over.value.kind == Node::Kind::table) {
        if (found->value.kind == Node::Kind::table) {
            for (Member& inner : over.value.members)
                lay_over(schema, path, found->value, std::move(inner), sources, diagnostics);
            return;
        }
        // A file that writes a value for a section is wrong whatever lies over it; the schema says so.
        if (const Field* field = schema.find(path); field != nullptr && field->kind == ValueKind::table) return;
    }
    if (found->value.origin == plan::OriginKind::override_) {
        Diagnostic diagnostic;
        diagnostic.code = codes::duplicate_key;
        diagnostic.message = fmt::format("`{}` is defined at {} and again at {}", over.key,
                                         sources.name(found->key_range.source), sources.name(over.key_range.source));
        diagnostic.primary = {over.key_range, "set again here"};
        diagnostic.secondary.push_back({found->key_range, "first set here"});
        diagnostic.helps.push_back("keep one");
        diagnostics.push_back(std::move(diagnostic));
        return;
    }
    *found = std::move(over);
}

} // namespace

void apply_override(const Schema& schema, Node& root, const SourceMap& sources, SourceId source,
                    Diagnostics& diagnostics) {
    const std::string_view text = sources.text(source);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos)
        return report(diagnostics, fmt::format("the override `{}` has no `=`", shown(text)),
                      {source, 0, narrow(text.size())}, "expected path=value");
    const std::vector<Part> parts = read_path(text, source, equals, diagnostics);
    if (parts.empty()) return;

    std::string path;
    for (const Part& part : parts) path = child_path(path, part.key);
    const Field* field = schema.find(path);

    std::size_t begin = equals + 1, end = text.size();
    while (begin < end && text[begin] == ' ') ++begin;
    while (end > begin && text[end - 1] == ' ') --end;
    const SourceRange range{source, narrow(begin), narrow(end)};
    const std::string_view value = text.substr(begin, end - begin);
    const bool delimited = !value.empty() && std::string_view("\"'[{").find(value.front()) != std::string_view::npos;

    Node leaf = bare_text(value, range);
    if (find_invalid_utf8(text) != std::string_view::npos || delimited || field == nullptr ||
        !wants_bare_text(field->kind)) {
        Diagnostics problems;
        std::optional<Node> document = read_toml(sources, source, plan::OriginKind::override_, problems);
        if (document) {
            Node* read = follow(*document, parts);
            if (read == nullptr)
                return report(diagnostics, "an override sets one path", {source, 0, narrow(text.size())},
                              "more than one setting");
            leaf = std::move(*read);
        } else if (delimited || find_invalid_utf8(text) != std::string_view::npos) {
            diagnostics.insert(diagnostics.end(), problems.begin(), problems.end());
            return;
        }
    }

    Member member{parts.back().key, parts.back().range, std::move(leaf)};
    for (std::size_t i = parts.size() - 1; i-- > 0;) {
        Node table;
        table.origin = plan::OriginKind::override_;
        table.range = parts[i].range;
        table.members.push_back(std::move(member));
        member = {parts[i].key, parts[i].range, std::move(table)};
    }
    lay_over(schema, {}, root, std::move(member), sources, diagnostics);
}

} // namespace dsv4::dsl
