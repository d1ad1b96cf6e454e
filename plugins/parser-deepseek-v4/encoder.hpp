// Conversation to prompt: DeepSeek-V4's chat format as segments.
//
// Only what the encoder itself writes becomes a control segment. Everything that came from a request (contents,
// reasoning, names, keys, values, schemas) is text, however it is spelled, so a client cannot fake a turn or a call.
#pragma once

#include "conversation.hpp"
#include "dsv4/sdk/result.hpp"

#include <span>
#include <string>
#include <vector>

namespace dsv4::deepseek_v4 {

// `context` holds the messages whose tokens are in the cache already: they are not rendered, but they decide which turn
// is the last user turn, whether tools are present and in which order results stand. With a context there is no BOS.
//
// Code::invalid: an effort the variant does not have, a role or task nobody knows, an empty developer message, call
// arguments that are JSON but not an object. Pure; any thread.
Result<std::vector<Segment>> encode(std::vector<Message> messages, const EncodeOptions& options,
                                    std::vector<Message> context = {});

// True when the prompt ends inside <think>, so that the completion begins as reasoning.
bool ends_in_reasoning(std::span<const Segment> segments) noexcept;

// The segments as one string, for people and tests; tokenising it would lose the distinction.
std::string prompt_text(std::span<const Segment> segments);

} // namespace dsv4::deepseek_v4
