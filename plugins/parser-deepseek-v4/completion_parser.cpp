// The state machine: text states hold at most one possible marker, tag states at most one name, value or block.
#include "completion_parser.hpp"

#include "control_tokens.hpp"
#include "markup.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace dsv4::deepseek_v4 {
namespace {

constexpr std::size_t closing_tag_kept_bytes = 64; // longer than every tag name that means something
constexpr std::size_t head_rest_kept_bytes = 1024; // attributes beyond this are not read

// Tails of tags, as MarkedText::match_tag wants them. The wrapper spellings come first in each list.
constexpr std::size_t wrapper_count = markup::wrapper_spellings.size();
constexpr std::array<std::string_view, wrapper_count> wrapper_tails = {"tool_calls>", "toolcalls>", "tool_call>",
                                                                       "function_calls>", "calls>"};
constexpr std::array<std::string_view, wrapper_count + 4> opener_tails = {"tool_calls>",     "toolcalls>", "tool_call>",
                                                                          "function_calls>", "calls>",     "invoke ",
                                                                          "invoke\n",        "invoke\t",   "invoke\r"};
constexpr std::array<std::string_view, 1> block_open_tails = {"invoke name=\""};
constexpr std::array<std::string_view, 2> call_open_tails = {"parameter name=\"", "invoke name=\""};
constexpr std::array<std::string_view, wrapper_count + 1> call_close_tails = {
    "tool_calls>", "toolcalls>", "tool_call>", "function_calls>", "calls>", "invoke>"};
constexpr std::array<std::string_view, 1> any_close_tails = {""};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_wrapper(std::string_view tag) {
    return std::find(markup::wrapper_spellings.begin(), markup::wrapper_spellings.end(), tag) !=
           markup::wrapper_spellings.end();
}

StringFlag string_flag(std::string_view attributes) {
    if (attributes.find("string=\"true\"") != std::string_view::npos) return StringFlag::yes;
    if (attributes.find("string=\"false\"") != std::string_view::npos) return StringFlag::no;
    return StringFlag::unsaid;
}

} // namespace

CompletionParser::CompletionParser(ParserOptions options)
    : options_(std::move(options)), state_(options_.thinking ? State::reasoning : State::content) {}

std::size_t CompletionParser::held_bytes() const noexcept {
    return held_.size() + raw_.size() + head_.size() + head_rest_.size() + value_.size() +
           (call_ ? call_->key_bytes() : 0);
}

void CompletionParser::feed(std::string_view bytes, Origin origin, Delta& out) {
    if (bytes.empty()) return;
    out_ = &out;
    if (!utf8_.holds()) held_origin_ = origin;
    utf8_.feed(bytes, [&](std::string_view character) {
        // A character cut over chunks of different origin belongs to no control token.
        const Origin of_character = held_origin_ == origin ? origin : Origin::ordinary;
        held_origin_ = origin;
        const auto pass = [&](std::string_view text) { take(text, Origin::control); };
        if (of_character == Origin::control) {
            leaked_.feed(character, pass, [&](std::string_view token) {
                malformed_ = true;
                if (std::find(control::stops.begin(), control::stops.end(), token) != control::stops.end())
                    ended_ = true;
            });
        } else {
            leaked_.flush(pass);
            take(character, of_character);
        }
    });
}

void CompletionParser::take(std::string_view characters, Origin origin) {
    if (ended_) return;
    for (const char c : characters) step(c, origin);
}

void CompletionParser::step(char c, Origin origin) {
    switch (state_) {
    case State::reasoning:
    case State::content: return step_text(c, origin);
    case State::block: return step_block(c, origin);
    case State::call_name:
    case State::parameter_head: return step_head(c);
    case State::arguments: return step_arguments(c, origin);
    case State::value:
    case State::json_body: return step_value(c, origin);
    case State::done:
        if (!is_blank(c)) malformed_ = true;
        return;
    }
}

// Reasoning and content. `held_` is up to two newlines and then the beginning of a marker or an opener, if anything.

void CompletionParser::step_text(char c, Origin origin) {
    if (held_.empty() && c != '<' && !(c == '\n' && options_.tools_enabled)) return emit_text({&c, 1});
    held_.push(c, origin);
    resolve_text();
}

