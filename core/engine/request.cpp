// Checks a request, encodes its prompt and prepares its completions; runs on the submitting thread.
#include "core/engine/request.hpp"

#include "dsv4/sdk/error.hpp"

#include <algorithm>

namespace dsv4::engine {
namespace {

constexpr std::uint32_t max_completions = 128;
constexpr std::uint64_t max_prompt_ids = std::uint64_t(1) << 26;
constexpr std::uint32_t max_stop_strings = 16;
constexpr std::size_t max_stop_string_bytes = 4096;

[[noreturn]] void invalid(std::string message) { throw Failure(Code::invalid, std::move(message)); }

class PromptHolder {
  public:
    PromptHolder(ParserHandle parser, const dsv4_chat_request& chat) : parser_(parser) {
        sdk::check(parser_.table->encode(parser_.self, &chat, &prompt_));
    }
    ~PromptHolder() { parser_.table->prompt_release(parser_.self, prompt_); }
    PromptHolder(const PromptHolder&) = delete;
    PromptHolder& operator=(const PromptHolder&) = delete;
    const dsv4_prompt& operator*() const { return *prompt_; }

  private:
    ParserHandle parser_;
    const dsv4_prompt* prompt_ = nullptr;
};

std::vector<std::int32_t> control_ids(const tokenizer::Tokenizer& tokenizer, const dsv4_str* names,
                                      std::uint32_t count) {
    std::vector<std::int32_t> ids;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto id = tokenizer.control_id(sdk::view(names[i]));
        if (!id)
            throw Failure(Code::internal, "the parser names the control token " + std::string(sdk::view(names[i])) +
                                              ", which the tokenizer does not have");
        ids.push_back(*id);
    }
    return ids;
}

EncodedPrompt encode_prompt(const RequestContext& context, const dsv4_generate_request& in) {
    const int forms = (in.chat != nullptr) + (in.prompt_ids != nullptr) + (in.prompt_text.data != nullptr);
    if (forms != 1) invalid("prompt: a request must have exactly one of messages, prompt token ids and prompt text.");
    if (in.chat) return encode_chat(context, *in.chat);
    EncodedPrompt p;
    if (in.prompt_text.data) {
        const std::string_view text = sdk::view(in.prompt_text);
        p.ids =
            (in.parse_special ? context.tokenizer.encode_with_control(text) : context.tokenizer.encode(text)).value();
        const std::int32_t begin = context.config.begin_id;
        if (DSV4_HAS(&in, add_bos) && begin >= 0 && (p.ids.empty() || p.ids.front() != begin))
            p.ids.insert(p.ids.begin(), begin);
    } else {
        if (in.prompt_id_count > max_prompt_ids)
            invalid("prompt: " + std::to_string(in.prompt_id_count) + " tokens are more than " +
                    std::to_string(max_prompt_ids) + ".");
        p.ids.assign(in.prompt_ids, in.prompt_ids + in.prompt_id_count);
        for (std::int32_t id : p.ids)
            if (id < 0 || id >= context.config.vocab_size)
                invalid("prompt: token " + std::to_string(id) + " is not from 0 to " +
                        std::to_string(context.config.vocab_size - 1) + ".");
    }
    return p;
}

void truncate(EncodedPrompt& prompt, std::int64_t keep, std::int64_t context_tokens) {
    if (keep == 0) return;
    if (keep < -1) invalid("truncate_prompt_tokens: " + std::to_string(keep) + " is neither a positive count nor -1.");
    const auto limit = std::size_t(keep == -1 ? context_tokens - 1 : keep);
    if (prompt.ids.size() > limit) prompt.ids.erase(prompt.ids.begin(), prompt.ids.end() - std::ptrdiff_t(limit));
}

std::int64_t answer_tokens(const RequestContext& context, std::int64_t asked, std::int64_t prompt_tokens) {
    const std::int64_t room = context.context_tokens - prompt_tokens;
    if (room < 1)
        invalid("This model's maximum context length is " + std::to_string(context.context_tokens) +
                " tokens. However, your prompt has " + std::to_string(prompt_tokens) + " tokens.");
    if (asked == 0 || asked < -1) invalid("max_tokens: " + std::to_string(asked) + " is not at least 1.");
    std::int64_t limit = asked;
    if (limit < 0) limit = context.config.default_max_tokens;
    return limit < 0 ? room : std::min(limit, room);
}

std::vector<std::string> stop_strings(const dsv4_generate_request& in) {
    if (in.stop_string_count > max_stop_strings)
        invalid("stop: " + std::to_string(in.stop_string_count) + " strings are more than " +
                std::to_string(max_stop_strings) + ".");
    std::vector<std::string> strings;
    for (std::uint32_t i = 0; i < in.stop_string_count; ++i) {
        std::string s(sdk::view(in.stop_strings[i]));
        if (s.size() > max_stop_string_bytes)
            invalid("stop: a string of " + std::to_string(s.size()) + " bytes is longer than " +
                    std::to_string(max_stop_string_bytes) + ".");
        if (!s.empty()) strings.push_back(std::move(s));
    }
    return strings;
}

} // namespace

