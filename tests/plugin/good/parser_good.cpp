// A correct parser that hands its options and the host's services back as text, for the tests to look at.
#include <dsv4/sdk/parser.hpp>

#include <cstring>
#include <numeric>

namespace {

class Stream final : public dsv4::sdk::CompletionStream {
  public:
    void feed(std::span<const dsv4_piece> pieces, const Sink& sink) override {
        for (const auto& p : pieces) sink(DSV4_DELTA_CONTENT, 0, dsv4::sdk::view(p.bytes));
    }
    dsv4_completion_end finish(dsv4_stopped_by, const Sink&) override {
        dsv4_completion_end end{};
        end.struct_size = sizeof end;
        end.finish = DSV4_FINISH_STOP;
        return end;
    }
};

class Good final : public dsv4::sdk::Parser {
  public:
    Good(const dsv4::sdk::Host& host, const dsv4::sdk::Options& options) : Parser({"<end>"}), host_(host) {
        if (options.flag("fail")) throw dsv4::Failure(dsv4::Code::environment, "the echo is broken", "mend the echo");
        said_ = options.text("greeting") + "|" + std::to_string(options.integer("repeat")) + "|" +
                std::to_string(options.number("share")) + "|" + (options.flag("loud") ? "loud" : "quiet") + "|" +
                std::to_string(options.integer("budget")) + "|" + options.text("mode");
        host_.info("made\nwith a forged line");
    }
    dsv4::sdk::Prompt encode(const dsv4_chat_request& request) const override {
        dsv4::sdk::Prompt prompt;
        prompt.segments.push_back({DSV4_SEGMENT_TEXT, said_});
        std::vector<std::uint64_t> squares(1000);
        host_.parallel_for(1000, [&](std::uint32_t i) { squares[i] = std::uint64_t(i) * i; });
        prompt.segments.push_back(
            {DSV4_SEGMENT_TEXT, std::to_string(std::accumulate(squares.begin(), squares.end(), std::uint64_t{0}))});
        if (dsv4::sdk::view(request.messages) == "throw")
            throw dsv4::Failure(dsv4::Code::invalid, "these messages cannot be read");
        return prompt;
    }
    std::unique_ptr<dsv4::sdk::CompletionStream> stream(const dsv4_completion_options&) const override {
        return std::make_unique<Stream>();
    }

  private:
    dsv4::sdk::Host host_;
    std::string said_;
};

} // namespace

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.2.3",
                              .licence = "Apache-2.0",
                              .status = DSV4_STATUS_BETA,
                              .posture = DSV4_POSTURE_UNTRUSTED_INPUT}),
            Good)
