// The published encoder's own input as JSON, below the request layer: for `dsv4 codec` and tests.
#pragma once

#include "conversation.hpp"
#include "dsv4/sdk/result.hpp"

#include <vector>

namespace dsv4::deepseek_v4 {

struct EncoderInput {
    std::vector<Message> messages;
    std::vector<Message> context;
    EncodeOptions options;
};

// Reads {messages, thinking_mode, reasoning_effort, drop_thinking, add_bos, context, encoding_variant}; only the first
// two are required. Messages use the encoder's vocabulary: `developer` stays a user-like turn, and `tools`,
// `response_format`, `task` and `wo_eos` are members of messages. Requests go through normalise() instead.
Result<EncoderInput> read_encoder_input(const JsonValue& json);

} // namespace dsv4::deepseek_v4