void CompletionParser::resolve_text() {
    const auto give_out = [&](std::size_t count) {
        if (count == 0) return;
        emit_text(std::string_view(held_.bytes()).substr(0, count));
        held_.drop_front(count);
    };
    while (!held_.empty()) {
        std::size_t newlines = 0;
        if (options_.tools_enabled)
            while (newlines < held_.size() && held_[newlines] == '\n') ++newlines;
        if (newlines > 2) {
            give_out(newlines - 2);
            newlines = 2;
        }
        if (newlines == held_.size()) return;
        if (held_[newlines] != '<') {
            give_out(newlines + 1);
            continue;
        }
        std::size_t which = 0;
        const Match opener =
            options_.tools_enabled ? held_.match_tag(newlines, false, opener_tails, &which) : Match::none;
        if (opener == Match::full) {
            if (state_ == State::reasoning || newlines != 2 || which != 0) malformed_ = true;
            return enter_block(newlines, which >= wrapper_count);
        }
        const Match close = held_.match_marker(newlines, control::think_close);
        if (close == Match::full) {
            give_out(newlines);
            held_.clear();
            at_start_ = false;
            if (state_ == State::content) malformed_ = true;
            state_ = State::content;
            return;
        }
        const Match open = at_start_ && newlines == 0 ? held_.match_marker(0, control::think_open) : Match::none;
        if (open == Match::full) {
            malformed_ = true;
            held_.clear();
            at_start_ = false;
            state_ = State::reasoning;
            return;
        }
        if (opener == Match::partial) return;
        if (close == Match::partial || open == Match::partial) return give_out(newlines);
        give_out(newlines + 1);
    }
}

void CompletionParser::emit_text(std::string_view text) {
    at_start_ = false;
    (state_ == State::reasoning ? out_->reasoning : out_->content) += text;
}

void CompletionParser::enter_block(std::size_t newlines, bool bare_invoke) {
    at_start_ = false;
    state_ = State::block;
    block_has_text_ = in_tag_ = false;
    if (bare_invoke) { // the block reads this tag itself
        raw_.assign(newlines, '\n');
        held_.drop_front(newlines);
        resolve_block();
    } else {
        raw_ = held_.bytes();
        held_.clear();
    }
}

// Between the wrapper's tags, outside calls.

void CompletionParser::step_block(char c, Origin origin) {
    if (held_.empty() && block_is_full(c)) {
        give_block_back();
        state_ = State::content;
        return step_text(c, origin);
    }
    if (held_.empty() && c != '<') return skip_in_block(c);
    held_.push(c, origin);
    resolve_block();
}

void CompletionParser::resolve_block() {
    while (!held_.empty()) {
        if (block_is_full(held_[0])) {
            give_block_back();
            state_ = State::content;
            return resolve_text();
        }
        if (held_[0] == '<') {
            const Match open = held_.match_tag(0, false, block_open_tails);
            const Match close = held_.match_tag(0, true, wrapper_tails);
            if (open == Match::full) {
                held_.clear();
                raw_.clear();
                head_.clear();
                head_rest_.clear();
                head_closed_ = false;
                state_ = State::call_name;
                return;
            }
            if (close == Match::full) {
                raw_ += held_.bytes();
                held_.clear();
                if (calls_ == 0 && block_has_text_) give_block_back();
                raw_.clear();
                state_ = State::done;
                return;
            }
            if (open == Match::partial || close == Match::partial) return;
            if (const std::size_t start = held_.tag_start_length(); start > 0) {
                in_tag_ = true;
                malformed_ = true;
                if (calls_ == 0) raw_ += held_.bytes().substr(0, start);
                held_.drop_front(start);
                continue;
            }
        }
        const char c = held_[0];
        held_.drop_front(1);
        skip_in_block(c);
    }
}

bool CompletionParser::block_is_full(char next) const {
    const bool between_characters = (static_cast<unsigned char>(next) & 0xC0) != 0x80;
    return between_characters && raw_.size() >= options_.buffer_limit_bytes;
}

void CompletionParser::skip_in_block(char c) {
    if (in_tag_) {
        in_tag_ = c != '>';
    } else if (!is_blank(c)) {
        block_has_text_ = true;
        malformed_ = true;
    }
    if (calls_ == 0) raw_ += c;
}

void CompletionParser::give_block_back() {
    malformed_ = true;
    out_->content += raw_;
    raw_.clear();
}

// `name="..." ...>` of an invoke or parameter tag.

