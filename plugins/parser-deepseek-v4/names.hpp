// Modes, efforts and variants by name.
#pragma once

#include "conversation.hpp"
#include "dsv4/sdk/result.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace dsv4::deepseek_v4 {

// The encoder's own names: "chat", "thinking"; "low", "high", "max"; "v4-preview", "v4-0731". Code::invalid otherwise.
Result<ThinkingMode> thinking_mode_from_name(std::string_view name);
Result<Effort> effort_from_name(std::string_view name);
Result<Variant> variant_from_name(std::string_view name);
std::string_view name_of(ThinkingMode mode);
std::string_view name_of(Effort effort); // empty for unset

// An effort by its API name: minimal, low -> low; medium, high, xhigh -> high; max, ultra -> max. nullopt for "none",
// which turns thinking off. `parameter` names the field in the error.
Result<std::optional<Effort>> effort_from_api_name(std::string_view name, const std::string& parameter);

} // namespace dsv4::deepseek_v4
