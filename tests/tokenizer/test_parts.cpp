// The parts on their own: merges and splits against the Hugging Face library, UTF-8 against Python, the alphabet.
#include "core/tokenizer/byte_level.hpp"
#include "core/tokenizer/utf8.hpp"
#include "tests/tokenizer/small_definition.hpp"
#include "tests/tokenizer/vocabularies.hpp"

namespace dsv4::tokenizer::testing {

TEST_CASE("random merge tables give the ids of the Hugging Face library") {
    const auto cases = expected("merge_expected.json");
    REQUIRE(cases.size() == 40);
    for (const auto& item : cases) {
        for (const bool as_pairs : {false, true}) { // both spellings of merges
            auto definition = small_definition();
            auto& model = definition["model"];
            model["vocab"].erase("ab");
            int next = 256;
            for (const auto& token : item.at("added")) model["vocab"][token.get<std::string>()] = next++;
            definition["added_tokens"] = nlohmann::json::array();
            model["merges"] = item.at("merges");
            if (!as_pairs) {
                for (auto& merge : model["merges"]) {
                    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
                }
            }
            const Tokenizer tokenizer = take(Tokenizer::parse(definition.dump()));
            for (std::size_t i = 0; i < item.at("texts").size(); ++i) {
                const auto text = item["texts"][i].get<std::string>();
                CAPTURE(text, item["merges"].dump());
                CHECK(take(tokenizer.encode(text)) == item["ids"][i].get<std::vector<TokenId>>());
            }
        }
    }
}

TEST_CASE("split patterns give the pieces of the Hugging Face library") {
    const auto cases = expected("split_expected.json");
    REQUIRE(cases.size() >= 40);
    for (const auto& item : cases) {
        auto definition = small_definition();
        auto steps = nlohmann::json::array();
        for (const auto& pattern : item.at("patterns")) steps.push_back(split_step(pattern));
        steps.push_back(byte_level_step(item.at("use_regex")));
        definition["pre_tokenizer"]["pretokenizers"] = steps;
        const Tokenizer tokenizer = take(Tokenizer::parse(definition.dump()));
        CAPTURE(item["patterns"].dump(), item["use_regex"].dump());
        CHECK(take(tokenizer.pieces(item.at("text").get<std::string>())) ==
              item.at("pieces").get<std::vector<std::string>>());
    }
}

TEST_CASE("the UTF-8 stream decodes as Python does, wherever it is cut") {
    for (const auto& item : expected("utf8_expected.json")) {
        const auto hex = item.at("hex").get<std::string>();
        const auto text = item.at("text").get<std::string>();
        CAPTURE(hex);
        std::string bytes;
        for (std::size_t i = 0; i < hex.size(); i += 2)
            bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
        Utf8Stream stream;
        for (std::size_t first = 0; first <= bytes.size(); ++first) {
            for (const std::size_t step : {std::size_t{1}, std::size_t{2}, bytes.size() + 1}) {
                std::string out;
                stream.feed(bytes.substr(0, first), out);
                for (std::size_t i = first; i < bytes.size(); i += step) {
                    stream.feed(bytes.substr(i, step), out);
                    REQUIRE(stream.pending_bytes() <= 3);
                    REQUIRE(utf8_valid_prefix(out) == out.size());
                }
                out += stream.flush();
                REQUIRE(out == text);
                REQUIRE(stream.pending_bytes() == 0);
            }
        }
        const bool is_valid = text.find("\xEF\xBF\xBD") == std::string::npos || hex == "efbfbd";
        CHECK((utf8_valid_prefix(bytes) == bytes.size()) == is_valid);
    }
}

TEST_CASE("a character split over tokens is never replaced") {
    Utf8Stream stream;
    const std::string rocket = "\xF0\x9F\x9A\x80";
    CHECK(stream.feed("go " + rocket.substr(0, 1)) == "go ");
    CHECK(stream.feed(rocket.substr(1, 2)).empty());
    CHECK(stream.pending_bytes() == 3);
    CHECK(stream.feed("").empty());
    CHECK(stream.feed(rocket.substr(3) + "!") == rocket + "!");
    CHECK(stream.flush().empty());
    CHECK(stream.feed(rocket.substr(0, 3)).empty());
    CHECK(stream.flush() == "\xEF\xBF\xBD");
}

TEST_CASE("every byte has one spelling in the byte-level alphabet") {
    CHECK(to_byte_level(" \n\tA") == "ĠĊĉA");
    CHECK(to_byte_level("é") == "Ã©");
    CHECK(to_byte_level(std::string("\0\x7F\x80\xA0\xAD\xFF", 6)) == "ĀġĢłŃÿ");
    std::string all;
    for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
    CHECK(from_byte_level(to_byte_level(all)) == all);
    for (const std::string outside : {" ", "\n", "\u00A0", "\u00AD", "\u0144", "｜", "中", "😀"}) {
        CAPTURE(outside);
        CHECK_FALSE(from_byte_level("a" + outside));
    }
}

TEST_CASE("an error message is never cut inside a character") {
    CHECK(utf8_excerpt("abc", 2) == "ab");
    CHECK(utf8_excerpt("a中", 3) == "a");
    CHECK(utf8_excerpt("a\xFFz") == "a");
}

} // namespace dsv4::tokenizer::testing
