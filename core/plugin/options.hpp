// A plugin's options: what the pipeline says, held against the manifest, completed with its defaults.
#pragma once

#include "core/host/option_values.hpp"
#include "core/plan/serving_plan.hpp"
#include "core/plugin/manifest.hpp"

namespace dsv4::plugin {

// Every declared option with a value. Integers are accepted for floats; sizes are integers or texts such as "20 GiB".
// Errors: invalid, listing every unknown name, wrong type, value out of range and option without a value at once.
Result<host::OptionValues> resolve_options(const Manifest& manifest, const plan::Options& given);

// One value as the manifest would write it: 3, 0.5, true, "text".
std::string print(const OptionValue& value);

} // namespace dsv4::plugin
