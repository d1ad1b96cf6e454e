// Base classes of a parser: Parser makes prompts, CompletionStream reads completions. See dsv4/parser.h.
#pragma once

#include "dsv4/parser.h"
#include "dsv4/sdk/host.hpp"
#include "dsv4/sdk/plugin.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace dsv4::sdk {

// A prompt as the author builds it; the SDK keeps the C view of it alive.
struct Prompt {
    struct Segment {
        dsv4_segment_kind kind = DSV4_SEGMENT_TEXT;
        std::string text;
    };
    std::vector<Segment> segments;
    std::vector<std::string> stop_names;
    std::vector<std::string> banned_names;
    bool thinking = false;
    bool tools_enabled = false;
    std::string effort;
    std::string tools;
    std::string grammar;
    std::string reused_note;
};

class CompletionStream {
  public:
    // kind, tool call index, text of whole UTF-8 characters
    using Sink = std::function<void(dsv4_delta_kind, std::uint32_t, std::string_view)>;
    virtual ~CompletionStream() = default;
    virtual void feed(std::span<const dsv4_piece> pieces, const Sink& sink) = 0;
    virtual dsv4_completion_end finish(dsv4_stopped_by stopped_by, const Sink& sink) = 0;
};

// Errors are Failure exceptions. Every function may be called from any thread at the same time.
class Parser {
  public:
    using Interface = Parser;
    static constexpr std::int32_t kind = DSV4_KIND_PARSER;
    // `control_names`: control tokens that must exist in the tokenizer.
    explicit Parser(std::vector<std::string> control_names) : names_(std::move(control_names)) {
        for (const auto& n : names_) name_views_.push_back(str(n));
    }
    virtual ~Parser() = default;
    std::span<const dsv4_str> control_names() const noexcept { return name_views_; }
    virtual Prompt encode(const dsv4_chat_request& request) const = 0;
    virtual Prompt encode_messages(std::string_view /*input_json*/) const {
        throw Failure(Code::unsupported, "this parser has no message layer");
    }
    virtual std::unique_ptr<CompletionStream> stream(const dsv4_completion_options& options) const = 0;

    static const dsv4_parser_table& table();

  private:
    std::vector<std::string> names_;
    std::vector<dsv4_str> name_views_;
};

namespace detail {

inline const Parser& parser(void* self) { return *static_cast<Parser*>(self); }

struct PromptHolder : dsv4_prompt {
    Prompt content;
    std::vector<dsv4_segment> segment_views;
    std::vector<dsv4_str> stop_views, banned_views;

    explicit PromptHolder(Prompt p) : dsv4_prompt{}, content(std::move(p)) {
        for (const auto& s : content.segments) segment_views.push_back({s.kind, str(s.text)});
        for (const auto& s : content.stop_names) stop_views.push_back(str(s));
        for (const auto& s : content.banned_names) banned_views.push_back(str(s));
        struct_size = sizeof(dsv4_prompt);
        segments = segment_views.data();
        segment_count = std::uint32_t(segment_views.size());
        stop_names = stop_views.data();
        stop_count = std::uint32_t(stop_views.size());
        banned_names = banned_views.data();
        banned_count = std::uint32_t(banned_views.size());
        thinking = content.thinking;
        tools_enabled = content.tools_enabled;
        effort = str(content.effort);
        tools = str(content.tools);
        grammar = str(content.grammar);
        reused_note = str(content.reused_note);
    }
};

inline CompletionStream& completion(dsv4_completion_stream* s) { return *reinterpret_cast<CompletionStream*>(s); }

inline CompletionStream::Sink wrap_sink(dsv4_delta_sink sink, void* arg) {
    return [sink, arg](dsv4_delta_kind kind, std::uint32_t index, std::string_view text) {
        const dsv4_delta delta{kind, index, str(text)};
        sink(arg, &delta);
    };
}

} // namespace detail

inline const dsv4_parser_table& Parser::table() {
    using namespace detail;
    static const dsv4_parser_table t = [] {
        dsv4_parser_table p{};
        p.struct_size = sizeof p;
        p.control_names = [](void* self, const dsv4_str** names, std::uint32_t* count) noexcept -> dsv4_error* {
            const auto list = parser(self).control_names();
            *names = list.data();
            *count = std::uint32_t(list.size());
            return nullptr;
        };
        p.encode = [](void* self, const dsv4_chat_request* request, const dsv4_prompt** out) noexcept {
            return contain([&] { *out = new PromptHolder(parser(self).encode(*request)); });
        };
        p.encode_messages = [](void* self, dsv4_str input, const dsv4_prompt** out) noexcept {
            return contain([&] { *out = new PromptHolder(parser(self).encode_messages(view(input))); });
        };
        p.prompt_release = [](void*, const dsv4_prompt* prompt) noexcept {
            delete static_cast<const PromptHolder*>(prompt);
        };
        p.stream_open = [](void* self, const dsv4_completion_options* options, dsv4_completion_stream** out) noexcept {
            return contain(
                [&] { *out = reinterpret_cast<dsv4_completion_stream*>(parser(self).stream(*options).release()); });
        };
        p.stream_feed = [](dsv4_completion_stream* s, const dsv4_piece* pieces, std::size_t count, dsv4_delta_sink sink,
                           void* arg) noexcept {
            return contain([&] { completion(s).feed({pieces, count}, wrap_sink(sink, arg)); });
        };
        p.stream_finish = [](dsv4_completion_stream* s, std::int32_t stopped_by, dsv4_delta_sink sink, void* arg,
                             dsv4_completion_end* out) noexcept {
            return contain([&] {
                if (stopped_by < DSV4_STOPPED_EOS || stopped_by > DSV4_STOPPED_LENGTH)
                    throw Failure(Code::invalid, "a completion cannot end by " + std::to_string(stopped_by));
                copy_out(out, completion(s).finish(dsv4_stopped_by(stopped_by), wrap_sink(sink, arg)));
            });
        };
        p.stream_close = [](dsv4_completion_stream* s) noexcept { delete &completion(s); };
        return p;
    }();
    return t;
}

} // namespace dsv4::sdk
