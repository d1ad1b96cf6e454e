// Diagnostics for programs: JSON lines.
#include "dsl/diagnostic.hpp"

#include <nlohmann/json.hpp>

namespace dsv4::dsl {
namespace {

using Json = nlohmann::ordered_json;

Json point_json(const SourceMap& sources, SourceId source, std::uint32_t offset) {
    const Position position = sources.position(source, offset);
    return {{"offset", offset}, {"line", position.line}, {"column", position.column}};
}

Json range_json(const SourceMap& sources, const SourceRange& range) {
    Json out = Json::object();
    if (!range.valid()) return out;
    out["file"] = sources.name(range.source);
    out["begin"] = point_json(sources, range.source, range.begin);
    out["end"] = point_json(sources, range.source, range.end);
    return out;
}

Json label_json(const SourceMap& sources, const Label& label) {
    Json out = range_json(sources, label.range);
    out["label"] = label.text;
    return out;
}

} // namespace

std::string render_json(const Diagnostic& diagnostic, const SourceMap& sources) {
    Json out = Json::object();
    out["code"] = to_string(diagnostic.code);
    out["severity"] = to_string(diagnostic.severity());
    out["message"] = diagnostic.message;
    out["primary"] = label_json(sources, diagnostic.primary);
    out["secondary"] = Json::array();
    for (const Label& label : diagnostic.secondary) out["secondary"].push_back(label_json(sources, label));
    out["notes"] = diagnostic.notes;
    out["helps"] = diagnostic.helps;
    out["fixes"] = Json::array();
    for (const Fix& fix : diagnostic.fixes) {
        Json edits = Json::array();
        for (const Edit& edit : fix.edits) {
            Json item = range_json(sources, edit.range);
            item["replacement"] = edit.replacement;
            edits.push_back(std::move(item));
        }
        out["fixes"].push_back(
            {{"title", fix.title}, {"applicability", to_string(fix.applicability)}, {"edits", std::move(edits)}});
    }
    out["evidence"] = diagnostic.evidence;
    return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string render_json(const Diagnostics& diagnostics, const SourceMap& sources) {
    std::string out;
    for (const Diagnostic& diagnostic : diagnostics) out += render_json(diagnostic, sources);
    return out;
}

} // namespace dsv4::dsl
