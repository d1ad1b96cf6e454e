// Stop strings act on content alone: behind the parser, so never inside reasoning or tool markup.
#include "core/engine/output.hpp"

#include "dsv4/sdk/error.hpp"

#include <algorithm>

namespace dsv4::engine {
namespace {

struct SinkArgument {
    Output* output;
    std::vector<DeltaOut>* out;
};

} // namespace

Output::Output(const tokenizer::Tokenizer& tokenizer, ParserHandle parser, const OutputOptions& options)
    : tokenizer_(tokenizer),
      parser_(parser),
      min_tokens_(options.min_tokens),
      reasoning_end_(options.reasoning_end),
      stops_(options.stop_strings, options.include_stop_string),
      reasoning_(options.chat && options.thinking),
      tools_enabled_(options.tools_enabled) {
    stops_.set_active(min_tokens_ <= 0);
    if (!options.chat) return;
    dsv4_completion_options o{};
    o.struct_size = sizeof o;
    o.thinking = options.thinking;
    o.tools_enabled = options.tools_enabled;
    o.tools = sdk::str(options.tools);
    sdk::check(parser_.table->stream_open(parser_.self, &o, &stream_));
}

Output::~Output() {
    if (stream_) parser_.table->stream_close(stream_);
}

bool Output::push(std::int32_t token, bool ends, std::vector<DeltaOut>& out) {
    ++tokens_;
    if (reasoning_ && token == reasoning_end_) reasoning_ = false;
    if (reasoning_) ++reasoning_tokens_;
    stops_.set_active(tokens_ > min_tokens_);
    const bool control = tokenizer_.is_control(token);
    if (control && tools_enabled_ && token != reasoning_end_) markup_ = true;
    const std::size_t before = out.size();
    if (!ends) feed(tokenizer_.bytes(token), control, out);
    part_ = reasoning_ ? DSV4_DELTA_REASONING : DSV4_DELTA_CONTENT;
    if (markup_) {
        const bool argument = std::any_of(out.begin() + std::ptrdiff_t(before), out.end(),
                                          [](const DeltaOut& d) { return d.kind == DSV4_DELTA_TOOL_ARGUMENTS; });
        part_ = argument ? DSV4_DELTA_TOOL_ARGUMENTS : 0;
    }
    if (control || ends) part_ = 0;
    return stopped();
}

void Output::feed(std::string_view bytes, bool control, std::vector<DeltaOut>& out) {
    if (stream_) {
        const dsv4_piece piece{sdk::str(bytes), control};
        SinkArgument argument{this, &out};
        sdk::check(parser_.table->stream_feed(stream_, &piece, 1, &Output::sink, &argument));
        return;
    }
    if (control) return; // raw text shows no control tokens; their ids are in the event
    std::string text;
    text_.feed(bytes, text);
    content(text, out);
}

void Output::sink(void* arg, const dsv4_delta* delta) {
    auto* argument = static_cast<SinkArgument*>(arg);
    argument->output->take(dsv4_delta_kind(delta->kind), delta->index, sdk::view(delta->text), *argument->out);
}

void Output::take(dsv4_delta_kind kind, std::uint32_t index, std::string_view text, std::vector<DeltaOut>& out) {
    if (stopped()) return;
    markup_ = kind == DSV4_DELTA_TOOL_BEGIN || kind == DSV4_DELTA_TOOL_ARGUMENTS;
    if (kind == DSV4_DELTA_CONTENT) {
        reasoning_ = false;
        content(text, out);
        return;
    }
    if (kind != DSV4_DELTA_REASONING) {
        reasoning_ = false;
        std::string held; // markup follows: what was held can no longer become a stop string
        stops_.flush(held);
        if (!held.empty()) out.push_back({DSV4_DELTA_CONTENT, 0, std::move(held)});
    }
    out.push_back({kind, index, std::string(text)});
}

void Output::content(std::string_view text, std::vector<DeltaOut>& out) {
    std::string visible;
    stops_.feed(text, visible);
    if (!visible.empty()) out.push_back({DSV4_DELTA_CONTENT, 0, std::move(visible)});
}

dsv4_finish_reason Output::finish(dsv4_stopped_by stopped_by, std::vector<DeltaOut>& out) {
    dsv4_finish_reason reason = stopped_by == DSV4_STOPPED_LENGTH ? DSV4_REASON_LENGTH : DSV4_REASON_STOP;
    if (stream_) {
        dsv4_completion_end end{};
        end.struct_size = sizeof end;
        SinkArgument argument{this, &out};
        sdk::check(parser_.table->stream_finish(stream_, stopped_by, &Output::sink, &argument, &end));
        if (end.finish == DSV4_FINISH_TOOL_CALLS) reason = DSV4_REASON_TOOL_CALLS;
    } else if (!stopped())
        content(text_.flush(), out);
    if (stopped()) return reason == DSV4_REASON_LENGTH ? DSV4_REASON_STOP : reason;
    std::string held;
    stops_.flush(held);
    if (!held.empty()) out.push_back({DSV4_DELTA_CONTENT, 0, std::move(held)});
    return reason;
}

} // namespace dsv4::engine
