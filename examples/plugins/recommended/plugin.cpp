// Glue between the transcript library and the engine.
#include "transcript.hpp"

#include <dsv4/sdk/parser.hpp>

namespace {

using dsv4::sdk::view;

class Stream final : public dsv4::sdk::CompletionStream {
  public:
    void feed(std::span<const dsv4_piece> pieces, const Sink& sink) override {
        for (const auto& piece : pieces)
            if (!piece.is_control) emit(characters_.feed(view(piece.bytes)), sink);
    }
    dsv4_completion_end finish(dsv4_stopped_by stopped_by, const Sink& sink) override {
        emit(characters_.finish(), sink);
        dsv4_completion_end end{};
        end.struct_size = sizeof end;
        end.finish = stopped_by == DSV4_STOPPED_LENGTH ? DSV4_FINISH_LENGTH : DSV4_FINISH_STOP;
        return end;
    }

  private:
    static void emit(const std::string& text, const Sink& sink) {
        if (!text.empty()) sink(DSV4_DELTA_CONTENT, 0, text);
    }
    transcript::Characters characters_;
};

class Transcript final : public dsv4::sdk::Parser {
  public:
    Transcript(const dsv4::sdk::Host&, const dsv4::sdk::Options& options)
        : Parser({}),
          labels_{options.text("user_label"), options.text("assistant_label")},
          max_messages_(std::size_t(options.integer("max_messages"))) {
        if (labels_.user == labels_.assistant)
            throw dsv4::Failure(dsv4::Code::invalid, "user_label and assistant_label are the same text",
                                "give them different ones");
    }
    dsv4::sdk::Prompt encode(const dsv4_chat_request& request) const override {
        if (request.tools.size)
            throw dsv4::Failure(dsv4::Code::invalid, "a transcript has no tools", "send the request without `tools`");
        dsv4::sdk::Prompt prompt;
        prompt.segments.push_back(
            {DSV4_SEGMENT_TEXT, transcript::write(view(request.messages), labels_, max_messages_)});
        return prompt;
    }
    std::unique_ptr<dsv4::sdk::CompletionStream> stream(const dsv4_completion_options&) const override {
        return std::make_unique<Stream>();
    }

  private:
    transcript::Labels labels_;
    std::size_t max_messages_;
};

} // namespace

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.0.0", .licence = "Apache-2.0", .posture = DSV4_POSTURE_UNTRUSTED_INPUT}),
            Transcript)
