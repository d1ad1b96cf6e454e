// The options of one plugin instance as the host hands them over: checked, complete, by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace dsv4::host {

using OptionValue = std::variant<bool, std::int64_t, double, std::string>;
using OptionValues = std::map<std::string, OptionValue, std::less<>>;

} // namespace dsv4::host
