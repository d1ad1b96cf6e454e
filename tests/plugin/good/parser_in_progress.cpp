// A parser that is not finished and says so.
#include <dsv4/sdk/parser.hpp>

namespace {
class InProgress final : public dsv4::sdk::Parser {
  public:
    InProgress(const dsv4::sdk::Host&, const dsv4::sdk::Options&) : Parser({}) {}
    dsv4::sdk::Prompt encode(const dsv4_chat_request&) const override { return {}; }
    std::unique_ptr<dsv4::sdk::CompletionStream> stream(const dsv4_completion_options&) const override {
        throw dsv4::Failure(dsv4::Code::unsupported, "this parser reads no completions yet");
    }
};
} // namespace

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.2.3",
                              .licence = "Apache-2.0",
                              .status = DSV4_STATUS_WIP,
                              .posture = DSV4_POSTURE_UNTRUSTED_INPUT}),
            InProgress)
