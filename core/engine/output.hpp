// Tokens of one completion to what its reader sees: text, stop strings, reasoning, content and tool calls.
#pragma once

#include "core/engine/events.hpp"
#include "core/engine/stop_strings.hpp"
#include "core/tokenizer/tokenizer.hpp"
#include "core/tokenizer/utf8.hpp"
#include "dsv4/parser.h"

#include <memory>
#include <string>
#include <vector>

namespace dsv4::engine {

// The parser instance that reads chat completions. Does not own it.
struct ParserHandle {
    const dsv4_parser_table* table = nullptr;
    void* self = nullptr;
};

struct OutputOptions {
    bool chat = false; // through the parser; else text is content
    bool thinking = false;
    bool tools_enabled = false;
    std::string tools; // JSON array
    std::vector<std::string> stop_strings;
    bool include_stop_string = false;
    std::int64_t min_tokens = 0;     // stop strings are not looked for before
    std::int32_t reasoning_end = -1; // control token that closes reasoning; -1: none
};

// Not thread-safe. Throws Failure where the parser does.
class Output {
  public:
    Output(const tokenizer::Tokenizer& tokenizer, ParserHandle parser, const OutputOptions& options);
    ~Output();
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    // Takes a token. `ends`: it is a stop id, which is no text. True: a stop string matched.
    bool push(std::int32_t token, bool ends, std::vector<DeltaOut>& out);
    // Ends the completion and emits what was held back. Gives the reason as the parser sees it.
    dsv4_finish_reason finish(dsv4_stopped_by stopped_by, std::vector<DeltaOut>& out);

    // What the last token pushed belongs to, as dsv4_token.part says it.
    std::int32_t part() const noexcept { return part_; }
    const std::string& matched_stop() const noexcept { return stops_.matched(); }
    bool reasoning() const noexcept { return reasoning_; }
    std::int64_t reasoning_tokens() const noexcept { return reasoning_tokens_; }

  private:
    void feed(std::string_view bytes, bool control, std::vector<DeltaOut>& out);
    void take(dsv4_delta_kind kind, std::uint32_t index, std::string_view text, std::vector<DeltaOut>& out);
    void content(std::string_view text, std::vector<DeltaOut>& out);
    bool stopped() const noexcept { return !stops_.matched().empty(); }
    static void sink(void* arg, const dsv4_delta* delta);

    const tokenizer::Tokenizer tokenizer_;
    const ParserHandle parser_;
    const std::int64_t min_tokens_;
    const std::int32_t reasoning_end_;
    dsv4_completion_stream* stream_ = nullptr;
    tokenizer::Utf8Stream text_;
    StopStrings stops_;
    bool reasoning_ = false;
    const bool tools_enabled_;
    bool markup_ = false; // inside tool markup
    std::int32_t part_ = 0;
    std::int64_t tokens_ = 0, reasoning_tokens_ = 0;
};

} // namespace dsv4::engine
