// The compiler's front door: a pipeline file to a serving plan and everything there is to say about it.
#pragma once

#include "core/plan/serving_plan.hpp"
#include "dsl/diagnostic.hpp"
#include "dsl/document.hpp"
#include "dsl/source_map.hpp"

#include <dsv4/sdk/result.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dsv4::dsl {

struct CompileOptions {
    std::vector<std::string> overrides; // each "path=value", as --set takes them
};

struct Compilation {
    SourceMap sources;                     // source 0 is the pipeline, then each override
    Diagnostics diagnostics;               // sorted; warnings that the file allows are left out
    std::optional<Node> deployment;        // checked and expanded; absent where the text does not parse
    std::optional<plan::ServingPlan> plan; // present exactly where there is no error
};

// Compiles a text; `name` is what diagnostics call it, and relative paths in it are taken from its directory. Reads no
// file.
Compilation compile_text(std::string name, std::string text, const CompileOptions& options = {});

// Fails only where the file cannot be read (Code::not_found, Code::environment); what is wrong in it is in the
// diagnostics.
Result<Compilation> compile_file(const std::filesystem::path& path, const CompileOptions& options = {});

} // namespace dsv4::dsl
