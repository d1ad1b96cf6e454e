// The passes in order: read, override, schema, expand, lower.
#include "dsl/compile.hpp"

#include "dsl/expand.hpp"
#include "dsl/lower.hpp"
#include "dsl/overrides.hpp"
#include "dsl/schema.hpp"
#include "dsl/toml_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>

namespace dsv4::dsl {
namespace {

// Drops the warnings and notes that [lint] allow names; errors stay whatever it says.
void drop_allowed(const Node& root, Diagnostics& diagnostics) {
    const Node* allow = find(root, "lint.allow");
    if (allow == nullptr || allow->kind != Node::Kind::list) return;
    for (const Node& item : allow->items) {
        const Member* member = item.poisoned ? nullptr : item.member("code");
        DiagnosticCode code;
        if (member == nullptr || !parse_diagnostic_code(member->value.text, code)) continue;
        std::erase_if(diagnostics,
                      [&](const Diagnostic& d) { return d.code == code && d.severity() != Severity::error; });
    }
}

std::string read_file(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error))
        throw Failure(Code::not_found, fmt::format("there is no file {}", path.string()), "check the path");
    if (std::filesystem::is_directory(path, error))
        throw Failure(Code::environment, fmt::format("{} is a directory, not a pipeline file", path.string()),
                      "name a .toml file in it");
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw Failure(Code::environment, fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)),
                      "check its permissions");
    std::string text(max_source_bytes + 1, '\0'); // one more than allowed, so that the reader sees it is too long
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad()) throw Failure(Code::environment, fmt::format("cannot read {}", path.string()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
}

} // namespace

Compilation compile_text(std::string name, std::string text, const CompileOptions& options) {
    Compilation out;
    const Schema& schema = Schema::pipeline();
    const SourceId pipeline = out.sources.add(name, std::move(text));
    out.deployment = read_toml(out.sources, pipeline, plan::OriginKind::file, out.diagnostics);
    if (out.deployment) {
        Node& root = *out.deployment;
        for (const std::string& override_text : options.overrides) {
            const SourceId source = out.sources.add(fmt::format("--set #{}", out.sources.size()), override_text);
            apply_override(schema, root, out.sources, source, out.diagnostics);
        }
        check_schema(schema, root, out.sources, out.diagnostics);
        if (!root.poisoned) expand(root, out.sources, out.diagnostics);
        if (!has_errors(out.diagnostics)) out.plan = lower(schema, root, out.sources, name);
        drop_allowed(root, out.diagnostics);
    }
    sort_diagnostics(out.diagnostics);
    return out;
}

Result<Compilation> compile_file(const std::filesystem::path& path, const CompileOptions& options) {
    return guard([&] { return compile_text(path.string(), read_file(path), options); });
}

} // namespace dsv4::dsl
