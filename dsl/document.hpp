// The tree that every front end yields and every pass reads: values with the place they stand in and where they came
// from.
#pragma once

#include "core/plan/serving_plan.hpp"
#include "dsl/source_map.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::dsl {

struct Member;

struct Node {
    enum class Kind { boolean, integer, number, text, date, list, table };
    Kind kind = Kind::table;
    bool boolean = false;
    std::int64_t integer = 0;
    double number = 0;
    std::string text;            // for `date` as it is written
    std::vector<Node> items;     // of a list
    std::vector<Member> members; // of a table, in the order of the text
    SourceRange range;           // of a default: where the value could be inserted
    plan::OriginKind origin = plan::OriginKind::file;
    bool poisoned = false; // already reported; later passes skip it

    const Member* member(std::string_view key) const noexcept;
    Member* member(std::string_view key) noexcept;
};

struct Member {
    std::string key;
    SourceRange key_range;
    Node value;
};

// "string", "integer", "table", ...
std::string_view to_string(Node::Kind kind) noexcept;

// The node at a dotted path of plain keys, or null.
const Node* find(const Node& root, std::string_view path) noexcept;

// "kv" and "dtype" give "kv.dtype"; an empty path stands for the root.
std::string child_path(std::string_view path, std::string_view key);

// User text as a message may show it: control characters replaced, the middle of texts longer than `limit` code points
// left out.
std::string shown(std::string_view text, std::size_t limit = 64);
// A value as TOML would write it, shortened like `shown`.
std::string shown(const Node& node);

} // namespace dsv4::dsl
