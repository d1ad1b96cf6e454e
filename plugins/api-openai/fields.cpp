// Typed access to the members of a body; single values are parsed from their slices.
#include "fields.hpp"

#include "api_error.hpp"
#include "json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace dsv4::openai {
namespace {

using Json = nlohmann::json;

Json parsed(std::string_view value) { return Json::parse(value.begin(), value.end(), nullptr, false); }

// Whole numbers up to 2^53 are exact in a double, so "5.0" and "1e3" are taken too.
std::optional<std::int64_t> whole(const Json& json) {
    if (json.is_number_unsigned()) {
        const auto value = json.get<std::uint64_t>();
        if (value > std::uint64_t(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
        return std::int64_t(value);
    }
    if (json.is_number_integer()) return json.get<std::int64_t>();
    if (!json.is_number_float()) return std::nullopt;
    const double value = json.get<double>();
    if (std::floor(value) != value || std::abs(value) > 9007199254740992.0) return std::nullopt;
    return std::int64_t(value);
}

std::string spelled(double value) {
    std::string out;
    append_number(out, value);
    return out;
}

std::string element(const std::string& path, std::size_t i) { return path + "[" + std::to_string(i) + "]"; }

} // namespace

Fields::Fields(std::string_view object, std::string path, std::string_view what)
    : path_(std::move(path)), members_(object_members(object, what)) {}

std::string_view Fields::raw(std::string_view name) const {
    const auto it = members_.find(std::string(name));
    return it == members_.end() || it->second == "null" ? std::string_view{} : it->second;
}

std::optional<bool> Fields::flag(std::string_view name) const {
    const std::string_view value = raw(name);
    if (value.empty()) return std::nullopt;
    if (value != "true" && value != "false") refuse(path(name), "must be true or false");
    return value == "true";
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t min) const {
    return integer(name, min, std::numeric_limits<std::int64_t>::max());
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t min, std::int64_t max) const {
    const std::string_view value = raw(name);
    if (value.empty()) return std::nullopt;
    const auto number = whole(parsed(value));
    if (!number) refuse(path(name), "must be a whole number");
    if (*number < min) refuse(path(name), "must be at least " + std::to_string(min));
    if (*number > max) refuse(path(name), "must be at most " + std::to_string(max));
    return number;
}

std::optional<double> Fields::number(std::string_view name) const {
    const std::string_view value = raw(name);
    if (value.empty()) return std::nullopt;
    const Json json = parsed(value);
    if (!json.is_number()) refuse(path(name), "must be a number");
    return json.get<double>();
}

std::optional<double> Fields::number(std::string_view name, double min, double max) const {
    const auto value = number(name);
    if (value && !(*value >= min && *value <= max))
        refuse(path(name), "must be between " + spelled(min) + " and " + spelled(max));
    return value;
}

std::optional<std::string> Fields::text(std::string_view name) const {
    const std::string_view value = raw(name);
    if (value.empty()) return std::nullopt;
    return read_text(value, path(name));
}

std::optional<std::vector<std::int32_t>> Fields::token_ids(std::string_view name, std::uint32_t vocab_size) const {
    const std::string_view value = raw(name);
    if (value.empty()) return std::nullopt;
    if (value.front() != '[') refuse(path(name), "must be an array of token ids");
    std::vector<std::int32_t> ids;
    for (const std::string_view item : array_elements(value))
        ids.push_back(read_token_id(item, element(path(name), ids.size()), vocab_size));
    return ids;
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view name, std::size_t max_count) const {
    const std::string_view value = raw(name);
    if (value.empty()) return std::nullopt;
    if (value.front() != '[') refuse(path(name), "must be an array of strings");
    const auto elements = array_elements(value);
    if (elements.size() > max_count) refuse(path(name), "may hold at most " + std::to_string(max_count) + " strings");
    std::vector<std::string> texts;
    for (const std::string_view item : elements) texts.push_back(read_text(item, element(path(name), texts.size())));
    return texts;
}

std::optional<Fields> Fields::object(std::string_view name) const {
    const std::string_view value = raw(name);
    if (value.empty()) return std::nullopt;
    if (value.front() != '{') refuse(path(name), "must be an object");
    return Fields(value, path(name) + '.', path(name));
}

std::vector<std::string> Fields::others(std::span<const std::string_view> known) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : members_)
        if (!std::binary_search(known.begin(), known.end(), name)) names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
}

std::string read_text(std::string_view value, std::string_view path) {
    Json json = parsed(value);
    if (!json.is_string()) refuse(path, "must be a string");
    return std::move(json.get_ref<std::string&>());
}

std::int32_t read_token_id(std::string_view value, std::string_view path, std::uint32_t vocab_size) {
    const auto id = whole(parsed(value));
    if (!id) refuse(path, "must be a token id");
    const std::int64_t end = vocab_size ? std::int64_t(vocab_size) : std::int64_t{1} << 31;
    if (*id < 0 || *id >= end) refuse(path, "must be a token id from 0 to " + std::to_string(end - 1));
    return std::int32_t(*id);
}

} // namespace dsv4::openai
