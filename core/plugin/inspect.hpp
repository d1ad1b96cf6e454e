// What `dsv4 plugins` prints: tables of plugins, everything about one of them, and the report of a check.
#pragma once

#include "core/plugin/check.hpp"
#include "core/plugin/registry.hpp"

#include <string>

namespace dsv4::plugin {

// All end with a newline. The JSON forms have two spaces of indent and keys in a fixed order.
std::string list_text(const std::vector<Found>& found, const SearchPath& search);
std::string list_json(const std::vector<Found>& found, const SearchPath& search);
std::string inspect_text(const Candidate& candidate);
std::string inspect_json(const Candidate& candidate);
std::string check_text(const CheckReport& report);
std::string check_json(const CheckReport& report);

} // namespace dsv4::plugin
