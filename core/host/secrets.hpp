// Secrets by reference: "env:NAME" or "file:/absolute/path". Their text stands in no pipeline and no log.
#pragma once

#include "dsv4/sdk/result.hpp"

#include <string>
#include <string_view>

namespace dsv4::host {

inline constexpr std::size_t max_secret_bytes = 65536;

// The text, without one newline at its end. A file must be a regular one that others cannot read and neither group nor
// others can change. Errors never contain the text: invalid (another form, relative path), not_found, environment
// (permissions), exhausted (above max_secret_bytes). Wipe the result with wipe.
Result<std::string> resolve_secret(std::string_view reference);

void wipe(char* text, std::size_t bytes) noexcept;

} // namespace dsv4::host
