// The TOML front end: a text to a document tree.
#pragma once

#include "dsl/diagnostic.hpp"
#include "dsl/document.hpp"

#include <optional>

namespace dsv4::dsl {

// Larger pipelines, and brackets or keys nested deeper, are refused before they are parsed.
inline constexpr std::size_t max_source_bytes = 1 << 20;
inline constexpr std::size_t max_bracket_depth = 32;
inline constexpr std::size_t max_key_parts = 16;

// Reads the text as TOML 1.0. Reports DSV4-E0101, E0103 and E0107 (integers beyond 64 bits); TOML stops at its first
// mistake, so there is at most one diagnostic, and no tree then.
std::optional<Node> read_toml(const SourceMap& sources, SourceId source, plan::OriginKind origin,
                              Diagnostics& diagnostics);

} // namespace dsv4::dsl
