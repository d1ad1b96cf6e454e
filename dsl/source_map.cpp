// Line tables and UTF-8 columns.
#include "dsl/source_map.hpp"

#include <algorithm>

namespace dsv4::dsl {
namespace {

constexpr std::size_t block_bytes = 64;

bool begins_code_point(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

} // namespace

std::size_t decode_utf8(std::string_view text, std::size_t offset, char32_t& code_point) noexcept {
    if (offset >= text.size()) return 0;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) {
        code_point = lead;
        return 1;
    }
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - offset < length) return 0;
    char32_t value = lead & (0xFFu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
        value = (value << 6) | (byte(i) & 0x3Fu);
    }
    // Overlong forms, surrogates and what lies beyond Unicode.
    if ((length == 3 && value < 0x800) || (length == 4 && value < 0x10000) || value > 0x10FFFF ||
        (value >= 0xD800 && value <= 0xDFFF))
        return 0;
    code_point = value;
    return length;
}

std::size_t find_invalid_utf8(std::string_view text) noexcept {
    char32_t ignored = 0;
    for (std::size_t offset = 0; offset < text.size();) {
        const std::size_t length = decode_utf8(text, offset, ignored);
        if (length == 0) return offset;
        offset += length;
    }
    return std::string_view::npos;
}

SourceId SourceMap::add(std::string name, std::string text) {
    Source source{std::move(name), std::move(text), {}, {}};
    source.line_begins.push_back(std::string_view(source.text).starts_with("\xEF\xBB\xBF") ? 3 : 0);
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < source.text.size(); ++i) {
        if (i % block_bytes == 0) source.block_ranks.push_back(rank);
        rank += begins_code_point(source.text[i]) ? 1 : 0;
        if (source.text[i] == '\n') source.line_begins.push_back(static_cast<std::uint32_t>(i + 1));
    }
    source.block_ranks.push_back(rank);
    sources_.push_back(std::move(source));
    return static_cast<SourceId>(sources_.size() - 1);
}

// Code points that begin before `offset`.
std::uint32_t SourceMap::Source::rank(std::size_t offset) const {
    const std::size_t block = std::min(offset / block_bytes, block_ranks.size() - 1);
    std::uint32_t count = block_ranks[block];
    if (block * block_bytes >= text.size()) return count;
    for (std::size_t i = block * block_bytes; i < offset; ++i) count += begins_code_point(text[i]) ? 1 : 0;
    return count;
}

std::string_view SourceMap::text(const SourceRange& range) const {
    const std::string_view all = text(range.source);
    const std::size_t begin = std::min<std::size_t>(range.begin, all.size());
    return all.substr(begin, range.end > begin ? range.end - begin : 0);
}

Position SourceMap::position(SourceId id, std::size_t offset) const {
    const Source& source = sources_.at(id);
    offset = std::min(offset, source.text.size());
    const auto after = std::upper_bound(source.line_begins.begin(), source.line_begins.end(), offset);
    const std::size_t line = after == source.line_begins.begin() ? 1 : after - source.line_begins.begin();
    const std::size_t line_begin = source.line_begins[line - 1];
    while (offset > line_begin && offset < source.text.size() && !begins_code_point(source.text[offset])) --offset;
    const std::uint32_t before = offset > line_begin ? source.rank(offset) - source.rank(line_begin) : 0;
    return {static_cast<std::uint32_t>(line), before + 1};
}

std::uint32_t SourceMap::offset(SourceId id, Position position) const {
    const Source& source = sources_.at(id);
    if (position.line == 0) return source.line_begins.front();
    if (position.line > source.line_begins.size()) return static_cast<std::uint32_t>(source.text.size());
    const std::size_t begin = source.line_begins[position.line - 1];
    const std::size_t end = begin + line_text(id, position.line).size();
    const std::uint64_t wanted = std::uint64_t{source.rank(begin)} + std::max(position.column, 1u) - 1;
    if (wanted >= source.rank(end)) return static_cast<std::uint32_t>(end);
    const auto after = std::upper_bound(source.block_ranks.begin(), source.block_ranks.end(), wanted);
    std::size_t at = (after - source.block_ranks.begin() - 1) * block_bytes;
    std::uint64_t rank = source.block_ranks[at / block_bytes];
    for (;; ++at)
        if (begins_code_point(source.text[at]) && rank++ == wanted) return static_cast<std::uint32_t>(at);
}

std::uint32_t SourceMap::line_count(SourceId id) const {
    return static_cast<std::uint32_t>(sources_.at(id).line_begins.size());
}

std::uint32_t SourceMap::line_begin(SourceId id, std::uint32_t line) const {
    return sources_.at(id).line_begins.at(line - 1);
}

std::string_view SourceMap::line_text(SourceId id, std::uint32_t line) const {
    const Source& source = sources_.at(id);
    const std::size_t begin = source.line_begins.at(line - 1);
    std::size_t end = line < source.line_begins.size() ? source.line_begins[line] - 1 : source.text.size();
    if (end > begin && source.text[end - 1] == '\r') --end;
    return std::string_view(source.text).substr(begin, end - begin);
}

} // namespace dsv4::dsl