void CompletionParser::step_head(char c) {
    if (!head_closed_) {
        if (c == '"') {
            head_closed_ = true;
        } else {
            head_ += c;
            if (head_.size() > options_.buffer_limit_bytes) abandon();
        }
        return;
    }
    if (c != '>') {
        if (head_rest_.size() < head_rest_kept_bytes) head_rest_ += c;
        return;
    }
    state_ == State::call_name ? begin_call() : begin_value();
}

void CompletionParser::begin_call() {
    call_.emplace(options_.tools.find(head_), &malformed_);
    ++calls_;
    ToolCallDelta delta;
    delta.index = calls_ - 1;
    delta.name = std::move(head_);
    out_->tool_calls.push_back(std::move(delta));
    head_ = {};
    arguments_blank_ = true;
    arguments_text_ = in_tag_ = false;
    state_ = State::arguments;
}

// Inside a call, between its parameters.

void CompletionParser::step_arguments(char c, Origin origin) {
    if (held_.empty() && c != '<') return skip_in_arguments(c);
    arguments_blank_ = false;
    held_.push(c, origin);
    resolve_arguments();
}

void CompletionParser::resolve_arguments() {
    while (state_ == State::arguments && !held_.empty()) {
        if (held_[0] == '<') {
            std::size_t open_which = 0;
            std::size_t close_which = 0;
            const Match open = held_.match_tag(0, false, call_open_tails, &open_which);
            const Match close = held_.match_tag(0, true, call_close_tails, &close_which);
            if (open == Match::full) {
                held_.clear();
                if (open_which == 1) {
                    malformed_ = true; // the call before was not closed
                    close_call();
                }
                head_.clear();
                head_rest_.clear();
                head_closed_ = false;
                state_ = open_which == 0 ? State::parameter_head : State::call_name;
                return;
            }
            if (close == Match::full) {
                held_.clear();
                if (close_which < wrapper_count) malformed_ = true;
                close_call();
                in_tag_ = false;
                state_ = close_which < wrapper_count ? State::done : State::block;
                return;
            }
            if (open == Match::partial || close == Match::partial) return;
            if (const std::size_t start = held_.tag_start_length(); start > 0) {
                malformed_ = true;
                in_tag_ = true;
                in_closing_tag_ = held_[1] == '/';
                if (!in_closing_tag_) arguments_text_ = true;
                held_.drop_front(start);
                continue;
            }
        }
        const char c = held_[0];
        held_.drop_front(1);
        skip_in_arguments(c);
    }
}

void CompletionParser::skip_in_arguments(char c) {
    if (in_tag_) {
        in_tag_ = c != '>';
        return;
    }
    if (is_blank(c)) return;
    malformed_ = true;
    if (c == '{' && arguments_blank_ && !call_->has_parameters()) {
        value_.assign(1, c);
        value_streams_ = value_closing_ = false;
        state_ = State::json_body;
        return;
    }
    arguments_blank_ = false;
    arguments_text_ = true;
}

// A parameter's value, or a JSON object in place of parameters: everything up to the next closing tag.

void CompletionParser::begin_value() {
    const StringFlag flag = string_flag(head_rest_);
    value_.clear();
    value_closing_ = false;
    std::string text;
    value_streams_ = call_->begin_parameter(std::move(head_), flag, text);
    head_ = {};
    if (!text.empty()) arguments_out() += text;
    state_ = State::value;
    if (call_->key_bytes() > options_.buffer_limit_bytes) abandon();
}

void CompletionParser::step_value(char c, Origin origin) {
    if (value_closing_) {
        if (c == '>') return end_value();
        if (closing_tag_.size() < closing_tag_kept_bytes) closing_tag_ += c;
        return;
    }
    if (held_.empty() && c != '<') return add_to_value(c);
    held_.push(c, origin);
    while (!held_.empty() && state_ != State::done) {
        switch (held_.match_tag(0, true, any_close_tails)) {
        case Match::full:
            held_.clear();
            closing_tag_.clear();
            value_closing_ = true;
            return;
        case Match::partial: return;
        case Match::none: break;
        }
        const char first = held_[0];
        held_.drop_front(1);
        add_to_value(first);
    }
}

void CompletionParser::add_to_value(char c) {
    if (value_streams_) {
        call_->add_text({&c, 1}, arguments_out());
    } else if (state_ == State::json_body || !call_->is_duplicate()) {
        value_ += c;
        if (value_.size() > options_.buffer_limit_bytes) abandon();
    }
}

