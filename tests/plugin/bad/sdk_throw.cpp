// A class of the C++ SDK whose constructor throws.
#include <dsv4/sdk/parser.hpp>

#include <stdexcept>

namespace {
class Throws final : public dsv4::sdk::Parser {
  public:
    Throws(const dsv4::sdk::Host&, const dsv4::sdk::Options&) : Parser({}) {
        throw std::runtime_error("the constructor gave up");
    }
    dsv4::sdk::Prompt encode(const dsv4_chat_request&) const override { return {}; }
    std::unique_ptr<dsv4::sdk::CompletionStream> stream(const dsv4_completion_options&) const override {
        return nullptr;
    }
};
} // namespace

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.0.0", .licence = "Apache-2.0"}), Throws)
