// One message of a request: role, content in its shapes, reasoning, tool calls, attachments.
#include "message_reader.hpp"

#include "dsv4/sdk/result.hpp"

#include <array>
#include <utility>

namespace dsv4::deepseek_v4 {
namespace {

[[noreturn]] void reject(const std::string& path, const std::string& problem, std::string fix = {}) {
    throw Failure(Code::invalid, path + ": " + problem, std::move(fix));
}

// The member as text, or empty when absent or null.
std::string read_text(const JsonValue& json, std::string_view key, const std::string& path) {
    const JsonValue* value = json.find_set(key);
    if (!value) return {};
    if (!value->is_string()) reject(path + "." + std::string(key), "must be a string");
    return value->text();
}

bool read_flag(const JsonValue& json, std::string_view key, const std::string& path) {
    const JsonValue* value = json.find_set(key);
    if (!value) return false;
    if (!value->is_boolean()) reject(path + "." + std::string(key), "must be true or false");
    return value->truth();
}

Role role_from_name(std::string_view name, Dialect dialect) {
    static constexpr std::array<std::pair<std::string_view, Role>, 6> roles = {{
        {"system", Role::system},
        {"developer", Role::developer},
        {"user", Role::user},
        {"tool", Role::tool},
        {"assistant", Role::assistant},
        {"latest_reminder", Role::latest_reminder},
    }};
    if (dialect == Dialect::chat) {
        // Clients of the chat API write "developer" where they used to write "system". This model's own developer turn
        // is something else: a user-like turn that disappears from the history.
        if (name == "developer") return Role::system;
        if (name == "function") return Role::tool;
    }
    for (const auto& [known, role] : roles)
        if (known == name) return role;
    return Role::other;
}

// Content is a string, null, or a list of parts joined by a blank line.
std::string read_content(const JsonValue& json, const std::string& message_path, Dialect dialect) {
    const JsonValue* content = json.find_set("content");
    if (!content) return {};
    const std::string path = message_path + ".content";
    if (content->is_string()) return content->text();
    if (!content->is_array()) reject(path, "must be a string, null or an array of parts");
    std::string out;
    for (std::size_t i = 0; i < content->items().size(); ++i) {
        const JsonValue& part = content->items()[i];
        const std::string part_path = path + "[" + std::to_string(i) + "]";
        if (i > 0) out += "\n\n";
        if (part.is_string()) { // some clients send bare strings
            out += part.text();
            continue;
        }
        const JsonValue* type = part.find("type");
        if (!type || !type->is_string()) reject(part_path, "must be an object with a string `type`");
        if (type->text() == "text") {
            const JsonValue* text = part.find("text");
            if (!text || !text->is_string()) reject(part_path + ".text", "must be a string");
            out += text->text();
        } else if (dialect == Dialect::encoder) {
            out += "[Unsupported " + type->text() + "]";
        } else {
            reject(part_path, "content of type '" + type->text() + "' is not supported: this model reads text only",
                   "send parts of type text");
        }
    }
    return out;
}

std::vector<ToolCall> read_tool_calls(const JsonValue& json, const std::string& message_path) {
    const JsonValue* list = json.find_set("tool_calls");
    if (!list) return {};
    const std::string path = message_path + ".tool_calls";
    if (!list->is_array()) reject(path, "must be an array");
    std::vector<ToolCall> calls;
    for (std::size_t i = 0; i < list->items().size(); ++i) {
        const JsonValue& entry = list->items()[i];
        const std::string call_path = path + "[" + std::to_string(i) + "]";
        const JsonValue* function = entry.find("function");
        if (!function || !function->is_object()) reject(call_path + ".function", "must be an object");
        const JsonValue* name = function->find("name");
        if (!name || !name->is_string() || name->text().empty())
            reject(call_path + ".function.name", "must be a non-empty string");
        ToolCall call;
        call.id = read_text(entry, "id", call_path);
        call.name = name->text();
        const JsonValue* arguments = function->find_set("arguments");
        if (!arguments)
            call.arguments = "{}";
        else if (arguments->is_string())
            call.arguments = arguments->text();
        else if (arguments->is_object())
            call.arguments = to_text(*arguments); // some clients send the object itself
        else
            reject(call_path + ".function.arguments", "must be a JSON object as text");
        // Text that is no JSON at all is accepted: the model wrote it once, and is shown it again as it was.
        if (const Result<JsonValue> parsed = parse_json(call.arguments, "arguments");
            parsed.ok() && !parsed->is_object())
            reject(call_path + ".function.arguments", "is JSON but not an object",
                   "send an object, such as \"{\\\"city\\\": \\\"Brest\\\"}\"");
        calls.push_back(std::move(call));
    }
    return calls;
}

} // namespace

std::vector<JsonValue> read_tools(const JsonValue& json, const std::string& path) {
    if (json.is_null()) return {};
    if (!json.is_array()) reject(path, "must be an array");
    std::vector<JsonValue> functions;
    for (std::size_t i = 0; i < json.items().size(); ++i) {
        const JsonValue& tool = json.items()[i];
        const std::string tool_path = path + "[" + std::to_string(i) + "]";
        if (!tool.is_object()) reject(tool_path, "must be an object");
        if (const JsonValue* type = tool.find_set("type"); type && (!type->is_string() || type->text() != "function"))
            reject(tool_path + ".type", "must be \"function\"", "remove tools of other types");
        const JsonValue* function = tool.find("function");
        if (!function || !function->is_object()) reject(tool_path + ".function", "must be an object");
        const JsonValue* name = function->find("name");
        if (!name || !name->is_string() || name->text().empty())
            reject(tool_path + ".function.name", "must be a non-empty string");
        functions.push_back(*function);
    }
    return functions;
}

Message read_message(const JsonValue& json, const std::string& path, Dialect dialect) {
    if (!json.is_object()) reject(path, "must be an object");
    const JsonValue* role = json.find("role");
    if (!role || !role->is_string()) reject(path + ".role", "must be a string");
    Message message;
    message.role_name = role->text();
    message.role = role_from_name(message.role_name, dialect);
    if (dialect == Dialect::chat && message.role == Role::other)
        reject(path + ".role", "unknown role '" + message.role_name + "'",
               "use system, developer, user, assistant, tool or latest_reminder");
    message.content = read_content(json, path, dialect);
    message.tool_call_id = read_text(json, "tool_call_id", path);
    if (message.role == Role::assistant) {
        if (json.find_set("reasoning_content"))
            message.reasoning = read_text(json, "reasoning_content", path);
        else if (dialect == Dialect::chat && json.find_set("reasoning"))
            message.reasoning = read_text(json, "reasoning", path);
        message.tool_calls = read_tool_calls(json, path);
    }
    const JsonValue* tools = json.find_set("tools");
    if (tools && (message.role == Role::system || message.role == Role::developer))
        message.tools = read_tools(*tools, path + ".tools");
    if (dialect == Dialect::encoder) {
        if (const JsonValue* schema = json.find_set("response_format")) message.response_format = *schema;
        if (json.find_set("task")) message.task = read_text(json, "task", path);
        message.wo_eos = read_flag(json, "wo_eos", path);
    } else {
        message.wo_eos = read_flag(json, "prefix", path);
    }
    return message;
}

} // namespace dsv4::deepseek_v4
