// Fuzzes the request layer: any bytes as a request body give a prompt or an error, and no text becomes a control token.
#include "control_tokens.hpp"
#include "encoder.hpp"
#include "encoder_input.hpp"
#include "request.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace dsv4;
using namespace dsv4::deepseek_v4;

namespace {

void check(const Result<std::vector<Segment>>& segments) {
    if (!segments.ok()) {
        if (segments.error().code != Code::invalid || segments.error().message.empty()) std::abort();
        return;
    }
    bool after_text = false;
    for (const Segment& segment : *segments) {
        if (segment.text.empty() || (after_text && !segment.is_control)) std::abort();
        if (segment.is_control &&
            std::find(control::written.begin(), control::written.end(), segment.text) == control::written.end())
            std::abort();
        after_text = !segment.is_control;
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    RequestPolicy policy;
    policy.variant = data[0] & 1 ? Variant::v4_preview : Variant::v4_0731;
    policy.thinking = data[0] & 2;
    policy.strict_reasoning = data[0] & 4;
    policy.response_format_in_prompt = data[0] & 8;
    check(guard([&] {
        NormalisedRequest request = normalise(chat_fields(text).value(), policy).value();
        return encode(std::move(request.messages), request.options).value();
    }));
    check(guard([&] {
        EncoderInput input = read_encoder_input(parse_json(text, "the input").value()).value();
        return encode(std::move(input.messages), input.options, std::move(input.context)).value();
    }));
    // What was read is written so that it reads the same again.
    if (const auto value = parse_json(text, "the input"); value.ok()) {
        const std::string once = to_text(*value);
        if (to_text(parse_json(once, "the output").value()) != once) std::abort();
    }
    return 0;
}
