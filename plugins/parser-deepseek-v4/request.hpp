// What a chat-completions request means to this model: its JSON fields to encoder input, thinking mode and effort.
#pragma once

#include "conversation.hpp"
#include "dsv4/sdk/result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::deepseek_v4 {

// The request fields that concern the model; null or nullopt where the client said nothing.
struct ChatFields {
    JsonValue messages;
    JsonValue tools;
    JsonValue tool_choice;
    JsonValue response_format;
    JsonValue template_kwargs;         // chat_template_kwargs: thinking, enable_thinking, reasoning_effort
    std::optional<bool> thinking;      // {"type": "enabled" | "disabled"} and the like
    std::optional<std::string> effort; // reasoning_effort, reasoning.effort, output_config.effort; as spelled
    std::optional<bool> continue_final_message;
};

// How the server was configured.
struct RequestPolicy {
    Variant variant = Variant::v4_0731;
    bool thinking = true;         // for requests that say nothing
    Effort effort = Effort::high; // for thinking requests that name none
    // Refuse a history turn with tool calls and no reasoning, as DeepSeek's own API does, instead of rendering it
    // empty.
    bool strict_reasoning = false;
    // Also write a response format's schema into the leading system message.
    bool response_format_in_prompt = false;
};

enum class ToolChoice : std::uint8_t { automatic, none, required, named };

struct NormalisedRequest {
    std::vector<Message> messages;
    EncodeOptions options;
    bool tools_enabled = false;       // the parser looks for tool calls
    std::vector<JsonValue> functions; // the tools' `function` objects as rendered; empty when !tools_enabled
    ToolChoice tool_choice = ToolChoice::automatic;
    std::string tool_choice_name;            // ToolChoice::named
    std::size_t turns_without_reasoning = 0; // tool-call turns whose reasoning the client did not send back
};

// The fields of a whole request body. Unknown fields are ignored: they are not the model's business.
Result<ChatFields> chat_fields(std::string_view body);

// Code::invalid for anything the model cannot be shown. The message begins with the parameter at fault, down to the
// element: "messages[2].content[0]: ...".
Result<NormalisedRequest> normalise(const ChatFields& fields, const RequestPolicy& policy);

// The top-level parameter that such an error is about ("messages"), or an empty view.
std::string_view error_parameter(const Error& error);

} // namespace dsv4::deepseek_v4
