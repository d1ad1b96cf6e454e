// Diagnostics for people, in the layout that rustc made familiar.
#include "dsl/diagnostic.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace dsv4::dsl {
namespace {

constexpr std::size_t tab_columns = 4;

// Columns of a terminal that a code point takes; control characters are drawn as one replacement sign.
std::size_t column_width(char32_t c) noexcept {
    struct Span {
        char32_t first, last;
    };
    static constexpr Span zero[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},
                                    {0x064B, 0x065F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
                                    {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};
    static constexpr Span wide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
                                    {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
                                    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                                    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x2FFFD}, {0x30000, 0x3FFFD}};
    const auto in = [c](const auto& spans) {
        return std::any_of(std::begin(spans), std::end(spans),
                           [c](const Span& s) { return c >= s.first && c <= s.last; });
    };
    return in(zero) ? 0 : in(wide) ? 2 : 1;
}

// A source line as it is shown, and the shown column of each byte offset in it (one more than bytes).
struct ShownLine {
    std::string text;
    std::vector<std::size_t> columns;
};

ShownLine show(std::string_view line) {
    ShownLine out;
    std::size_t column = 0;
    for (std::size_t at = 0; at < line.size();) {
        char32_t c = 0;
        const std::size_t length = decode_utf8(line, at, c);
        const std::size_t taken = std::max<std::size_t>(1, length);
        out.columns.insert(out.columns.end(), taken, column);
        if (c == U'\t' && length == 1) {
            const std::size_t fill = tab_columns - column % tab_columns;
            out.text.append(fill, ' ');
            column += fill;
        } else if (length == 0 || c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) ||
                   (c >= 0x2066 && c <= 0x2069)) {
            out.text += "\xEF\xBF\xBD"; // broken bytes, terminal controls and text-direction controls
            ++column;
        } else {
            out.text += line.substr(at, length);
            column += column_width(c);
        }
        at += taken;
    }
    out.columns.push_back(column);
    return out;
}

struct Mark {
    std::uint32_t line;
    std::size_t begin, end; // shown columns
    bool primary;
    std::string text;
};

class Painter {
  public:
    explicit Painter(bool color) : color_(color) {}
    std::string paint(std::string_view text, const char* code) const {
        return color_ && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
    }
    static const char* severity_code(Severity severity) {
        return severity == Severity::error ? "1;31" : severity == Severity::warning ? "1;33" : "1;36";
    }

  private:
    bool color_;
};

constexpr const char* gutter_code = "1;34";
constexpr const char* bold_code = "1";

// One text's part of a diagnostic: its lines in order, each with the underlines that fall on it.
class Snippet {
  public:
    Snippet(const SourceMap& sources, SourceId source) : sources_(sources), source_(source) {}

    void add(const Label& label, bool primary) {
        const Position begin = sources_.position(source_, label.range.begin);
        const std::uint32_t line_begin = sources_.line_begin(source_, begin.line);
        const ShownLine& shown = line(begin.line);
        const auto column = [&](std::size_t offset) {
            const std::size_t in_line = offset > line_begin ? offset - line_begin : 0;
            return shown.columns[std::min(in_line, shown.columns.size() - 1)];
        };
        Mark mark{begin.line, column(label.range.begin), column(label.range.end), primary, label.text};
        mark.end = std::max(mark.end, mark.begin + 1);
        marks_.push_back(std::move(mark));
    }

    std::size_t gutter() const { return lines_.empty() ? 1 : fmt::formatted_size("{}", lines_.rbegin()->first); }

    void write(std::string& out, std::size_t gutter, const Painter& painter, Severity severity) const {
        const std::string bar = painter.paint(std::string(gutter, ' ') + " |", gutter_code);
        out += bar + "\n";
        std::uint32_t previous = 0;
        for (const auto& [number, shown] : lines_) {
            if (previous != 0 && number > previous + 1) out += painter.paint("...", gutter_code) + "\n";
            previous = number;
            out += painter.paint(fmt::format("{:>{}} |", number, gutter), gutter_code);
            if (!shown.text.empty()) out += " " + shown.text;
            out += "\n";
            for (const Mark& mark : marks_) {
                if (mark.line != number) continue;
                std::string underline(mark.end - mark.begin, mark.primary ? '^' : '-');
                if (!mark.text.empty()) underline += " " + mark.text;
                out += bar + " " + std::string(mark.begin, ' ') +
                       painter.paint(underline, mark.primary ? Painter::severity_code(severity) : gutter_code) + "\n";
            }
        }
    }

