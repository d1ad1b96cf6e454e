// Chat completions: deltas to stream chunks, or to messages.
#include "answer.hpp"

#include "json_text.hpp"
#include "logprob_text.hpp"
#include "random_id.hpp"

#include "dsv4/sdk/error.hpp"

namespace dsv4::openai {
namespace {

constexpr std::string_view reasoning_open = "<think>", reasoning_close = "</think>";

struct ToolCall {
    std::string id, name, arguments;
};

struct Choice {
    std::string content, reasoning;
    std::vector<ToolCall> calls;
    std::string reason = "stop", stop;
    std::string content_logprobs, reasoning_logprobs; // entries not sent yet, joined by commas
    std::string token_ids;                            // not sent yet, joined by commas
    bool in_reasoning_tags = false;                   // reasoning_in_content: the closing tag is due
};

// A comma before every entry but the first.
std::string& next_entry(std::string& list) {
    if (!list.empty()) list += ',';
    return list;
}

class ChatAnswer final : public Answer {
  public:
    ChatAnswer(const Call& call, AnswerIdentity identity, const Settings& settings, const dsv4_host* host)
        : Answer(call, std::move(identity), host, "chat.completion.chunk", "chat.completion"),
          names_{host, call.tokens_as_ids},
          choices_(call.choices()) {
        if (settings.reasoning_field != ReasoningField::reasoning) reasoning_fields_.push_back("reasoning_content");
        if (settings.reasoning_field != ReasoningField::reasoning_content) reasoning_fields_.push_back("reasoning");
    }

  private:
    void begin(std::uint32_t index, std::string& out) override {
        if (!call_.stream) return;
        open_chunk(index, out);
        out += R"(,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null)";
        close_chunk(out);
    }

    void tokens(std::uint32_t index, const dsv4_event& event, std::string& out) override {
        Choice& choice = choices_[index];
        for (std::uint32_t i = 0; i < event.token_count; ++i) {
            const dsv4_token& token = event.tokens[i];
            if (call_.return_token_ids) append_number(next_entry(choice.token_ids), std::int64_t{token.id});
            if (!call_.logprobs) continue;
            if (token.part == DSV4_DELTA_CONTENT)
                append_chat_logprob(next_entry(choice.content_logprobs), token, names_);
            else if (token.part == DSV4_DELTA_REASONING && call_.include_reasoning)
                append_chat_logprob(next_entry(reasoning_list(choice)), token, names_);
        }
        deltas(index, event, out);
    }

    void deltas(std::uint32_t index, const dsv4_event& event, std::string& out) {
        for (std::uint32_t i = 0; i < event.delta_count && !ended_early(index); ++i) {
            const dsv4_delta& delta = event.deltas[i];
            const std::string_view text = sdk::view(delta.text);
            switch (delta.kind) {
            case DSV4_DELTA_REASONING: reasoning(index, text, out); break;
            case DSV4_DELTA_CONTENT: content(index, text, out); break;
            case DSV4_DELTA_TOOL_BEGIN: tool_begin(index, text, out); break;
            case DSV4_DELTA_TOOL_ARGUMENTS: tool_arguments(index, text, out); break;
            default: break; // a kind of a newer host
            }
        }
    }

    std::string& reasoning_list(Choice& choice) const {
        return call_.reasoning_in_content ? choice.content_logprobs : choice.reasoning_logprobs;
    }

