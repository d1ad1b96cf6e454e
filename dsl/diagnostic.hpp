// Diagnostics as values: what is wrong, where, why and how to fix it; rendered for people or for programs.
#pragma once

#include "dsl/source_map.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::dsl {

enum class Severity { error, warning, note };
std::string_view to_string(Severity severity) noexcept;

// A code of the diagnostic catalogue. The number alone is unique, the letter says the severity: DSV4-E0303.
struct DiagnosticCode {
    Severity severity = Severity::error;
    std::uint16_t number = 0;
    bool operator==(const DiagnosticCode&) const = default;
};
// "DSV4-E0303"
std::string to_string(DiagnosticCode code);
// Accepts "DSV4-E0303" and "E0303"; false where the text is neither.
bool parse_diagnostic_code(std::string_view text, DiagnosticCode& code) noexcept;

// The codes that parsing and the schema raise.
namespace codes {
inline constexpr DiagnosticCode does_not_parse{Severity::error, 101};
inline constexpr DiagnosticCode unknown_key{Severity::error, 102};
inline constexpr DiagnosticCode duplicate_key{Severity::error, 103};
inline constexpr DiagnosticCode wrong_type{Severity::error, 104};
inline constexpr DiagnosticCode not_in_enumeration{Severity::error, 105};
inline constexpr DiagnosticCode required_missing{Severity::error, 106};
inline constexpr DiagnosticCode out_of_range{Severity::error, 107};
inline constexpr DiagnosticCode unknown_unit{Severity::error, 108};
inline constexpr DiagnosticCode bytes_without_unit{Severity::warning, 109};
inline constexpr DiagnosticCode shadowed_setting{Severity::warning, 112};
inline constexpr DiagnosticCode schema_version{Severity::error, 114};
inline constexpr DiagnosticCode foreign_spelling{Severity::warning, 116};
} // namespace codes

struct Label {
    SourceRange range;
    std::string text; // beside the underline; may be empty
};

enum class Applicability {
    machine_applicable, // certainly what was meant
    maybe_incorrect,    // a good guess
    has_placeholders,   // the writer must fill something in
};
std::string_view to_string(Applicability applicability) noexcept;

struct Edit {
    SourceRange range; // empty: an insertion
    std::string replacement;
};

struct Fix {
    std::string title; // one phrase: "write `block_size`"
    std::vector<Edit> edits;
    Applicability applicability = Applicability::maybe_incorrect;
};

struct Diagnostic {
    DiagnosticCode code;
    std::string message; // one sentence that stands alone
    Label primary;
    std::vector<Label> secondary;
    std::vector<std::string> notes;
    std::vector<std::string> helps;
    std::vector<Fix> fixes;
    std::vector<std::string> evidence; // links or short references
    Severity severity() const noexcept { return code.severity; }
};

using Diagnostics = std::vector<Diagnostic>;

bool has_errors(const Diagnostics& diagnostics) noexcept;
// Orders by text, offset and code, and drops repetitions of one code at one range.
void sort_diagnostics(Diagnostics& diagnostics);

struct HumanStyle {
    bool color = false;
};
// Numbered source lines with carets under them; tabs are shown as four columns, wide characters take two. Control
// characters of the source are never written out. Ends with a newline.
std::string render_human(const Diagnostic& diagnostic, const SourceMap& sources, HumanStyle style = {});
// All of them, a blank line between two, and a closing line that counts errors and warnings; empty for none.
std::string render_human(const Diagnostics& diagnostics, const SourceMap& sources, HumanStyle style = {});
// One JSON object on one line: code, severity, message, primary, secondary, notes, helps, fixes, evidence. A place has
// `file` and, for `begin` and `end`, `offset` (bytes from 0), `line` and `column` (from 1, code points).
std::string render_json(const Diagnostic& diagnostic, const SourceMap& sources);
// JSON lines.
std::string render_json(const Diagnostics& diagnostics, const SourceMap& sources);

} // namespace dsv4::dsl