void CompletionParser::end_value() {
    std::string_view tag = closing_tag_;
    if (tag.starts_with(' ')) tag.remove_prefix(1);
    const bool ends_block = is_wrapper(tag);
    const bool ends_call = ends_block || tag == markup::invoke;
    value_closing_ = false;
    in_tag_ = false;
    if (state_ == State::json_body) return end_json_body(!ends_block);

    std::string text;
    call_->finish_parameter(std::move(value_), text);
    value_ = {};
    if (!text.empty()) arguments_out() += text;
    arguments_text_ = false;
    state_ = State::arguments;
    if (tag != markup::parameter) malformed_ = true;
    if (ends_call) {
        close_call();
        state_ = ends_block ? State::done : State::block;
    }
}

void CompletionParser::end_json_body(bool to_block) {
    const std::string_view trimmed = trim(value_);
    std::string& out = arguments_out();
    if (is_strict_json(trimmed)) { // it begins with a brace, so it is an object
        out += trimmed;
    } else {
        out += "{\"arguments\": ";
        append_quoted(out, value_);
        out += '}';
    }
    value_ = {};
    ++complete_calls_;
    call_delta().closed = true;
    call_.reset();
    state_ = to_block ? State::block : State::done;
}

void CompletionParser::close_call() {
    call_->close(arguments_out());
    call_delta().closed = true;
    ++complete_calls_;
    call_.reset();
}

void CompletionParser::abandon() {
    malformed_ = true;
    held_.clear();
    raw_ = {};
    head_ = {};
    value_ = {};
    call_.reset();
    state_ = State::done;
}

ToolCallDelta& CompletionParser::call_delta() {
    const std::uint32_t index = calls_ - 1;
    if (out_->tool_calls.empty() || out_->tool_calls.back().index != index) {
        out_->tool_calls.emplace_back();
        out_->tool_calls.back().index = index;
    }
    return out_->tool_calls.back();
}

std::string& CompletionParser::arguments_out() { return call_delta().arguments; }

void CompletionParser::finish(StoppedBy stopped_by, Delta& out) {
    out_ = &out;
    const bool cut = stopped_by == StoppedBy::length;
    leaked_.flush([&](std::string_view text) { take(text, Origin::control); });
    if (utf8_.holds()) take(Utf8Stream::replacement, Origin::ordinary); // the end cut a character off
    utf8_.drop();
    switch (state_) {
    case State::reasoning:
    case State::content: {
        // A tag that was being written when the text ended is no text.
        const bool partial_tag = options_.tools_enabled && held_.bytes().find("｜") != std::string::npos;
        if (partial_tag)
            malformed_ = true;
        else
            emit_text(held_.bytes());
        break;
    }
    case State::block:
        malformed_ = true;
        if (calls_ == 0 && block_has_text_ && !cut) {
            raw_ += held_.bytes();
            give_block_back();
        }
        break;
    case State::call_name:
    case State::parameter_head:
    case State::json_body: malformed_ = true; break;
    case State::arguments: {
        malformed_ = true;
        const bool only_closer = held_.empty() || held_.match_tag(0, true, call_close_tails) == Match::partial;
        if (!cut && !arguments_text_ && only_closer) close_call();
        break;
    }
    case State::value:
        malformed_ = true;
        if (value_closing_) {
            std::string text;
            call_->finish_parameter(std::move(value_), text);
            if (!text.empty()) arguments_out() += text;
            if (!cut) close_call();
        }
        break;
    case State::done: break;
    }
    held_.clear();
    raw_ = {};
    head_ = {};
    value_ = {};
    call_.reset();
    state_ = State::done;
    finish_ = cut ? Finish::length : calls_ > 0 ? Finish::tool_calls : Finish::stop;
}

void accumulate(ParsedCompletion& whole, const Delta& delta) {
    whole.reasoning += delta.reasoning;
    whole.content += delta.content;
    for (const ToolCallDelta& call : delta.tool_calls) {
        if (call.index >= whole.tool_calls.size()) whole.tool_calls.resize(call.index + 1);
        ParsedCompletion::Call& target = whole.tool_calls[call.index];
        if (call.name) target.name = *call.name;
        target.arguments += call.arguments;
        target.complete = target.complete || call.closed;
    }
}

} // namespace dsv4::deepseek_v4
