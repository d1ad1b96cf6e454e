// The encoder and the request layer against every committed encoding vector.
#include "tests/support/catch.hpp"

#include "encoder.hpp"
#include "encoder_input.hpp"
#include "names.hpp"
#include "request.hpp"
#include "vector_file.hpp"

using namespace dsv4;
using namespace dsv4::deepseek_v4;
using test::Json;

namespace {

Json segments_json(const std::vector<Segment>& segments) {
    Json out = Json::array();
    for (const Segment& s : segments) out.push_back(Json::array({s.is_control ? "ctl" : "txt", s.text}));
    return out;
}

// The vector's `input`, or a member of it, with number spelling intact.
JsonValue input_of(const test::VectorFile& vector) {
    const JsonValue whole = parse_json(vector.text, vector.name).value();
    return *whole.find("input");
}

} // namespace

TEST_CASE("the encoder reproduces every message-layer vector") {
    const auto vectors = test::read_vectors("encoding", "enc-");
    REQUIRE(vectors.size() == 53);
    for (const auto& vector : vectors) {
        INFO(vector.name << ": " << vector.json["why"]);
        const Json& expected = vector.json["expected"];
        const auto segments = guard([&] {
            EncoderInput input = read_encoder_input(input_of(vector)).value();
            return encode(input.messages, input.options, input.context).value();
        });
        if (expected.contains("error")) {
            REQUIRE_FALSE(segments.ok());
            CHECK(segments.error().code == Code::invalid);
            CHECK_FALSE(segments.error().message.empty());
            continue;
        }
        REQUIRE(segments.ok());
        CHECK(segments_json(*segments) == expected["segments"]);
        CHECK(prompt_text(*segments) == expected["prompt"].get<std::string>());
    }
}

TEST_CASE("the request layer reproduces every request vector") {
    const auto vectors = test::read_vectors("encoding", "req-");
    REQUIRE(vectors.size() == 17);
    for (const auto& vector : vectors) {
        INFO(vector.name << ": " << vector.json["why"]);
        const Json& expected = vector.json["expected"];
        const std::string body = to_text(*input_of(vector).find("request"));
        const auto request = guard([&] { return normalise(chat_fields(body).value(), RequestPolicy{}).value(); });
        if (expected.contains("error")) {
            REQUIRE(expected["http_status"] == 400);
            REQUIRE_FALSE(request.ok());
            CHECK(request.error().code == Code::invalid);
            CHECK(error_parameter(request.error()) == expected["param"].get<std::string>());
            continue;
        }
        REQUIRE(request.ok());
        const auto segments = encode(request->messages, request->options);
        REQUIRE(segments.ok());
        CHECK(segments_json(*segments) == expected["segments"]);
        CHECK(prompt_text(*segments) == expected["prompt"].get<std::string>());
        const Json& resolved = expected["resolved"];
        CHECK(name_of(request->options.mode) == resolved["thinking_mode"].get<std::string>());
        CHECK(
            name_of(request->options.effort) ==
            (resolved["reasoning_effort"].is_null() ? std::string() : resolved["reasoning_effort"].get<std::string>()));
    }
}

TEST_CASE("prompts with effort have the reported lengths") {
    // Code points of the prompt for one user message `test`, as reported for the released encoder.
    const auto length = [](Effort effort) {
        Message message;
        message.content = "test";
        EncodeOptions options;
        options.effort = effort;
        std::size_t points = 0;
        for (const char c : prompt_text(encode({message}, options).value())) points += (c & 0xC0) != 0x80;
        return points;
    };
    CHECK(length(Effort::low) == 53);
    CHECK(length(Effort::high) == 529);
    CHECK(length(Effort::max) == 579);
}
