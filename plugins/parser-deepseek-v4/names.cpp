// Names of modes, efforts and variants.
#include "names.hpp"

namespace dsv4::deepseek_v4 {

Result<ThinkingMode> thinking_mode_from_name(std::string_view name) {
    if (name == "chat") return ThinkingMode::chat;
    if (name == "thinking") return ThinkingMode::thinking;
    return Error{Code::invalid, "thinking_mode: unknown mode '" + std::string(name) + "'", "use chat or thinking"};
}

Result<Effort> effort_from_name(std::string_view name) {
    if (name == "low") return Effort::low;
    if (name == "high") return Effort::high;
    if (name == "max") return Effort::max;
    return Error{Code::invalid, "reasoning_effort: unknown effort '" + std::string(name) + "'", "use low, high or max"};
}

Result<Variant> variant_from_name(std::string_view name) {
    if (name == "v4-preview") return Variant::v4_preview;
    if (name == "v4-0731") return Variant::v4_0731;
    return Error{Code::invalid, "encoding: unknown variant '" + std::string(name) + "'", "use v4-0731 or v4-preview"};
}

std::string_view name_of(ThinkingMode mode) { return mode == ThinkingMode::chat ? "chat" : "thinking"; }

std::string_view name_of(Effort effort) {
    switch (effort) {
    case Effort::unset: return {};
    case Effort::low: return "low";
    case Effort::high: return "high";
    case Effort::max: return "max";
    }
    return {};
}

Result<std::optional<Effort>> effort_from_api_name(std::string_view name, const std::string& parameter) {
    using Found = std::optional<Effort>;
    if (name == "none") return Found{};
    if (name == "minimal" || name == "low") return Found{Effort::low};
    if (name == "medium" || name == "high" || name == "xhigh") return Found{Effort::high};
    if (name == "max" || name == "ultra") return Found{Effort::max};
    return Error{Code::invalid, parameter + ": unknown effort '" + std::string(name) + "'",
                 "use none, minimal, low, medium, high, xhigh, max or ultra"};
}

} // namespace dsv4::deepseek_v4
