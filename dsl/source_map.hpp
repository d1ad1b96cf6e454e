// The texts that a compilation reads, and the way from byte offsets in them to lines and columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::dsl {

// Index of a text in its SourceMap; texts are numbered in the order they were added.
using SourceId = std::uint32_t;
inline constexpr SourceId no_source = UINT32_MAX;

// Bytes [begin, end) of one text.
struct SourceRange {
    SourceId source = no_source;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    bool valid() const noexcept { return source != no_source; }
    bool operator==(const SourceRange&) const = default;
};

// Both from 1; the column counts code points. Where the text is no UTF-8, stray continuation bytes do not count.
struct Position {
    std::uint32_t line = 1;
    std::uint32_t column = 1;
    bool operator==(const Position&) const = default;
};

// Owns the texts. Ids and views stay valid as long as the map lives; not for use by several threads while texts are
// added.
class SourceMap {
  public:
    // `name` is what diagnostics print; the text must be shorter than 4 GiB.
    SourceId add(std::string name, std::string text);
    std::size_t size() const noexcept { return sources_.size(); }
    const std::string& name(SourceId id) const { return sources_.at(id).name; }
    std::string_view text(SourceId id) const { return sources_.at(id).text; }
    std::string_view text(const SourceRange& range) const;

    // Both directions take logarithmic time, however long the lines are.
    // Offsets past the end stand for the end.
    Position position(SourceId id, std::size_t offset) const;
    // Positions past a line's end stand for its end, lines past the last one for the end of the text.
    std::uint32_t offset(SourceId id, Position position) const;
    std::uint32_t line_count(SourceId id) const;
    // Without its line break.
    std::string_view line_text(SourceId id, std::uint32_t line) const;
    std::uint32_t line_begin(SourceId id, std::uint32_t line) const;

  private:
    struct Source {
        std::string name;
        std::string text;
        std::vector<std::uint32_t> line_begins; // a byte order mark belongs to no line
        std::vector<std::uint32_t> block_ranks; // code points that begin before each block of 64 bytes
        std::uint32_t rank(std::size_t offset) const;
    };
    std::deque<Source> sources_;
};

// Bytes of the code point that starts at `offset`: 1 to 4, or 0 where the bytes there are no valid UTF-8. The code
// point itself is written to `code_point`.
std::size_t decode_utf8(std::string_view text, std::size_t offset, char32_t& code_point) noexcept;
// Offset of the first byte that is no UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text) noexcept;

} // namespace dsv4::dsl