EncodedPrompt encode_chat(const RequestContext& context, const dsv4_chat_request& chat) {
    if (!context.parser.table)
        throw Failure(Code::unsupported, "this server has no parser for chat requests, so it takes raw prompts only");
    dsv4_chat_request completed = chat;
    if (completed.default_thinking == DSV4_UNSAID) completed.default_thinking = context.config.thinking;
    if (completed.default_effort.size == 0) completed.default_effort = sdk::str(context.config.effort);
    const PromptHolder holder(context.parser, completed);
    const dsv4_prompt& prompt = *holder;
    std::vector<tokenizer::Segment> segments;
    for (std::uint32_t i = 0; i < prompt.segment_count; ++i)
        segments.push_back({prompt.segments[i].kind == DSV4_SEGMENT_CONTROL ? tokenizer::Segment::Kind::control
                                                                            : tokenizer::Segment::Kind::text,
                            sdk::view(prompt.segments[i].text)});
    EncodedPrompt p;
    p.ids = context.tokenizer.encode_segments(segments).value();
    p.stop_ids = control_ids(context.tokenizer, prompt.stop_names, prompt.stop_count);
    p.banned_ids = control_ids(context.tokenizer, prompt.banned_names, prompt.banned_count);
    p.thinking = prompt.thinking != 0;
    p.tools_enabled = prompt.tools_enabled != 0;
    p.tools = sdk::view(prompt.tools);
    p.grammar = sdk::view(prompt.grammar);
    p.note = sdk::view(prompt.reused_note);
    return p;
}

