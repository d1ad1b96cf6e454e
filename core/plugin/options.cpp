// Checks the options of a plugin against its manifest.
#include "core/plugin/options.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace dsv4::plugin {
namespace {

std::optional<OptionValue> convert(const OptionSpec& spec, const plan::Option& option) {
    const auto& v = option.value;
    switch (spec.type) {
    case OptionType::string:
        // A list of texts is one a line, for options that take several.
        if (auto* list = std::get_if<plan::OptionList>(&v)) {
            std::string lines;
            for (const auto& item : *list) {
                auto* s = std::get_if<std::string>(&item.value);
                if (!s || s->find('\n') != std::string::npos) return std::nullopt;
                lines += (lines.empty() ? "" : "\n") + *s;
            }
            return lines;
        }
        [[fallthrough]];
    case OptionType::enumeration:
        if (auto* s = std::get_if<std::string>(&v)) return *s;
        break;
    case OptionType::integer:
        if (auto* n = std::get_if<std::int64_t>(&v)) return *n;
        break;
    case OptionType::size:
        if (auto* n = std::get_if<std::int64_t>(&v); n && *n >= 0) return *n;
        if (auto* s = std::get_if<std::string>(&v))
            if (auto n = parse_size(*s)) return *n;
        break;
    case OptionType::real:
        if (auto* n = std::get_if<std::int64_t>(&v)) return double(*n);
        if (auto* n = std::get_if<double>(&v); n && std::isfinite(*n)) return *n;
        break;
    case OptionType::boolean:
        if (auto* b = std::get_if<bool>(&v)) return *b;
        break;
    }
    return std::nullopt;
}

std::string check_range(const OptionSpec& spec, const OptionValue& value) {
    if (spec.type == OptionType::enumeration &&
        std::find(spec.values.begin(), spec.values.end(), std::get<std::string>(value)) == spec.values.end())
        return fmt::format("option \"{}\" is {}; it must be one of {}", spec.name, print(value),
                           fmt::join(spec.values, ", "));
    if (spec.min && value < *spec.min)
        return fmt::format("option \"{}\" is {}; it must be at least {}", spec.name, print(value), print(*spec.min));
    if (spec.max && value > *spec.max)
        return fmt::format("option \"{}\" is {}; it must be at most {}", spec.name, print(value), print(*spec.max));
    return {};
}

} // namespace

std::string print(const OptionValue& value) {
    struct Printer {
        std::string operator()(bool b) const { return b ? "true" : "false"; }
        std::string operator()(std::int64_t n) const { return std::to_string(n); }
        std::string operator()(double n) const { return nlohmann::json(n).dump(); }
        std::string operator()(const std::string& s) const {
            return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        }
    };
    return std::visit(Printer{}, value);
}

Result<host::OptionValues> resolve_options(const Manifest& manifest, const plan::Options& given) {
    std::vector<std::string> problems;
    host::OptionValues values;
    for (const auto& [name, option] : given) {
        const auto* spec = manifest.option(name);
        if (!spec) {
            problems.push_back(fmt::format("option \"{}\" does not exist", name));
            continue;
        }
        const auto value = convert(*spec, option);
        if (!value) {
            problems.push_back(fmt::format("option \"{}\" must be a value of type {}", name, to_string(spec->type)));
            continue;
        }
        if (auto problem = check_range(*spec, *value); !problem.empty()) problems.push_back(std::move(problem));
        values.emplace(name, *value);
    }
    for (const auto& spec : manifest.options) {
        if (given.count(spec.name)) continue;
        if (spec.default_value)
            values.emplace(spec.name, *spec.default_value);
        else
            problems.push_back(fmt::format("option \"{}\" has no default and must be set", spec.name));
    }
    if (problems.empty()) return values;
    return Error{
        Code::invalid, fmt::format("the options of plugin {} are wrong: {}", manifest.name, fmt::join(problems, "; ")),
        fmt::format("correct [plugins.options.{0}]; `dsv4 plugins inspect {0}` lists the options", manifest.name)};
}

} // namespace dsv4::plugin
