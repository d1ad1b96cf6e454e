// Codes, names and the order of diagnostics.
#include "dsl/diagnostic.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace dsv4::dsl {

std::string_view to_string(Severity severity) noexcept {
    switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::note: return "note";
    }
    return "error";
}

std::string_view to_string(Applicability applicability) noexcept {
    switch (applicability) {
    case Applicability::machine_applicable: return "machine-applicable";
    case Applicability::maybe_incorrect: return "maybe-incorrect";
    case Applicability::has_placeholders: return "has-placeholders";
    }
    return "maybe-incorrect";
}

std::string to_string(DiagnosticCode code) {
    const char letter = code.severity == Severity::error ? 'E' : code.severity == Severity::warning ? 'W' : 'N';
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "DSV4-%c%04u", letter, static_cast<unsigned>(code.number));
    return buffer;
}

bool parse_diagnostic_code(std::string_view text, DiagnosticCode& code) noexcept {
    if (text.starts_with("DSV4-")) text.remove_prefix(5);
    if (text.size() != 5) return false;
    DiagnosticCode parsed;
    switch (text.front()) {
    case 'E': parsed.severity = Severity::error; break;
    case 'W': parsed.severity = Severity::warning; break;
    case 'N': parsed.severity = Severity::note; break;
    default: return false;
    }
    for (const char c : text.substr(1)) {
        if (c < '0' || c > '9') return false;
        parsed.number = static_cast<std::uint16_t>(parsed.number * 10 + (c - '0'));
    }
    code = parsed;
    return true;
}

bool has_errors(const Diagnostics& diagnostics) noexcept {
    return std::any_of(diagnostics.begin(), diagnostics.end(),
                       [](const Diagnostic& d) { return d.severity() == Severity::error; });
}

void sort_diagnostics(Diagnostics& diagnostics) {
    const auto key = [](const Diagnostic& d) {
        return std::tuple(d.primary.range.source, d.primary.range.begin, d.code.number, d.primary.range.end);
    };
    std::stable_sort(diagnostics.begin(), diagnostics.end(),
                     [&](const Diagnostic& a, const Diagnostic& b) { return key(a) < key(b); });
    const auto repeated = std::unique(diagnostics.begin(), diagnostics.end(), [](const auto& a, const auto& b) {
        return a.code == b.code && a.primary.range == b.primary.range && a.message == b.message;
    });
    diagnostics.erase(repeated, diagnostics.end());
}

} // namespace dsv4::dsl
