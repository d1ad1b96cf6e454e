// What chat and text answers share: identity, usage, the order of events, endings.
#include "answer.hpp"

#include "json_text.hpp"

#include "dsv4/sdk/error.hpp"

#include <algorithm>

namespace dsv4::openai {
namespace {

void append_member(std::string& out, std::string_view lead, std::int64_t value) {
    out += lead;
    append_number(out, value);
}

std::string_view reason_name(std::int32_t reason) {
    switch (reason) {
    case DSV4_REASON_LENGTH: return "length";
    case DSV4_REASON_TOOL_CALLS: return "tool_calls";
    default: return "stop";
    }
}

} // namespace

Answer::Answer(const Call& call, AnswerIdentity identity, const dsv4_host* host, std::string_view chunk_object,
               std::string_view body_object)
    : call_(call),
      host_(host),
      identity_(std::move(identity)),
      body_object_(body_object),
      begun_(call.choices()),
      ended_(call.choices()),
      ended_early_(call.choices()),
      open_choices_(call.choices()),
      prompts_(call.requests.size()),
      completion_tokens_(call.choices()) {
    const auto head = [&](std::string_view lead, std::string_view object) {
        std::string text(lead);
        text += R"({"id":)";
        append_quoted(text, identity_.id);
        text += R"(,"object":)";
        append_quoted(text, object);
        append_member(text, R"(,"created":)", identity_.created_s);
        text += R"(,"model":)";
        append_quoted(text, identity_.model);
        text += R"(,"system_fingerprint":)";
        append_quoted(text, identity_.fingerprint);
        text += R"(,"choices":[)";
        return text;
    };
    chunk_head_ = head("data: ", chunk_object);
    body_object_ = head("", body_object);
}

void Answer::take(const dsv4_event& event, std::uint32_t prompt, std::string& out) {
    if (done()) return;
    if (event.kind == DSV4_EVENT_ERROR) {
        const Error error{event.code >= 1 && event.code <= 9 ? Code(event.code) : Code::internal,
                          std::string(sdk::view(event.message)),
                          {}};
        fail(from_service(error, event.retryable != 0), out);
        return;
    }
    if (prompt >= prompts_.size()) return;
    if (event.kind == DSV4_EVENT_ACCEPTED) {
        accepted_ = true;
        prompts_[prompt] = {event.prompt_tokens, event.cached_tokens};
        return;
    }
    const std::uint32_t n = call_.requests[0].n;
    if (event.index >= n) return;
    const std::uint32_t choice = prompt * n + event.index;
    if (ended_[choice]) return;
    if (event.kind == DSV4_EVENT_TOKENS) {
        completion_tokens_[choice] += event.token_count;
        if (ended_early_[choice]) return;
        if (!begun_[choice]) {
            begun_[choice] = true;
            begin(choice, out);
        }
        tokens(choice, event, out);
        return;
    }
    if (event.kind != DSV4_EVENT_FINISHED) return;
    std::string_view reason = reason_name(event.reason);
    if (ended_early_[choice]) {
        reason = "tool_calls";
    } else if (event.reason == DSV4_REASON_CANCELLED) {
        fail(unavailable("the request was cancelled by the server"), out);
        return;
    } else if (event.reason == DSV4_REASON_DEADLINE) {
        fail(unavailable("the request's deadline passed"), out);
        return;
    }
    ended_[choice] = true;
    --open_choices_;
    PromptUsage& usage = prompts_[prompt];
    usage.prompt_tokens = std::max(usage.prompt_tokens, event.usage.prompt_tokens);
    usage.cached_tokens = std::max(usage.cached_tokens, event.usage.cached_tokens);
    completion_tokens_[choice] = event.usage.completion_tokens;
    total_.reasoning_tokens += event.usage.reasoning_tokens;
    total_.accepted_draft_tokens += event.usage.accepted_draft_tokens;
    total_.draft_tokens += event.usage.draft_tokens;
    timings_.queue_us = std::max(timings_.queue_us, event.timings.queue_us);
    timings_.prefill_us = std::max(timings_.prefill_us, event.timings.prefill_us);
    timings_.decode_us = std::max(timings_.decode_us, event.timings.decode_us);
    if (!begun_[choice]) {
        begun_[choice] = true;
        begin(choice, out);
    }
    finish(choice, event, reason, out);
}

void Answer::fail(ApiError error, std::string& out) {
    if (done()) return;
    failure_ = std::move(error);
    if (call_.stream) append_error_event(out, *failure_);
}

void append_error_event(std::string& out, const ApiError& error) {
    out += "data: ";
    out += to_json(error);
    out += "\n\n";
}

void Answer::open_chunk(std::uint32_t choice, std::string& out) const {
    out += chunk_head_;
    append_member(out, R"({"index":)", choice);
}

void Answer::close_chunk(std::string& out) const {
    out += "}]";
    if (call_.continuous_usage)
        append_usage(out);
    else if (call_.include_usage)
        out += R"(,"usage":null)";
    out += "}\n\n";
}

void Answer::end_stream(std::string& out) const {
    if (call_.include_usage) {
        out += chunk_head_;
        out += ']';
        append_usage(out);
        out += "}\n\n";
    }
    out += "data: [DONE]\n\n";
}

std::int64_t Answer::running_tokens() const {
    std::int64_t sum = 0;
    for (const std::int64_t tokens : completion_tokens_) sum += tokens;
    return sum;
}

void Answer::append_usage(std::string& out) const {
    std::int64_t prompt = 0, cached = 0;
    for (const PromptUsage& one : prompts_) {
        prompt += one.prompt_tokens;
        cached += one.cached_tokens;
    }
    const std::int64_t completion = running_tokens();
    append_member(out, R"(,"usage":{"prompt_tokens":)", prompt);
    append_member(out, R"(,"completion_tokens":)", completion);
    append_member(out, R"(,"total_tokens":)", prompt + completion);
    append_member(out, R"(,"prompt_tokens_details":{"cached_tokens":)", cached);
    append_member(out, R"(},"completion_tokens_details":{"reasoning_tokens":)", total_.reasoning_tokens);
    append_member(out, R"(,"accepted_prediction_tokens":)", total_.accepted_draft_tokens);
    append_member(out, R"(,"rejected_prediction_tokens":)",
                  std::max<std::int64_t>(0, total_.draft_tokens - total_.accepted_draft_tokens));
    append_member(out, R"(},"prompt_cache_hit_tokens":)", cached);
    append_member(out, R"(,"prompt_cache_miss_tokens":)", prompt - cached);
    out += '}';
}

std::string Answer::body() const {
    std::string out = body_object_;
    for (std::uint32_t i = 0; i < call_.choices(); ++i) {
        out += i ? R"(,{"index":)" : R"({"index":)";
        append_number(out, std::int64_t{i});
        append_choice(i, out);
        out += '}';
    }
    out += ']';
    append_usage(out);
    out += '}';
    return out;
}

} // namespace dsv4::openai
