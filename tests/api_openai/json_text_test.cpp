// JSON text: slices, repaired escapes, and strings that any reader understands; nlohmann is the judge.
#include "json_text.hpp"
#include "tests/support/catch.hpp"

#include "dsv4/sdk/result.hpp"

#include <nlohmann/json.hpp>

#include <random>

using namespace dsv4;
using namespace dsv4::openai;
using nlohmann::json;

TEST_CASE("members are slices with their spelling") {
    const std::string body =
        "\xef\xbb\xbf { \"a\" : 1.50 ,\"b\":[1 , 2],\"c\":{\"x\" :\"}\"}, \"d\\n\":\"q\\\"\" ,\"e\":-0,"
        "\"f\": true\n,\"g\":1E+2}";
    const auto members = object_members(body, "it");
    CHECK(members.size() == 7);
    CHECK(members.at("a") == "1.50");
    CHECK(members.at("b") == "[1 , 2]");
    CHECK(members.at("c") == "{\"x\" :\"}\"}");
    CHECK(members.at("d\n") == "\"q\\\"\"");
    CHECK(members.at("e") == "-0");
    CHECK(members.at("f") == "true");
    CHECK(members.at("g") == "1E+2");
    CHECK(object_members("{}", "it").empty());
    CHECK(array_elements("[ 1 ,\"a,b\", [2,3] ,{\"x\":[1]},4 ]") ==
          std::vector<std::string_view>{"1", "\"a,b\"", "[2,3]", "{\"x\":[1]}", "4"});
    CHECK(array_elements("[]").empty());
    CHECK(array_elements("{}").empty());
}

TEST_CASE("slices of random documents parse to the same values") {
    std::mt19937 random(7);
    const std::function<json(int)> make = [&](int depth) -> json {
        switch (depth > 0 ? random() % 7 : random() % 5) {
        case 0: return nullptr;
        case 1: return random() % 2 == 0;
        case 2: return std::int64_t(random()) - (1 << 30);
        case 3: return double(random()) / 1024.0;
        case 4: return std::string(random() % 8, "ab\"\\\n\t,:]}{["[random() % 12]);
        case 5: {
            json list = json::array();
            for (std::size_t i = 0; i < random() % 5; ++i) list.push_back(make(depth - 1));
            return list;
        }
        default: {
            json object = json::object();
            for (std::size_t i = 0; i < random() % 5; ++i) object["k" + std::to_string(random() % 9)] = make(depth - 1);
            return object;
        }
        }
    };
    for (int i = 0; i < 2000; ++i) {
        json object = json::object();
        for (int k = 0; k < 4; ++k) object["m" + std::to_string(k)] = make(3);
        const std::string text = object.dump(i % 3 == 0 ? 2 : -1);
        const auto members = object_members(text, "it");
        REQUIRE(members.size() == object.size());
        for (const auto& [key, value] : object.items()) {
            REQUIRE(json::parse(members.at(key)) == value);
            if (!value.is_array()) continue;
            const auto elements = array_elements(members.at(key));
            REQUIRE(elements.size() == value.size());
            for (std::size_t e = 0; e < elements.size(); ++e) REQUIRE(json::parse(elements[e]) == value[e]);
        }
    }
}

TEST_CASE("written strings are valid JSON whatever the bytes, and exact where they are UTF-8") {
    std::mt19937 random(11);
    for (int i = 0; i < 20000; ++i) {
        std::string bytes;
        for (std::size_t n = random() % 12; n > 0; --n) bytes += static_cast<char>(random());
        std::string out;
        append_quoted(out, bytes);
        const json read = json::parse(out, nullptr, false);
        REQUIRE(read.is_string());
        // nlohmann refuses to write what is not UTF-8; where it agrees, the text must come back as it was.
        try {
            (void)json(bytes).dump();
            REQUIRE(read.get<std::string>() == bytes);
        } catch (const json::type_error&) {
            REQUIRE(read.get<std::string>().find("\xef\xbf\xbd") != std::string::npos);
        }
    }
    std::string out;
    append_quoted(out, std::string("\0\x1f\x7f\"\\/\n\r\t\b\f", 11));
    CHECK(json::parse(out).get<std::string>() == std::string("\0\x1f\x7f\"\\/\n\r\t\b\f", 11));
}

TEST_CASE("numbers") {
    const auto spelled = [](auto value) {
        std::string out;
        append_number(out, value);
        return out;
    };
    CHECK(spelled(std::int64_t{-5}) == "-5");
    CHECK(spelled(0.1f) == "0.1");
    CHECK(spelled(0.5) == "0.5");
    CHECK(spelled(std::numeric_limits<double>::quiet_NaN()) == "null");
    CHECK(json::parse(spelled(1e300)).get<double>() == 1e300);
}

TEST_CASE("depth is limited") {
    const auto nested = [](std::size_t depth) {
        return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
    };
    CHECK_NOTHROW(object_members(nested(128), "it"));
    CHECK_THROWS_WITH(object_members(nested(129), "it"), ContainsSubstring("nests deeper than 128"));
    CHECK_THROWS(object_members("{\"a\":" + std::string(1'000'000, '['), "it"));
}
