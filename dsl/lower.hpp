// From a checked and expanded document to the serving plan.
#pragma once

#include "dsl/document.hpp"
#include "dsl/schema.hpp"

namespace dsv4::dsl {

// `root` passed the schema without an error. Relative paths of the file are taken from the directory of `source_name`,
// those of overrides from the working directory.
plan::ServingPlan lower(const Schema& schema, const Node& root, const SourceMap& sources,
                        const std::string& source_name);

} // namespace dsv4::dsl
