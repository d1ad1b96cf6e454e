// Resolves thinking mode and effort, attaches tools, and settles how the last turn is opened.
#include "request.hpp"

#include "message_reader.hpp"
#include "names.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace dsv4::deepseek_v4 {
namespace {

[[noreturn]] void reject(const std::string& parameter, const std::string& problem, std::string fix = {}) {
    throw Failure(Code::invalid, parameter + ": " + problem, std::move(fix));
}

struct Reasoning {
    bool thinking = true;
    Effort effort = Effort::unset; // unset in chat mode
};

// A boolean switch in chat_template_kwargs, if it is there.
std::optional<bool> switch_in(const JsonValue& kwargs, std::string_view key) {
    const JsonValue* value = kwargs.find_set(key);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) reject("chat_template_kwargs." + std::string(key), "must be true or false");
    return value->truth();
}

std::optional<bool> thinking_switch(const JsonValue& thinking) {
    if (thinking.is_null()) return std::nullopt;
    const JsonValue* type = thinking.find("type");
    if (!type || !type->is_string()) reject("thinking", "must be an object with a string `type`");
    if (type->text() == "disabled") return false;
    if (type->text() == "enabled" || type->text() == "adaptive" || type->text() == "auto") return true;
    reject("thinking.type", "unknown value '" + type->text() + "'", "use enabled or disabled");
}

Reasoning resolve_reasoning(const ChatFields& fields, const RequestPolicy& policy) {
    const JsonValue& kwargs = fields.template_kwargs;
    if (!kwargs.is_null() && !kwargs.is_object()) reject("chat_template_kwargs", "must be an object");

    std::optional<Effort> effort;
    bool off = false;
    bool on = false;
    const auto take_effort = [&](std::string_view name, const std::string& parameter) {
        effort = effort_from_api_name(name, parameter).value();
        (effort ? on : off) = true;
    };
    if (const JsonValue* named = kwargs.find_set("reasoning_effort")) {
        const std::string parameter = "chat_template_kwargs.reasoning_effort";
        if (!named->is_string()) reject(parameter, "must be a string");
        take_effort(named->text(), parameter);
    } else if (fields.effort) {
        take_effort(*fields.effort, "reasoning_effort");
    }
    for (const std::optional<bool> state :
         {fields.thinking, switch_in(kwargs, "thinking"), switch_in(kwargs, "enable_thinking")})
        if (state) (*state ? on : off) = true;

    Reasoning out;
    out.thinking = !off && (on || policy.thinking);
    if (out.thinking) {
        out.effort = effort.value_or(policy.effort);
        // The preview encoder writes nothing for its lowest effort and has no name for it.
        if (policy.variant == Variant::v4_preview && out.effort == Effort::low) out.effort = Effort::unset;
    }
    return out;
}

void resolve_tool_choice(const JsonValue& json, NormalisedRequest& out) {
    if (json.is_null()) return;
    if (json.is_string()) {
        if (json.text() == "auto") return;
        if (json.text() == "none") {
            out.tool_choice = ToolChoice::none;
            return;
        }
        if (json.text() == "required") {
            out.tool_choice = ToolChoice::required;
            return;
        }
    } else if (const JsonValue* function = json.find("function")) {
        if (const JsonValue* name = function->find("name"); name && name->is_string()) {
            out.tool_choice = ToolChoice::named;
            out.tool_choice_name = name->text();
            return;
        }
    }
    reject("tool_choice", "must be \"auto\", \"none\", \"required\" or an object that names a function");
}

// The leading system message, made if there is none.
Message& leading_system(std::vector<Message>& messages) {
    if (messages.front().role != Role::system) {
        Message system;
        system.role = Role::system;
        system.role_name = "system";
        messages.insert(messages.begin(), std::move(system));
    }
    return messages.front();
}

void attach_tools(const ChatFields& fields, NormalisedRequest& out) {
    resolve_tool_choice(fields.tool_choice, out);
    std::vector<JsonValue> functions = read_tools(fields.tools, "tools");
    if (out.tool_choice == ToolChoice::none) {
        for (Message& message : out.messages) message.tools.clear();
    } else if (!functions.empty()) {
        leading_system(out.messages).tools = std::move(functions);
    }
    for (const Message& message : out.messages)
        out.functions.insert(out.functions.end(), message.tools.begin(), message.tools.end());
    out.tools_enabled = !out.functions.empty();

    if (out.tool_choice == ToolChoice::required && !out.tools_enabled)
        reject("tool_choice", "\"required\" needs at least one tool");
    if (out.tool_choice == ToolChoice::named &&
        std::none_of(out.functions.begin(), out.functions.end(),
                     [&](const JsonValue& f) { return f.find("name")->text() == out.tool_choice_name; }))
        reject("tool_choice", "names the function '" + out.tool_choice_name + "', which is not among the tools");
}

