// Lays out the canonical JSON of a plan as a table, so that the two never differ in content.
#include "dsl/plan_table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <vector>

namespace dsv4::dsl {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
    std::string section, key, value, origin;
};

std::string value_text(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string origin_text(const plan::ServingPlan& plan, const std::string& path) {
    auto found = plan.origins.find(path);
    // Server options are keys of [api] in a file and options of the plugin in a plan.
    if (found == plan.origins.end() && path.starts_with("api.options."))
        found = plan.origins.find("api." + path.substr(std::string_view("api.options.").size()));
    if (found == plan.origins.end()) return {};
    const plan::Origin& origin = found->second;
    if (origin.kind == plan::OriginKind::default_) return "default";
    return fmt::format("{}:{}:{}", origin.file, origin.line, origin.column);
}

void collect(const plan::ServingPlan& plan, const std::string& section, const std::string& prefix, const Json& object,
             std::vector<Row>& rows) {
    for (const auto& [key, value] : object.items()) {
        const std::string name = prefix + key;
        if (value.is_object())
            collect(plan, section, name + ".", value, rows);
        else
            rows.push_back({section, name, value_text(value), origin_text(plan, section + "." + name)});
    }
}

} // namespace

std::string render_plan(const plan::ServingPlan& plan, PlanTableStyle style) {
    std::vector<Row> rows;
    const Json json = Json::parse(plan::to_json(plan));
    for (const auto& [key, value] : json.items()) {
        if (value.is_object()) {
            collect(plan, key, {}, value, rows);
        } else if (value.is_array()) {
            for (const Json& item : value) rows.push_back({key, "that", value_text(item.at("that")), {}});
        } else {
            rows.push_back({{}, key, value_text(value), origin_text(plan, key)});
        }
    }
    std::size_t key_width = 0, value_width = 0;
    for (const Row& row : rows) {
        key_width = std::max(key_width, row.key.size());
        if (!row.origin.empty()) value_width = std::max(value_width, row.value.size());
    }
    std::string out, section;
    for (const Row& row : rows) {
        if (row.section != section) {
            section = row.section;
            out += style.color ? fmt::format("\n\x1b[1m{}\x1b[0m\n", section) : fmt::format("\n{}\n", section);
        }
        out += fmt::format("{}{:<{}}  ", section.empty() ? "" : "  ", row.key, key_width + (section.empty() ? 2 : 0));
        out += style.origins && !row.origin.empty() ? fmt::format("{:<{}}  {}", row.value, value_width, row.origin)
                                                    : row.value;
        out += "\n";
    }
    return out;
}

} // namespace dsv4::dsl