    void reasoning(std::uint32_t index, std::string_view text, std::string& out) {
        Choice& choice = choices_[index];
        if (text.empty() || !call_.include_reasoning) return;
        if (call_.reasoning_in_content) {
            if (!choice.in_reasoning_tags) content_text(index, reasoning_open, out);
            choice.in_reasoning_tags = true;
            content_text(index, text, out);
            return;
        }
        if (!call_.stream) {
            choice.reasoning += text;
            return;
        }
        open_chunk(index, out);
        const char* lead = R"(,"delta":{")";
        for (const std::string_view field : reasoning_fields_) {
            out += lead;
            out += field;
            out += R"(":)";
            append_quoted(out, text);
            lead = R"(,")";
        }
        close_delta(choice, out);
    }

    void close_tags(std::uint32_t index, std::string& out) {
        if (!choices_[index].in_reasoning_tags) return;
        choices_[index].in_reasoning_tags = false;
        content_text(index, reasoning_close, out);
    }

    void content(std::uint32_t index, std::string_view text, std::string& out) {
        if (text.empty()) return;
        close_tags(index, out);
        content_text(index, text, out);
    }

    void content_text(std::uint32_t index, std::string_view text, std::string& out) {
        Choice& choice = choices_[index];
        if (!call_.stream) {
            choice.content += text;
            return;
        }
        open_chunk(index, out);
        out += R"(,"delta":{"content":)";
        append_quoted(out, text);
        close_delta(choice, out);
    }

    void tool_begin(std::uint32_t index, std::string_view name, std::string& out) {
        Choice& choice = choices_[index];
        close_tags(index, out);
        if (!call_.parallel_tool_calls && !choice.calls.empty()) {
            // One call was asked for; the rest of this completion is not.
            end_choice_early(index);
            if (call_.choices() == 1) stop_asking();
            return;
        }
        choice.calls.push_back({"call_" + random_hex(24), std::string(name), {}});
        if (!call_.stream) return;
        open_tool_delta(index, out);
        out += R"(,"id":)";
        append_quoted(out, choice.calls.back().id);
        out += R"(,"type":"function","function":{"name":)";
        append_quoted(out, name);
        out += R"(,"arguments":""}}])";
        close_delta(choice, out);
    }

    void tool_arguments(std::uint32_t index, std::string_view text, std::string& out) {
        Choice& choice = choices_[index];
        if (text.empty() || choice.calls.empty()) return;
        if (!call_.stream) {
            choice.calls.back().arguments += text;
            return;
        }
        open_tool_delta(index, out);
        out += R"(,"function":{"arguments":)";
        append_quoted(out, text);
        out += "}}]";
        close_delta(choice, out);
    }

    void open_tool_delta(std::uint32_t index, std::string& out) const {
        open_chunk(index, out);
        out += R"(,"delta":{"tool_calls":[{"index":)";
        append_number(out, std::int64_t(choices_[index].calls.size()) - 1);
    }

    // Closes the delta object and writes the choice's other members; what they say is sent once.
    void close_delta(Choice& choice, std::string& out) const {
        out += '}';
        append_extras(choice, out);
        choice.content_logprobs.clear();
        choice.reasoning_logprobs.clear();
        choice.token_ids.clear();
        out += R"(,"finish_reason":null)";
        close_chunk(out);
    }

    void append_extras(const Choice& choice, std::string& out) const {
        if (!call_.logprobs || (call_.stream && choice.content_logprobs.empty() && choice.reasoning_logprobs.empty())) {
            out += R"(,"logprobs":null)";
        } else {
            out += R"(,"logprobs":{"content":[)";
            out += choice.content_logprobs;
            out += ']';
            if (!choice.reasoning_logprobs.empty()) {
                out += R"(,"reasoning_content":[)";
                out += choice.reasoning_logprobs;
                out += ']';
            }
            out += '}';
        }
        if (call_.return_token_ids && !(call_.stream && choice.token_ids.empty())) {
            out += R"(,"token_ids":[)";
            out += choice.token_ids;
            out += ']';
        }
    }

    static void append_ending(const Choice& choice, std::string& out) {
        out += R"(,"finish_reason":)";
        append_quoted(out, choice.reason);
        out += R"(,"stop_reason":)";
        if (choice.stop.empty())
            out += "null";
        else
            append_quoted(out, choice.stop);
    }

    void finish(std::uint32_t index, const dsv4_event& event, std::string_view reason, std::string& out) override {
        Choice& choice = choices_[index];
        deltas(index, event, out); // what the parser had held back
        close_tags(index, out);
        choice.reason = reason;
        choice.stop = sdk::view(event.stop);
        if (!call_.stream) return;
        open_chunk(index, out);
        out += R"(,"delta":{})";
        append_extras(choice, out);
        append_ending(choice, out);
        close_chunk(out);
    }

    void append_choice(std::uint32_t index, std::string& out) const override {
        const Choice& choice = choices_[index];
        out += R"(,"message":{"role":"assistant","content":)";
        if (choice.content.empty() && !choice.calls.empty())
            out += "null";
        else
            append_quoted(out, choice.content);
        if (!choice.reasoning.empty())
            for (const std::string_view field : reasoning_fields_) {
                out += ",\"";
                out += field;
                out += "\":";
                append_quoted(out, choice.reasoning);
            }
        const char* lead = R"(,"tool_calls":[{"id":)";
        for (const ToolCall& call : choice.calls) {
            out += lead;
            append_quoted(out, call.id);
            out += R"(,"type":"function","function":{"name":)";
            append_quoted(out, call.name);
            out += R"(,"arguments":)";
            append_quoted(out, call.arguments);
            out += "}}";
            lead = R"(,{"id":)";
        }
        if (!choice.calls.empty()) out += ']';
        out += '}';
        append_extras(choice, out);
        append_ending(choice, out);
    }

    TokenNames names_;
    std::vector<std::string_view> reasoning_fields_;
    std::vector<Choice> choices_;
};

} // namespace

std::unique_ptr<Answer> make_chat_answer(const Call& call, AnswerIdentity identity, const Settings& settings,
                                         const dsv4_host* host) {
    return std::make_unique<ChatAnswer>(call, std::move(identity), settings, host);
}

} // namespace dsv4::openai
