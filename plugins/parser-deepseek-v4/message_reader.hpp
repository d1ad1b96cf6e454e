// Reads single messages and tools out of request JSON. Throws Failure; messages begin with the path of what is wrong.
#pragma once

#include "conversation.hpp"

#include <string>
#include <vector>

namespace dsv4::deepseek_v4 {

// Whose rules hold for roles and content.
enum class Dialect {
    encoder, // the published encoder's own input
    chat,    // a chat-completions request: developer means system, function means tool, only text parts
};

// `path` names the message in errors, such as "messages[3]".
Message read_message(const JsonValue& json, const std::string& path, Dialect dialect);

// The `function` objects of a tools array; empty for null.
std::vector<JsonValue> read_tools(const JsonValue& json, const std::string& path);

} // namespace dsv4::deepseek_v4
