// JSON reading and writing against Python's json module, and its limits.
#include "tests/support/catch.hpp"

#include "json_text.hpp"
#include "vector_file.hpp"

using namespace dsv4;
using namespace dsv4::deepseek_v4;
using test::Json;

TEST_CASE("JSON text comes out as Python writes it") {
    std::ifstream file(DSV4_SOURCE_DIR "/tests/parser/data/json_cases.json"); // made by make_json_cases.py beside it
    const Json cases = Json::parse(file);
    REQUIRE(cases.size() > 300);
    for (const Json& c : cases) {
        const std::string text = c["in"];
        INFO(text);
        const Result<JsonValue> value = parse_json(text, "the text");
        CHECK(is_strict_json(text) == value.ok());
        if (c["out"].is_null()) {
            REQUIRE_FALSE(value.ok());
            CHECK(value.error().code == Code::invalid);
        } else {
            REQUIRE(value.ok());
            CHECK(to_text(*value) == c["out"].get<std::string>());
        }
    }
}

TEST_CASE("JSON errors say what is wrong with which text") {
    const auto message = [](std::string_view text) { return parse_json(text, "tools").error().message; };
    CHECK(message("[1,") == "tools is not valid JSON near byte 3");
    CHECK_THAT(message(std::string(300, '[')), ContainsSubstring("tools nests deeper than 256"));
    CHECK_THAT(message("{\"a\": 1e999}"), ContainsSubstring("tools holds a number too large"));
    CHECK_FALSE(parse_json("\"\xff\"", "tools").ok());
    CHECK_FALSE(parse_json("\"\xed\xa0\x80\"", "tools").ok());
}

TEST_CASE("JSON nests as deep as the limit and no deeper") {
    const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
    CHECK(parse_json(nested(json_max_depth), "x").ok());
    CHECK(is_strict_json(nested(json_max_depth)));
    CHECK_FALSE(parse_json(nested(json_max_depth + 1), "x").ok());
    CHECK_FALSE(is_strict_json(nested(json_max_depth + 1)));
    // A million levels must not cost a million stack frames.
    CHECK_FALSE(parse_json(std::string(1000000, '['), "x").ok());
}

TEST_CASE("an object of many keys is read in linear time") {
    std::string text = "{";
    for (int i = 0; i < 200000; ++i) text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
    text += "}";
    const JsonValue value = parse_json(text, "x").value();
    CHECK(value.members().size() == 200000);
    CHECK(value.members().back().first == "k199999");
}
