// `--set path=value`: one setting from the command line, typed by the schema, laid over the document.
#pragma once

#include "dsl/schema.hpp"

namespace dsv4::dsl {

// Reads the text `source` ("kv.block_size=128") and lays it over the document. The value is TOML, or a bare string
// where the schema wants one or where it is no TOML. Reports DSV4-E0101 and, for two overrides of one path, E0103.
void apply_override(const Schema& schema, Node& root, const SourceMap& sources, SourceId source,
                    Diagnostics& diagnostics);

} // namespace dsv4::dsl
