// The rules for argument values: string flag, strictness, duplicates, and the repair of doubly wrapped arguments.
#include "call_arguments.hpp"

#include "markup.hpp"

#include <algorithm>
#include <utility>

namespace dsv4::deepseek_v4 {

std::string_view trim(std::string_view text) noexcept {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

ToolSchemas::ToolSchemas(const std::vector<JsonValue>& functions) {
    for (const JsonValue& json : functions) {
        const JsonValue* name = json.find("name");
        if (!name || !name->is_string()) continue;
        const auto [place, fresh] = functions_.try_emplace(name->text());
        if (!fresh) continue;
        const JsonValue* parameters = json.find("parameters");
        const JsonValue* properties = parameters ? parameters->find("properties") : nullptr;
        if (!properties) continue;
        for (const auto& [key, schema] : properties->members()) {
            const JsonValue* type = schema.find("type");
            place->second.properties[key] = type && type->is_string() && type->text() == "string";
        }
    }
}

const ToolSchemas::Function* ToolSchemas::find(std::string_view name) const {
    const auto found = functions_.find(std::string(name));
    return found == functions_.end() || found->second.properties.empty() ? nullptr : &found->second;
}

bool CallArguments::begin_parameter(std::string key, StringFlag flag, std::string& out) {
    const bool first = keys_.empty();
    if (wrapper_) flush_wrapper(out); // a second parameter: the first was an ordinary one
    key_bytes_ += key.size() + 64;    // 64: what an entry of the set costs besides its text
    duplicate_ = !keys_.insert(key).second;
    if (flag == StringFlag::unsaid || duplicate_) *malformed_ = true;
    maybe_wrapper_ = first && function_ && !function_->properties.contains(key) &&
                     std::find(markup::argument_wrappers.begin(), markup::argument_wrappers.end(), key) !=
                         markup::argument_wrappers.end();
    current_ = {std::move(key), flag, {}};
    streaming_ = flag == StringFlag::yes && !duplicate_ && !maybe_wrapper_;
    if (streaming_) {
        append_key(current_.key, out);
        out += '"';
    }
    return streaming_;
}

void CallArguments::finish_parameter(std::string value, std::string& out) {
    if (streaming_) {
        out += '"';
    } else if (!duplicate_) {
        current_.value = std::move(value);
        if (maybe_wrapper_)
            wrapper_ = std::move(current_);
        else
            append_member(current_, out);
    }
    streaming_ = duplicate_ = maybe_wrapper_ = false;
}

void CallArguments::close(std::string& out) {
    if (wrapper_ && unwraps(*wrapper_)) {
        *malformed_ = true;
        out += trim(wrapper_->value);
        return;
    }
    if (wrapper_) flush_wrapper(out);
    out += started_ ? "}" : "{}";
}

void CallArguments::append_key(std::string_view key, std::string& out) {
    out += started_ ? ", " : "{";
    started_ = true;
    append_quoted(out, key);
    out += ": ";
}

void CallArguments::append_member(const Parameter& parameter, std::string& out) {
    append_key(parameter.key, out);
    const std::string_view trimmed = trim(parameter.value);
    bool as_json = parameter.flag != StringFlag::yes && is_strict_json(trimmed);
    if (parameter.flag == StringFlag::no && !as_json) *malformed_ = true;
    if (parameter.flag == StringFlag::unsaid && function_) {
        const auto property = function_->properties.find(parameter.key);
        if (property != function_->properties.end() && property->second) as_json = false;
    }
    if (as_json)
        out += trimmed;
    else
        append_quoted(out, parameter.value);
}

void CallArguments::flush_wrapper(std::string& out) {
    append_member(*wrapper_, out);
    wrapper_.reset();
}

bool CallArguments::unwraps(const Parameter& parameter) const {
    const Result<JsonValue> value = parse_json(trim(parameter.value), "the value");
    return value.ok() && value->is_object() &&
           std::all_of(value->members().begin(), value->members().end(),
                       [&](const JsonValue::Member& m) { return function_->properties.contains(m.first); });
}

} // namespace dsv4::deepseek_v4