std::shared_ptr<Request> make_request(const RequestContext& context, const dsv4_generate_request& in,
                                      std::uint64_t random_seed) {
    const EngineConfig& config = context.config;
    if (in.n < 1 || in.n > max_completions)
        invalid("n: " + std::to_string(in.n) + " is not from 1 to " + std::to_string(max_completions) + ".");
    if (in.prompt_logprobs >= 0) throw Failure(Code::unsupported, "prompt_logprobs: not offered by this server.");
    EncodedPrompt prompt = encode_prompt(context, in);
    truncate(prompt, DSV4_HAS(&in, truncate_prompt_tokens) ? in.truncate_prompt_tokens : 0, context.context_tokens);
    if (prompt.ids.empty()) invalid("prompt: it has no tokens.");

    auto request = std::make_shared<Request>();
    request->id = sdk::view(in.request_id);
    request->prompt_note = prompt.note;
    request->prompt_tokens = std::int64_t(prompt.ids.size());
    request->max_tokens = answer_tokens(context, in.limits.max_tokens, request->prompt_tokens);
    request->max_reasoning_tokens = in.limits.max_reasoning_tokens;
    request->deadline_us = in.limits.deadline_us;
    request->echo = in.echo != 0;
    request->chat = in.chat != nullptr;

    if (in.limits.min_tokens < 0 || in.limits.min_tokens > request->max_tokens)
        invalid("min_tokens: " + std::to_string(in.limits.min_tokens) + " is not from 0 to max_tokens, here " +
                std::to_string(request->max_tokens) + ".");
    const bool ignore_eos = DSV4_HAS(&in, ignore_eos) && in.ignore_eos != 0;
    std::vector<std::int32_t> stop_ids;
    if (!ignore_eos) {
        stop_ids = config.stop_ids;
        stop_ids.insert(stop_ids.end(), prompt.stop_ids.begin(), prompt.stop_ids.end());
    }
    sampling::Sampling sampling =
        sampling::resolve(in, config.sampling, config.vocab_size, stop_ids, prompt.banned_ids, random_seed).value();
    sampling.max_length = request->prompt_tokens + request->max_tokens;
    // The first stop id may be token number min_tokens + 1.
    sampling.min_length = in.limits.min_tokens > 0 ? request->prompt_tokens + in.limits.min_tokens + 1 : 0;

    OutputOptions output;
    output.chat = request->chat;
    output.thinking = prompt.thinking;
    output.tools_enabled = prompt.tools_enabled;
    output.tools = prompt.tools;
    output.stop_strings = stop_strings(in);
    output.include_stop_string = in.include_stop_string != 0;
    output.min_tokens = in.limits.min_tokens;
    output.reasoning_end = context.tokenizer.control_id(config.reasoning_end).value_or(-1);
    const bool limit_reasoning = prompt.thinking && in.limits.max_reasoning_tokens >= 0;
    if (limit_reasoning && output.reasoning_end < 0)
        throw Failure(Code::unsupported,
                      "reasoning cannot be limited: the tokenizer has no control token " + config.reasoning_end);

    const std::string_view own_grammar = sdk::view(in.grammar);
    const std::string_view grammar_text = own_grammar.empty() ? std::string_view(prompt.grammar) : own_grammar;
    std::shared_ptr<Grammar> grammar;
    if (!grammar_text.empty())
        grammar = std::make_shared<Grammar>(
            context.grammar, own_grammar.empty() ? std::int32_t(DSV4_GRAMMAR_EBNF) : in.grammar_syntax, grammar_text);
    std::span<const std::int32_t> allowed;
    if (DSV4_HAS(&in, allowed_ids) && in.allowed_id_count > 0) allowed = {in.allowed_ids, in.allowed_id_count};
    sampling.masked = grammar || !allowed.empty();

    const auto ids = std::make_shared<const std::vector<std::int32_t>>(std::move(prompt.ids));
    for (std::uint32_t i = 0; i < in.n; ++i) {
        sampling::Sampling own = sampling;
        own.seed = sampling.seed + i;
        auto& c = *request->completions.emplace_back(
            std::make_unique<Completion>(*request, i, ids, std::move(own), sdk::view(in.cache_salt)));
        c.output = std::make_unique<Output>(context.tokenizer, context.parser, output);
        if (sampling.masked)
            c.mask = std::make_unique<TokenMask>(config.vocab_size, allowed, c.sequence.sampling.stop_ids, grammar);
        c.sequence.owner = &c;
        c.sequence.priority = in.priority;
        if (i > 0) c.sequence.fork_of = &request->completions[0]->sequence;
        if (limit_reasoning) {
            c.sequence.hold_length = request->prompt_tokens + in.limits.max_reasoning_tokens;
            if (in.limits.max_reasoning_tokens == 0) {
                c.sequence.forced_index = request->prompt_tokens;
                c.sequence.forced_token = output.reasoning_end;
            }
        }
    }
    return request;
}

} // namespace dsv4::engine
