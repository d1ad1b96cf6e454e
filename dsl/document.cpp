// Look-up in the document tree and how its values appear in messages.
#include "dsl/document.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dsv4::dsl {

const Member* Node::member(std::string_view key) const noexcept {
    const auto found = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == key; });
    return found == members.end() ? nullptr : &*found;
}

Member* Node::member(std::string_view key) noexcept {
    return const_cast<Member*>(static_cast<const Node&>(*this).member(key));
}

std::string_view to_string(Node::Kind kind) noexcept {
    switch (kind) {
    case Node::Kind::boolean: return "boolean";
    case Node::Kind::integer: return "integer";
    case Node::Kind::number: return "number";
    case Node::Kind::text: return "string";
    case Node::Kind::date: return "date or time";
    case Node::Kind::list: return "list";
    case Node::Kind::table: return "table";
    }
    return "table";
}

const Node* find(const Node& root, std::string_view path) noexcept {
    const Node* node = &root;
    while (!path.empty()) {
        const std::size_t dot = std::min(path.find('.'), path.size());
        const Member* member = node->member(path.substr(0, dot));
        if (member == nullptr) return nullptr;
        node = &member->value;
        path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return node;
}

std::string child_path(std::string_view path, std::string_view key) {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

std::string shown(std::string_view text, std::size_t limit) {
    const std::size_t head = limit * 5 / 8, tail = limit / 4;
    std::vector<std::string_view> points;
    for (std::size_t at = 0; at < text.size();) {
        char32_t c = 0;
        const std::size_t length = decode_utf8(text, at, c);
        const bool control = length == 0 || c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x2028 && c <= 0x202E) ||
                             (c >= 0x2066 && c <= 0x2069);
        points.push_back(control ? std::string_view("\xEF\xBF\xBD") : text.substr(at, length));
        at += std::max<std::size_t>(1, length);
    }
    std::string out;
    const auto append = [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) out += points[i];
    };
    if (points.size() <= limit) {
        append(0, points.size());
    } else {
        append(0, head);
        out += "\xE2\x80\xA6";
        append(points.size() - tail, points.size());
    }
    return out;
}

std::string shown(const Node& node) {
    switch (node.kind) {
    case Node::Kind::boolean: return node.boolean ? "true" : "false";
    case Node::Kind::integer: return fmt::format("{}", node.integer);
    case Node::Kind::number: return fmt::format("{}", node.number);
    case Node::Kind::text: return fmt::format("\"{}\"", shown(std::string_view(node.text)));
    case Node::Kind::date: return node.text;
    case Node::Kind::list: return fmt::format("[{}]", node.items.empty() ? "" : "\xE2\x80\xA6");
    case Node::Kind::table: return fmt::format("{{{}}}", node.members.empty() ? "" : "\xE2\x80\xA6");
    }
    return {};
}

} // namespace dsv4::dsl
