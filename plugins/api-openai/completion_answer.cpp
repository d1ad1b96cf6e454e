// Text completions: raw text and the older form of logprobs.
#include "answer.hpp"

#include "json_text.hpp"
#include "logprob_text.hpp"

#include "dsv4/sdk/error.hpp"

namespace dsv4::openai {
namespace {

struct Choice {
    std::string text;
    std::string reason = "stop", stop;
    LegacyLogprobs logprobs;
    std::string token_ids; // joined by commas
};

class CompletionAnswer final : public Answer {
  public:
    CompletionAnswer(const Call& call, AnswerIdentity identity, const dsv4_host* host)
        : Answer(call, std::move(identity), host, "text_completion", "text_completion"),
          names_{host, call.tokens_as_ids},
          choices_(call.choices()) {}

  private:
    void begin(std::uint32_t, std::string&) override {}

    void tokens(std::uint32_t index, const dsv4_event& event, std::string& out) override {
        Choice& choice = choices_[index];
        for (std::uint32_t i = 0; i < event.token_count; ++i) {
            if (call_.logprobs) choice.logprobs.add(event.tokens[i], names_);
            if (call_.return_token_ids) {
                if (!choice.token_ids.empty()) choice.token_ids += ',';
                append_number(choice.token_ids, std::int64_t{event.tokens[i].id});
            }
        }
        deltas(index, event, out);
    }

    void deltas(std::uint32_t index, const dsv4_event& event, std::string& out) {
        for (std::uint32_t i = 0; i < event.delta_count; ++i) {
            const std::string_view text = sdk::view(event.deltas[i].text);
            if (text.empty()) continue;
            if (call_.stream)
                chunk(index, text, false, out);
            else
                choices_[index].text += text;
        }
    }

    void chunk(std::uint32_t index, std::string_view text, bool last, std::string& out) {
        Choice& choice = choices_[index];
        open_chunk(index, out);
        out += R"(,"text":)";
        append_quoted(out, text);
        append_extras(choice, out);
        choice.logprobs.clear();
        choice.token_ids.clear();
        if (last)
            append_ending(choice, out);
        else
            out += R"(,"finish_reason":null)";
        close_chunk(out);
    }

    void append_extras(const Choice& choice, std::string& out) const {
        if (choice.logprobs.empty()) {
            out += R"(,"logprobs":null)";
        } else {
            out += R"(,"logprobs":)";
            choice.logprobs.append(out);
        }
        if (call_.return_token_ids) {
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
        deltas(index, event, out);
        Choice& choice = choices_[index];
        choice.reason = reason;
        choice.stop = sdk::view(event.stop);
        if (call_.stream) chunk(index, {}, true, out);
    }

    void append_choice(std::uint32_t index, std::string& out) const override {
        const Choice& choice = choices_[index];
        out += R"(,"text":)";
        append_quoted(out, choice.text);
        append_extras(choice, out);
        append_ending(choice, out);
    }

    TokenNames names_;
    std::vector<Choice> choices_;
};

} // namespace

std::unique_ptr<Answer> make_completion_answer(const Call& call, AnswerIdentity identity, const dsv4_host* host) {
    return std::make_unique<CompletionAnswer>(call, std::move(identity), host);
}

} // namespace dsv4::openai