  private:
    const ShownLine& line(std::uint32_t number) {
        const auto found = lines_.find(number);
        if (found != lines_.end()) return found->second;
        return lines_.emplace(number, show(sources_.line_text(source_, number))).first->second;
    }

    const SourceMap& sources_;
    SourceId source_;
    std::map<std::uint32_t, ShownLine> lines_;
    std::vector<Mark> marks_;
};

std::string place(const SourceMap& sources, const SourceRange& range) {
    const Position position = sources.position(range.source, range.begin);
    return fmt::format("{}:{}:{}", sources.name(range.source), position.line, position.column);
}

} // namespace

std::string render_human(const Diagnostic& diagnostic, const SourceMap& sources, HumanStyle style) {
    const Painter painter(style.color);
    const Severity severity = diagnostic.severity();
    std::string out = painter.paint(fmt::format("{}[{}]", to_string(severity), to_string(diagnostic.code)),
                                    Painter::severity_code(severity)) +
                      painter.paint(": " + diagnostic.message, bold_code) + "\n";

    struct Part {
        SourceRange first;
        Snippet snippet;
    };
    std::vector<Part> parts;
    const auto add = [&](const Label& label, bool primary) {
        if (!label.range.valid()) return;
        auto part = std::find_if(parts.begin(), parts.end(),
                                 [&](const Part& p) { return p.first.source == label.range.source; });
        if (part != parts.end()) return part->snippet.add(label, primary);
        parts.push_back(Part{label.range, Snippet(sources, label.range.source)});
        parts.back().snippet.add(label, primary);
    };
    add(diagnostic.primary, true);
    for (const Label& label : diagnostic.secondary) add(label, false);

    std::size_t gutter = 1;
    for (const Part& part : parts) gutter = std::max(gutter, part.snippet.gutter());
    const std::string margin(gutter, ' ');
    for (std::size_t i = 0; i < parts.size(); ++i) {
        out += painter.paint(margin + (i == 0 ? "--> " : "::: "), gutter_code) + place(sources, parts[i].first) + "\n";
        parts[i].snippet.write(out, gutter, painter, severity);
    }

    std::string trailer;
    const auto line = [&](std::string_view kind, const std::string& text) {
        trailer += painter.paint(margin + " = ", gutter_code) + painter.paint(fmt::format("{}:", kind), bold_code) +
                   " " + text + "\n";
    };
    for (const std::string& note : diagnostic.notes) line("note", note);
    for (const std::string& help : diagnostic.helps) line("help", help);
    for (const Fix& fix : diagnostic.fixes) line("fix", fix.title);
    for (const std::string& evidence : diagnostic.evidence) line("see", evidence);
    if (!trailer.empty() && !parts.empty()) out += painter.paint(margin + " |", gutter_code) + "\n";
    return out + trailer;
}

std::string render_human(const Diagnostics& diagnostics, const SourceMap& sources, HumanStyle style) {
    if (diagnostics.empty()) return {};
    std::string out;
    std::size_t counts[3] = {};
    for (const Diagnostic& diagnostic : diagnostics) {
        out += render_human(diagnostic, sources, style) + "\n";
        ++counts[static_cast<int>(diagnostic.severity())];
    }
    static constexpr const char* names[] = {"error", "warning", "note"};
    std::string summary;
    for (int i = 0; i < 3; ++i)
        if (counts[i] != 0)
            summary +=
                fmt::format("{}{} {}{}", summary.empty() ? "" : ", ", counts[i], names[i], counts[i] == 1 ? "" : "s");
    return out + summary + "\n";
}

} // namespace dsv4::dsl
