// toml++ stays in this file: its tree becomes ours and its line and column become byte offsets.
#include "dsl/toml_reader.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <toml++/toml.h>

namespace dsv4::dsl {
namespace {

// ---- extent ----

// Walks the tokens of a TOML text far enough to know brackets and dots outside strings and comments. The parser
// recurses on both, so their depth is limited here.
class ExtentScan {
  public:
    explicit ExtentScan(std::string_view text) : text_(text) {}

    // Offset of the bracket or dot that goes too deep, or npos.
    std::size_t run() {
        for (at_ = 0; at_ < text_.size();) {
            const char c = text_[at_];
            if (c == '#') {
                at_ = std::min(text_.find('\n', at_), text_.size());
                continue;
            }
            if (c == '"' || c == '\'') {
                skip_string(c);
                continue;
            }
            if (c == '[' || c == '{') {
                if (++depth_ > max_bracket_depth) return at_;
            } else if ((c == ']' || c == '}') && depth_ != 0) {
                --depth_;
            }
            if (c == '.') {
                if (++dots_ >= max_key_parts) return at_;
            } else if (c == '=' || c == ',' || c == '\n' || c == '{') {
                dots_ = 0;
            }
            ++at_;
        }
        return std::string_view::npos;
    }

  private:
    void skip_string(char quote) {
        const std::string three(3, quote);
        const bool multiline = text_.substr(at_).starts_with(three);
        at_ += multiline ? 3 : 1;
        while (at_ < text_.size()) {
            if (quote == '"' && text_[at_] == '\\') {
                at_ += 2;
            } else if (multiline ? text_.substr(at_).starts_with(three) : text_[at_] == quote) {
                at_ += multiline ? 3 : 1;
                return;
            } else if (!multiline && text_[at_] == '\n') {
                return; // unterminated; the parser reports it
            } else {
                ++at_;
            }
        }
        at_ = std::min(at_, text_.size());
    }

    std::string_view text_;
    std::size_t at_ = 0, depth_ = 0, dots_ = 0;
};

// ---- tree ----

class Converter {
  public:
    Converter(const SourceMap& sources, SourceId source, plan::OriginKind origin)
        : sources_(sources), source_(source), origin_(origin) {}

    SourceRange range(const toml::source_region& region) const {
        const auto offset = [&](const toml::source_position& p) {
            return sources_.offset(source_, {static_cast<std::uint32_t>(p.line), static_cast<std::uint32_t>(p.column)});
        };
        const std::uint32_t begin = offset(region.begin);
        return {source_, begin, std::max(begin, offset(region.end))};
    }

    Node convert(const toml::node& in) const {
        Node out;
        out.origin = origin_;
        out.range = range(in.source());
        switch (in.type()) {
        case toml::node_type::boolean:
            out.kind = Node::Kind::boolean;
            out.boolean = in.as_boolean()->get();
            break;
        case toml::node_type::integer:
            out.kind = Node::Kind::integer;
            out.integer = in.as_integer()->get();
            break;
        case toml::node_type::floating_point:
            out.kind = Node::Kind::number;
            out.number = in.as_floating_point()->get();
            break;
        case toml::node_type::string:
            out.kind = Node::Kind::text;
            out.text = in.as_string()->get();
            break;
        case toml::node_type::array:
            out.kind = Node::Kind::list;
            for (const toml::node& item : *in.as_array()) out.items.push_back(convert(item));
            break;
        case toml::node_type::table:
            out.kind = Node::Kind::table;
            for (auto&& [key, value] : *in.as_table())
                out.members.push_back({std::string(key.str()), range(key.source()), convert(value)});
            std::sort(out.members.begin(), out.members.end(), [](const Member& a, const Member& b) {
                return std::tie(a.key_range.begin, a.key) < std::tie(b.key_range.begin, b.key);
            });
            break;
        default: // dates and times
            out.kind = Node::Kind::date;
            out.text = sources_.text(out.range);
        }
        return out;
    }

