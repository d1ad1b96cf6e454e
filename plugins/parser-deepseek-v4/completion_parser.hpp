// Generated text to reasoning, content and tool calls, chunk by chunk.
//
// One state machine serves streaming and whole texts: for every way of cutting the input, the deltas concatenate to the
// same result. After each chunk everything is given out that can no longer become part of markup, and nothing else.
//
// Markup counts only where its marker (`<think>`, `</think>`, `｜DSML｜`) came from a control token: a model that
// quotes a document spelling a tool call does not make one. Malformed markup is repaired where its meaning is clear; a
// call whose arguments were cut off stays open, so that no truncated command can run.
//
// Time is linear in the input. Memory is bounded by `buffer_limit_bytes`, whatever the model generates.
#pragma once

#include "call_arguments.hpp"
#include "leaked_control.hpp"
#include "marked_text.hpp"
#include "utf8_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::deepseek_v4 {

enum class StoppedBy : std::uint8_t { eos, stop, length };
enum class Finish : std::uint8_t { stop, length, tool_calls };

struct ToolCallDelta {
    std::uint32_t index = 0;
    std::optional<std::string> name; // set where the call begins
    std::string arguments;           // the next piece of the arguments' JSON text
    bool closed = false;             // the arguments are complete
};

// What became certain; whole UTF-8 characters. Reasoning precedes content, content precedes calls.
struct Delta {
    std::string reasoning;
    std::string content;
    std::vector<ToolCallDelta> tool_calls; // at most one entry a call
    bool empty() const noexcept { return reasoning.empty() && content.empty() && tool_calls.empty(); }
};

struct ParserOptions {
    bool thinking = false;      // the completion starts inside reasoning
    bool tools_enabled = false; // DSML is structure
    ToolSchemas tools;
    // The most that is held while a text may still turn out one way or another. Beyond it: an unfinished tool block
    // without a call is given back as content; a name, value or body that is not complete leaves its call open, and the
    // rest of the completion is discarded.
    std::size_t buffer_limit_bytes = std::size_t{16} << 20;
};

class CompletionParser {
  public:
    explicit CompletionParser(ParserOptions options);

    // Appends what the bytes make certain to `out`. A chunk may end anywhere, also inside a character or a token.
    // Control tokens that are no markup (a turn marker, a placeholder) are left out; a turn or sentence marker also
    // ends the turn: what follows is discarded.
    void feed(std::string_view bytes, Origin origin, Delta& out);
    // Ends the completion and appends what was held back. No feed after it.
    void finish(StoppedBy stopped_by, Delta& out);

    // After finish.
    Finish finish_reason() const noexcept { return finish_; }
    // Advisory: the text broke the markup's rules somewhere.
    bool malformed() const noexcept { return malformed_; }
    // Calls begun, and those whose arguments were closed: always the first ones, for only the last can be cut off.
    std::uint32_t calls() const noexcept { return calls_; }
    std::uint32_t complete_calls() const noexcept { return complete_calls_; }
    // Bytes held back at the moment.
    std::size_t held_bytes() const noexcept;

  private:
    enum class State : std::uint8_t {
        reasoning,
        content,
        block,     // inside the wrapper, outside a call
        call_name, // after `invoke name="`
        arguments, // inside a call, between parameters
        parameter_head,
        value,
        json_body, // a JSON object where parameters should be
        done,      // after the block: everything is discarded
    };

    void take(std::string_view characters, Origin origin);
    void step(char c, Origin origin);
    void step_text(char c, Origin origin);
    void resolve_text();
    void emit_text(std::string_view text);
    void enter_block(std::size_t newlines, bool bare_invoke);

    void step_block(char c, Origin origin);
    void resolve_block();
    void skip_in_block(char c);
    bool block_is_full(char next) const; // `next` is the byte about to be read
    void give_block_back();

    void step_head(char c);
    void begin_call();

    void step_arguments(char c, Origin origin);
    void resolve_arguments();
    void skip_in_arguments(char c);

    void begin_value();
    void step_value(char c, Origin origin);
    void add_to_value(char c);
    void end_value();
    void end_json_body(bool to_block);

    void close_call();
    void abandon(); // a limit was passed: the call in progress, if any, stays open
    std::string& arguments_out();
    ToolCallDelta& call_delta();

    ParserOptions options_;
    State state_;
    Delta* out_ = nullptr; // during feed and finish
    Utf8Stream utf8_;
    Origin held_origin_ = Origin::ordinary; // of the unfinished character in utf8_
    LeakedControl leaked_;
    MarkedText held_;      // may still become markup
    bool at_start_ = true; // nothing of the completion has been given out or taken away
    bool ended_ = false;   // a leaked turn marker ended the turn
    bool malformed_ = false;
    Finish finish_ = Finish::stop;

    std::string raw_;             // block without a call: its text so far, with the newlines before it
    bool block_has_text_ = false; // text besides tags and white space
    bool in_tag_ = false;         // block, arguments: inside an unknown tag
    bool in_closing_tag_ = false; // arguments: that tag is a closing one

    std::string head_; // name of a call or key of a parameter
    std::string head_rest_;
    bool head_closed_ = false; // its closing quote was seen

    std::optional<CallArguments> call_;
    std::uint32_t calls_ = 0;
    std::uint32_t complete_calls_ = 0;
    bool arguments_blank_ = true; // only white space since the call began
    bool arguments_text_ = false; // other text since the last parameter
    std::string value_;           // buffered value, or the JSON body
    bool value_streams_ = false;
    bool value_closing_ = false; // `</｜DSML｜` was seen, its `>` not yet
    std::string closing_tag_;
};

// A whole completion at once.
struct ParsedCompletion {
    struct Call {
        std::string name;
        std::string arguments;
        bool complete = false;
    };
    std::string reasoning;
    std::string content;
    std::vector<Call> tool_calls;
    Finish finish = Finish::stop;
    bool malformed = false;
};

// Adds a delta to what came before.
void accumulate(ParsedCompletion& whole, const Delta& delta);

} // namespace dsv4::deepseek_v4
