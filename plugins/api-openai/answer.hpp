// Turns the events of a call into what the client reads: stream events as they come, or one body at the end.
#pragma once

#include "api_error.hpp"
#include "call.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::openai {

struct AnswerIdentity {
    std::string id;             // "chatcmpl-..."
    std::int64_t created_s = 0; // since 1970
    std::string model;
    std::string fingerprint;
};

struct Timings {
    std::uint64_t queue_us = 0, prefill_us = 0, decode_us = 0;
};

// One call's answer; one thread at a time. `call` outlives it.
class Answer {
  public:
    virtual ~Answer() = default;

    // An event of the call's request number `prompt`. When streaming, appends server-sent events to `out`, one a delta.
    void take(const dsv4_event& event, std::uint32_t prompt, std::string& out);
    // Every choice has ended, or the call has failed.
    bool done() const noexcept { return failure_ || open_choices_ == 0; }
    // The service has begun the call.
    bool accepted() const noexcept { return accepted_; }
    // What is still to come will not be used: the service may stop.
    bool enough() const noexcept { return enough_; }
    const std::optional<ApiError>& failure() const noexcept { return failure_; }
    // Ends the call with an error; when streaming, as an event.
    void fail(ApiError error, std::string& out);

    // Streams that did not fail: the usage event where it is wanted, and "[DONE]".
    void end_stream(std::string& out) const;
    // The body of an answer that is not streamed; the call is done and did not fail.
    std::string body() const;
    Timings timings() const noexcept { return timings_; } // of the slowest prompt

  protected:
    Answer(const Call& call, AnswerIdentity identity, const dsv4_host* host, std::string_view chunk_object,
           std::string_view body_object);

    virtual void begin(std::uint32_t choice, std::string& out) = 0;
    virtual void tokens(std::uint32_t choice, const dsv4_event& event, std::string& out) = 0;
    virtual void finish(std::uint32_t choice, const dsv4_event& event, std::string_view reason, std::string& out) = 0;
    virtual void append_choice(std::uint32_t choice, std::string& out) const = 0;

    // `data: {..."choices":[{"index":N` and what stands behind a choice's last member.
    void open_chunk(std::uint32_t choice, std::string& out) const;
    void close_chunk(std::string& out) const;
    void end_choice_early(std::uint32_t choice) { ended_early_[choice] = true; }
    bool ended_early(std::uint32_t choice) const { return ended_early_[choice]; }
    void stop_asking() noexcept { enough_ = true; }

    const Call& call_;
    const dsv4_host* host_;

  private:
    struct PromptUsage {
        std::int64_t prompt_tokens = 0, cached_tokens = 0;
    };
    void append_usage(std::string& out) const;
    std::int64_t running_tokens() const;

    AnswerIdentity identity_;
    std::string body_object_;
    std::string chunk_head_;
    std::vector<bool> begun_, ended_, ended_early_;
    std::uint32_t open_choices_;
    bool enough_ = false, accepted_ = false;
    std::optional<ApiError> failure_;
    std::vector<PromptUsage> prompts_;
    std::vector<std::int64_t> completion_tokens_; // by choice
    dsv4_usage total_{};                          // of what the ended choices generated
    Timings timings_;
};

// `host` gives the texts of tokens; its tokenizer may be missing.
std::unique_ptr<Answer> make_chat_answer(const Call& call, AnswerIdentity identity, const Settings& settings,
                                         const dsv4_host* host);
std::unique_ptr<Answer> make_completion_answer(const Call& call, AnswerIdentity identity, const dsv4_host* host);

// {"object":"error"...} as a stream event.
void append_error_event(std::string& out, const ApiError& error);

} // namespace dsv4::openai