  private:
    const SourceMap& sources_;
    SourceId source_;
    plan::OriginKind origin_;
};

// ---- errors ----

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The word around `at`, so that an error that toml++ reports at a token's end underlines all of it.
SourceRange word_around(std::string_view text, SourceId source, std::size_t at) {
    const auto wordly = [](char c) {
        return c == '_' || c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
               (c >= 'A' && c <= 'Z');
    };
    at = std::min(at, text.size());
    std::size_t begin = at, end = at;
    while (begin > 0 && wordly(text[begin - 1])) --begin;
    while (end < text.size() && wordly(text[end])) ++end;
    return {source, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

SourceRange code_point_at(std::string_view text, SourceId source, std::size_t at) {
    char32_t ignored = 0;
    std::size_t end = at;
    if (at < text.size() && text[at] != '\n' && text[at] != '\r')
        end += std::max<std::size_t>(1, decode_utf8(text, at, ignored));
    return {source, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end)};
}

Diagnostic make(DiagnosticCode code, std::string message, SourceRange range, std::string label) {
    Diagnostic diagnostic;
    diagnostic.code = code;
    diagnostic.message = std::move(message);
    diagnostic.primary = {range, std::move(label)};
    return diagnostic;
}

// toml++ says "cannot redefine existing integer 'a' as table"; the text up to that line tells where `a` stood first.
Diagnostic redefinition(const SourceMap& sources, SourceId source, const std::string& description, std::size_t at) {
    const std::size_t open = description.find('\''), close = description.rfind('\'');
    const std::string key = description.substr(open + 1, close - open - 1);
    const std::string_view text = sources.text(source);
    const std::uint32_t line = sources.position(source, at).line;
    const std::uint32_t line_begin = sources.line_begin(source, line);
    const std::string_view line_text = sources.line_text(source, line);

    SourceRange second = code_point_at(text, source, line_begin);
    const std::size_t last_part = key.rfind('.') + 1; // a path in headers, a name elsewhere
    if (const std::size_t found = line_text.find(key); found != std::string_view::npos)
        second = {source, static_cast<std::uint32_t>(line_begin + found),
                  static_cast<std::uint32_t>(line_begin + found + key.size())};
    else if (const std::size_t part = line_text.find(key.substr(last_part)); part != std::string_view::npos)
        second = {source, static_cast<std::uint32_t>(line_begin + part),
                  static_cast<std::uint32_t>(line_begin + part + key.size() - last_part)};

    Diagnostic diagnostic = make(codes::duplicate_key, {}, second, "defined again here");
    diagnostic.helps.push_back("keep one; merging by \"the last one wins\" hides mistakes");
    std::string first_place;
    try {
        // A key of our own lands in the table that is open before the second definition.
        constexpr std::string_view probe = "\n__second_definition = 0\n";
        const bool header = line_text.find_first_not_of(" \t") != std::string_view::npos &&
                            line_text[line_text.find_first_not_of(" \t")] == '[';
        const toml::table before = toml::parse(std::string(text.substr(0, line_begin)) + std::string(probe));
        const toml::key* first = nullptr;
        const auto search = [&](const auto& self, const toml::table& table, bool everywhere) -> void {
            const bool open_here = everywhere || table.contains("__second_definition");
            for (auto&& [name, value] : table) {
                if (open_here && first == nullptr && name.str() == std::string_view(key).substr(last_part)) {
                    first = &name;
                    return;
                }
                if (const auto* inner = value.as_table()) self(self, *inner, everywhere);
                if (const auto* array = value.as_array(); array && !array->empty() && array->back().as_table())
                    self(self, *array->back().as_table(), everywhere);
            }
        };
        search(search, before, header);
        if (first != nullptr) {
            const SourceRange range = Converter(sources, source, plan::OriginKind::file).range(first->source());
            const Position position = sources.position(source, range.begin);
            first_place = fmt::format(" at {}:{} and again", position.line, position.column);
            diagnostic.secondary.push_back({range, "first defined here"});
        }
    } catch (const toml::parse_error&) {
        // Both definitions stand on one line: the second place alone has to do.
    }
    const Position again = sources.position(source, second.begin);
    diagnostic.message = first_place.empty() ? fmt::format("`{}` is defined twice, again at {}:{}",
                                                           shown(std::string_view(key)), again.line, again.column)
                                             : fmt::format("`{}` is defined{} at {}:{}", shown(std::string_view(key)),
                                                           first_place, again.line, again.column);
    return diagnostic;
}

Diagnostic translate(const SourceMap& sources, SourceId source, const toml::parse_error& error) {
    const std::string_view text = sources.text(source);
    std::string description(error.description());
    const auto& where = error.source().begin;
    const std::size_t at =
        sources.offset(source, {static_cast<std::uint32_t>(where.line), static_cast<std::uint32_t>(where.column)});
    if (description.find("cannot redefine existing") != std::string::npos)
        return redefinition(sources, source, description, at);
    if (description.find("not representable in 64 bits") != std::string::npos) {
        const SourceRange word = word_around(text, source, at);
        return make(codes::out_of_range, fmt::format("`{}` does not fit 64 bits", shown(sources.text(word))), word,
                    "outside -2^63 to 2^63 - 1");
    }
    // "Error while parsing key-value pair: expected ..., saw ..." reads better without its first half.
    constexpr std::string_view lead = "Error while parsing ";
    std::string subject = "TOML";
    if (description.starts_with(lead)) {
        const std::size_t colon = description.find(": ", lead.size());
        if (colon != std::string::npos) {
            subject = description.substr(lead.size(), colon - lead.size());
            description = description.substr(colon + 2);
        }
    }
    SourceRange range = code_point_at(text, source, at);
    if (at < text.size() && !is_space(text[at])) range = word_around(text, source, at);
    if (range.begin == range.end) range = code_point_at(text, source, at);
    return make(codes::does_not_parse,
                fmt::format("the {} does not parse: {}", subject, shown(std::string_view(description), 200)), range,
                shown(std::string_view(description), 200));
}

} // namespace

std::optional<Node> read_toml(const SourceMap& sources, SourceId source, plan::OriginKind origin,
                              Diagnostics& diagnostics) {
    const std::string_view text = sources.text(source);
    if (text.size() > max_source_bytes) {
        diagnostics.push_back(make(codes::does_not_parse,
                                   fmt::format("{} is longer than the {} bytes a pipeline may have",
                                               shown(std::string_view(sources.name(source))), max_source_bytes),
                                   {source, 0, 0}, "too long"));
        return std::nullopt;
    }
    if (const std::size_t at = find_invalid_utf8(text); at != std::string_view::npos) {
        diagnostics.push_back(
            make(codes::does_not_parse,
                 fmt::format("expected UTF-8, found the byte 0x{:02X}", static_cast<unsigned char>(text[at])),
                 code_point_at(text, source, at), "not UTF-8"));
        return std::nullopt;
    }
    if (const std::size_t at = ExtentScan(text).run(); at != std::string_view::npos) {
        diagnostics.push_back(make(codes::does_not_parse,
                                   text[at] == '.'
                                       ? fmt::format("a key has more than {} parts", max_key_parts)
                                       : fmt::format("brackets are nested deeper than {}", max_bracket_depth),
                                   code_point_at(text, source, at), "too deep"));
        return std::nullopt;
    }
    try {
        const toml::table table = toml::parse(text);
        return Converter(sources, source, origin).convert(table);
    } catch (const toml::parse_error& error) {
        diagnostics.push_back(translate(sources, source, error));
    }
    return std::nullopt;
}

} // namespace dsv4::dsl
