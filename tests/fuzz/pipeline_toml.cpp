// Fuzzes the compiler with pipeline texts; bytes after a 0x00, up to the next, are an override. Whatever comes in, the
// diagnostics render, and a plan exists exactly where there is no error.
// clang++-19 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. -Isdk/include \
//     -DTOML_HEADER_ONLY=0 -DTOML_SHARED_LIB=1 tests/fuzz/pipeline_toml.cpp \
//     dsl/*.cpp core/plan/*.cpp -ltomlplusplus -lfmt
#include "dsl/compile.hpp"
#include "dsl/plan_table.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace dsv4;
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    const auto next = [&] {
        const std::size_t end = rest.find('\0');
        const std::string piece(rest.substr(0, end));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        return piece;
    };
    std::string text = next();
    dsl::CompileOptions options;
    while (!rest.empty() && options.overrides.size() < 4) options.overrides.push_back(next());

    const dsl::Compilation result = dsl::compile_text("fuzz/x.toml", std::move(text), options);
    if (result.plan.has_value() == dsl::has_errors(result.diagnostics)) std::abort();
    for (const dsl::Diagnostic& diagnostic : result.diagnostics) {
        const dsl::SourceRange& range = diagnostic.primary.range;
        if (!range.valid() || range.begin > range.end || range.end > result.sources.text(range.source).size())
            std::abort();
        // Terminal controls never pass.
        if (dsl::render_human(diagnostic, result.sources).find('\x1B') != std::string::npos) std::abort();
        if (dsl::render_json(diagnostic, result.sources).back() != '\n') std::abort();
    }
    if (result.plan && dsl::render_plan(*result.plan, {.origins = true}).empty()) std::abort();
    return 0;
}
