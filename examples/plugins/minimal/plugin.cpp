// The smallest useful parser: the messages' JSON is the prompt, the completion is content.
#include <dsv4/sdk/parser.hpp>

namespace {

using dsv4::sdk::view;

class Stream final : public dsv4::sdk::CompletionStream {
  public:
    void feed(std::span<const dsv4_piece> pieces, const Sink&) override {
        for (const auto& piece : pieces)
            if (!piece.is_control) text_ += view(piece.bytes);
    }
    // Everything at once: a piece may end inside a character, and deltas are whole characters.
    dsv4_completion_end finish(dsv4_stopped_by stopped_by, const Sink& sink) override {
        if (!text_.empty()) sink(DSV4_DELTA_CONTENT, 0, text_);
        dsv4_completion_end end{};
        end.struct_size = sizeof end;
        end.finish = stopped_by == DSV4_STOPPED_LENGTH ? DSV4_FINISH_LENGTH : DSV4_FINISH_STOP;
        return end;
    }

  private:
    std::string text_;
};

class Minimal final : public dsv4::sdk::Parser {
  public:
    Minimal(const dsv4::sdk::Host&, const dsv4::sdk::Options&) : Parser({}) {}

    dsv4::sdk::Prompt encode(const dsv4_chat_request& request) const override {
        dsv4::sdk::Prompt prompt;
        prompt.segments.push_back({DSV4_SEGMENT_TEXT, std::string(view(request.messages))});
        return prompt;
    }
    std::unique_ptr<dsv4::sdk::CompletionStream> stream(const dsv4_completion_options&) const override {
        return std::make_unique<Stream>();
    }
};

} // namespace

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.0.0",
                              .licence = "Apache-2.0",
                              .status = DSV4_STATUS_BETA,
                              .posture = DSV4_POSTURE_UNTRUSTED_INPUT}),
            Minimal)
