// The conversation as the encoder reads it, and the options of one encoding.
#pragma once

#include "json_text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsv4::deepseek_v4 {

enum class Role : std::uint8_t { system, developer, user, tool, assistant, latest_reminder, other };

struct ToolCall {
    std::string id;
    std::string name;
    std::string arguments; // the text the client sent, meant to be a JSON object
};

// A piece of a user turn.
struct Block {
    enum class Kind : std::uint8_t { text, tool_result };
    Kind kind = Kind::text;
    std::string call_id; // tool_result only; may be empty
    std::string content;
};

struct Message {
    Role role = Role::user;
    std::string role_name; // as the client spelled it
    std::string content;
    std::vector<Block> blocks; // user turns after merging; filled by the encoder
    std::optional<std::string> reasoning;
    std::vector<ToolCall> tool_calls;         // assistant
    std::string tool_call_id;                 // tool
    std::vector<JsonValue> tools;             // system, developer: each tool's `function` object
    std::optional<JsonValue> response_format; // system, developer: a JSON schema
    std::optional<std::string> task;          // action, query, authority, domain, title or read_url
    bool wo_eos = false;                      // assistant: the turn is left open
};

enum class ThinkingMode : std::uint8_t { chat, thinking };

// How much the model is asked to think. `unset` renders like `low`.
enum class Effort : std::uint8_t { unset, low, high, max };

// Which published encoder the checkpoint was trained with.
enum class Variant : std::uint8_t {
    v4_preview, // April 2026: efforts unset, high (no text) and max
    v4_0731,    // the 0731 release: efforts unset, low, high and max
};

struct EncodeOptions {
    Variant variant = Variant::v4_0731;
    ThinkingMode mode = ThinkingMode::thinking;
    Effort effort = Effort::unset;
    bool drop_thinking = true; // leave out reasoning before the last user turn, unless tools are present
    bool add_bos = true;
    // Also open an assistant turn after a last message that opens none by itself (system, reminder, finished assistant
    // turn), so that there is always something to complete. The published encoder does not.
    bool always_open_turn = false;
};

// A prompt is a list of these: a control token by its exact name, or text to be tokenised without looking for control
// tokens in it. Neighbouring texts are joined, because a cut would change the tokens; empty texts do not appear.
struct Segment {
    bool is_control = false;
    std::string text;
    bool operator==(const Segment&) const = default;
};

} // namespace dsv4::deepseek_v4