void attach_response_format(const JsonValue& json, const RequestPolicy& policy, NormalisedRequest& out) {
    if (json.is_null()) return;
    const JsonValue* type = json.find("type");
    if (!type || !type->is_string()) reject("response_format", "must be an object with a string `type`");
    if (type->text() == "text") return;
    JsonValue schema;
    if (type->text() == "json_schema") {
        const JsonValue* named = json.find("json_schema");
        const JsonValue* inner = named ? named->find("schema") : nullptr;
        if (!inner || !inner->is_object()) reject("response_format.json_schema.schema", "must be an object");
        schema = *inner;
    } else if (type->text() == "json_object") {
        schema = JsonValue::object({{"type", JsonValue::string("object")}});
    } else {
        return; // grammars have no text form in this model's prompt
    }
    if (policy.response_format_in_prompt) leading_system(out.messages).response_format = std::move(schema);
}

// Who writes next: a continued assistant turn, or a fresh one.
void settle_last_turn(const ChatFields& fields, NormalisedRequest& out) {
    Message& last = out.messages.back();
    if (fields.continue_final_message.value_or(false)) {
        if (last.role != Role::assistant) reject("continue_final_message", "needs a last message of role assistant");
        last.wo_eos = true;
    }
    for (std::size_t i = 0; i < out.messages.size(); ++i) {
        const Message& message = out.messages[i];
        if (message.wo_eos && (message.role != Role::assistant || i + 1 != out.messages.size()))
            reject("messages[" + std::to_string(i) + "].prefix", "is only allowed on a last message of role assistant");
    }
    out.options.always_open_turn = true;
}

void check_reasoning(const RequestPolicy& policy, NormalisedRequest& out) {
    if (out.options.mode != ThinkingMode::thinking) return;
    for (const Message& message : out.messages)
        if (message.role == Role::assistant && !message.tool_calls.empty() && !message.reasoning)
            ++out.turns_without_reasoning;
    if (policy.strict_reasoning && out.turns_without_reasoning > 0)
        reject("messages", "The reasoning_content in the thinking mode must be passed back to the API.",
               "send each assistant message back with the reasoning_content it came with");
}

} // namespace

Result<ChatFields> chat_fields(std::string_view body) {
    return guard([&] {
        Result<JsonValue> parsed = parse_json(body, "the request body");
        const JsonValue& json = parsed.value();
        if (!json.is_object()) throw Failure(Code::invalid, "the request body is not a JSON object");
        const auto field = [&](std::string_view key) {
            const JsonValue* value = json.find(key);
            return value ? *value : JsonValue{};
        };
        ChatFields fields;
        fields.messages = field("messages");
        fields.tools = field("tools");
        fields.tool_choice = field("tool_choice");
        fields.response_format = field("response_format");
        fields.template_kwargs = field("chat_template_kwargs");
        fields.thinking = thinking_switch(field("thinking"));
        if (const JsonValue* flag = json.find_set("continue_final_message")) {
            if (!flag->is_boolean()) reject("continue_final_message", "must be true or false");
            fields.continue_final_message = flag->truth();
        }
        const JsonValue* effort = json.find_set("reasoning_effort");
        for (const char* holder : {"reasoning", "output_config"})
            if (const JsonValue* object = json.find(holder); object && !effort) effort = object->find_set("effort");
        if (effort) {
            if (!effort->is_string()) reject("reasoning_effort", "must be a string");
            fields.effort = effort->text();
        }
        return fields;
    });
}

Result<NormalisedRequest> normalise(const ChatFields& fields, const RequestPolicy& policy) {
    return guard([&] {
        NormalisedRequest out;
        if (!fields.messages.is_array()) reject("messages", "must be an array");
        if (fields.messages.items().empty()) reject("messages", "must hold at least one message");
        const Reasoning reasoning = resolve_reasoning(fields, policy);
        out.options.variant = policy.variant;
        out.options.mode = reasoning.thinking ? ThinkingMode::thinking : ThinkingMode::chat;
        out.options.effort = reasoning.effort;
        for (std::size_t i = 0; i < fields.messages.items().size(); ++i)
            out.messages.push_back(
                read_message(fields.messages.items()[i], "messages[" + std::to_string(i) + "]", Dialect::chat));
        settle_last_turn(fields, out);
        attach_tools(fields, out);
        attach_response_format(fields.response_format, policy, out);
        check_reasoning(policy, out);
        return out;
    });
}

std::string_view error_parameter(const Error& error) {
    const std::string_view message = error.message;
    const std::size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    const bool is_path =
        end != std::string_view::npos && (message[end] == '.' || message[end] == '[' || message[end] == ':');
    return is_path ? message.substr(0, end) : std::string_view{};
}

} // namespace dsv4::deepseek_v4
