// One API call as read from a body: requests for the generation service, and how the client wants the answer.
#pragma once

#include "dsv4/generate.h"
#include "settings.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::openai {

enum class CallKind : std::uint8_t { chat, completion };

// Owns everything that its requests point to; not moved once made.
struct Call {
    Call() = default;
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    CallKind kind = CallKind::chat;
    // One for each prompt; chat has one. All alike but for the prompt.
    std::vector<dsv4_generate_request> requests;
    std::vector<std::string> unknown_fields; // ignored; sorted

    // The answer.
    std::string model; // as the client named it; empty when it did not
    bool stream = false;
    bool include_usage = false;
    bool continuous_usage = false;
    bool logprobs = false;
    bool parallel_tool_calls = true;
    bool include_reasoning = true;
    bool reasoning_in_content = false; // with tags, instead of in a field of its own
    bool return_token_ids = false;
    bool tokens_as_ids = false; // logprobs name tokens "token_id:N"
    bool echo = false;          // the prompt belongs to the answer
    bool needs_grammar = false;
    std::string grammar_field; // the field that asks for it

    std::uint32_t choices() const { return requests.empty() ? 0 : std::uint32_t(requests.size()) * requests[0].n; }
    // From the request's headers; both may be empty. `salt` is put before the client's own.
    void set_context(std::string_view request_id, std::string_view traceparent, std::string_view salt);

    // What `requests` point to.
    std::string body;
    std::deque<std::string> texts;
    dsv4_chat_request chat{};
    std::deque<std::vector<std::int32_t>> id_lists;
    std::vector<dsv4_str> stop_strings;
    std::vector<std::int32_t> stop_ids;
    std::vector<std::int32_t> allowed_ids;
    std::vector<dsv4_bias> bias;
    std::string cache_salt, request_id, traceparent;

    // Keeps a text alive with this call.
    dsv4_str keep(std::string text);
};

struct TranslateContext {
    const Settings& settings;
    const dsv4_host* host = nullptr;     // for the tokenizer; services may be missing
    std::span<const std::string> models; // names that are served; empty: any
    bool can_constrain = true;           // grammars can be enforced
    std::uint32_t vocab_size() const { return host && host->tokenizer ? host->tokenizer->vocab_size : 0; }
};

// Throw Refusal for what the client must change; Failure(invalid) for a body that is not JSON.
std::unique_ptr<Call> read_chat(std::string body, const TranslateContext& context);
std::unique_ptr<Call> read_completion(std::string body, const TranslateContext& context);
// The chat part alone, for /tokenize: no sampling fields are looked at.
std::unique_ptr<Call> read_conversation(std::string body, const TranslateContext& context);

} // namespace dsv4::openai
