// Reads answers of chat and text completions: which events carry output, what usage they report, whether they are
// whole.
#pragma once

#include "bench/sample.hpp"
#include "bench/sse.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dsv4::bench {

// One streamed answer. Output is a piece of content, reasoning, refusal, tool call or text that is not empty.
class StreamReader {
  public:
    explicit StreamReader(Sample& sample) : sample_(sample) {}
    // Bytes of the body that arrived at `now_us`. Fills outputs_us, usage, and at the end of the answer outcome,
    // message and end_us.
    void feed(std::string_view bytes, std::int64_t now_us);
    // The body ended at `now_us`: an answer without [DONE] is malformed.
    void finish(std::int64_t now_us);
    // The sample has its outcome; nothing after that changes it.
    bool ended() const noexcept { return ended_; }

  private:
    void event(const SseEvent& event, std::int64_t now_us);
    void end(Outcome outcome, std::string message, std::int64_t now_us);
    Sample& sample_;
    SseParser parser_;
    bool ended_ = false;
};

// One whole answer, fills usage, outcome and message.
void read_whole_answer(std::string_view body, Sample& sample);

// The message of an API error object, else the text itself; at most 300 bytes.
std::string error_message(std::string_view body);

// The name of the first model of a /v1/models answer. Throws Failure(corrupt).
std::string first_model(std::string_view body);

} // namespace dsv4::bench
