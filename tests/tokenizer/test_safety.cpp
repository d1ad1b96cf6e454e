// What must hold for any text: no control token from plain text, exact bytes back, long pieces in little time, threads.
#include "tests/tokenizer/vocabularies.hpp"

#include <chrono>
#include <random>
#include <thread>

namespace dsv4::tokenizer::testing {
namespace {

bool has_control(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    for (const TokenId id : ids) {
        if (tokenizer.is_control(id)) return true;
    }
    return false;
}

void check_no_injection(const Tokenizer& tokenizer) {
    std::vector<std::string> hostile = {
        "<｜DSML｜tool_calls>",
        "</｜DSML｜tool_calls>",
        "<｜DSML｜invoke name=\"x\">",
        "</｜DSML｜invoke>",
        "<｜DSML｜parameter name=\"x\" string=\"true\">",
        "</｜DSML｜parameter>",
        "<think>",
        "</think>",
        "<tool_result>",
        "</tool_result>",
        "<dsml:",
        "</dsml:invoke>",
    };
    for (const AddedToken& added : tokenizer.added_tokens()) hostile.push_back(added.content);
    std::size_t checked = 0;
    for (const std::string& text : hostile) {
        for (const std::string& form :
             {text, "a" + text, text + "b", " " + text + " ", text + text, "\n" + text + "\n"}) {
            const auto ids = take(tokenizer.encode(form));
            const bool is_safe = !has_control(tokenizer, ids) && joined_bytes(tokenizer, ids) == form;
            if (!is_safe) FAIL("plain text became a control token: " << form);
            // As a text segment between control tokens, also cut in two, it is the same text.
            const std::vector<Segment> cut = {{Segment::Kind::text, std::string_view(form).substr(0, form.size() / 2)},
                                              {Segment::Kind::text, std::string_view(form).substr(form.size() / 2)}};
            if (take(tokenizer.encode_segments(cut)) != ids) FAIL("cut text differs: " << form);
            ++checked;
        }
    }
    CHECK(checked == 6 * (12 + tokenizer.added_tokens().size()));
}

std::string random_text(std::mt19937& random) {
    const auto below = [&](std::uint32_t end) {
        return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random);
    };
    std::string text;
    const std::uint32_t count = below(200);
    for (std::uint32_t i = 0; i < count; ++i) {
        static constexpr std::uint32_t ends[] = {0x80, 0x80, 0x80, 0x800, 0x10000, 0x110000};
        std::uint32_t c = below(ends[below(6)]);
        if (c >= 0xD800 && c < 0xE000) c = '\n';
        const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
        if (c < 0x80) {
            put(c);
        } else if (c < 0x800) {
            put(0xC0 | c >> 6), put(0x80 | (c & 63));
        } else if (c < 0x10000) {
            put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
        } else {
            put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
        }
    }
    return text;
}

void check_round_trip(const Tokenizer& tokenizer) {
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
        const std::string text = random_text(random);
        const auto ids = take(tokenizer.encode(text));
        if (joined_bytes(tokenizer, ids) != text || has_control(tokenizer, ids)) {
            CAPTURE(i, text);
            FAIL("the text did not come back");
        }
        std::string pieces;
        for (const auto& piece : take(tokenizer.pieces(text))) pieces += piece;
        if (pieces != text) FAIL("pieces lost text");
    }
}

} // namespace

TEST_CASE("no spelling of a control token in plain text becomes one: tiny") { check_no_injection(tiny()); }
TEST_CASE("no spelling of a control token in plain text becomes one: V4") { check_no_injection(v4()); }
TEST_CASE("random text comes back byte for byte: tiny") { check_round_trip(tiny()); }
TEST_CASE("random text comes back byte for byte: V4") { check_round_trip(v4()); }

TEST_CASE("control segments are taken by exact name only") {
    const Tokenizer tokenizer = tiny();
    const std::vector<Segment> good = {{Segment::Kind::control, "<think>"}, {Segment::Kind::text, "<think>"}};
    const auto ids = take(tokenizer.encode_segments(good));
    REQUIRE(ids.size() > 2);
    CHECK(ids[0] == 5);
    CHECK(std::vector<TokenId>(ids.begin() + 1, ids.end()) == take(tokenizer.encode("<think>")));
    for (const std::string name : {"<thin>", "think", "<think> ", "", "a", "<｜User>"}) {
        const std::vector<Segment> bad = {{Segment::Kind::control, name}};
        const auto result = tokenizer.encode_segments(bad);
        CAPTURE(name);
        REQUIRE_FALSE(result.ok());
        CHECK(result.error().code == Code::invalid);
        CHECK_THAT(result.error().message, ContainsSubstring("'" + name + "'"));
        CHECK_FALSE(tokenizer.control_id(name));
    }
}

TEST_CASE("text that is not UTF-8 is refused with its place") {
    const Tokenizer tokenizer = tiny();
    for (const std::string tail :
         {"\xFF", "\x80", "\xC3", "\xE2\x82", "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80"}) {
        const std::string text = "0123456789" + tail;
        const std::vector<Segment> segments = {{Segment::Kind::text, text}};
        for (const auto& error : {tokenizer.encode(text).error(), tokenizer.encode_with_control(text).error(),
                                  tokenizer.encode_segments(segments).error(), tokenizer.pieces(text).error()}) {
            CHECK(error.code == Code::invalid);
            CHECK_THAT(error.message, ContainsSubstring("byte 10"));
        }
    }
    // A character cut by a segment boundary is whole again before anything is checked.
    const std::vector<Segment> halves = {{Segment::Kind::text, "\xE4\xB8"}, {Segment::Kind::text, "\xAD"}};
    CHECK(take(tokenizer.encode_segments(halves)) == take(tokenizer.encode("中")));
}

TEST_CASE("ids outside the vocabulary have no bytes and are no control tokens") {
    const Tokenizer tokenizer = tiny();
    CHECK(tokenizer.vocab_size() == 2048);
    for (const TokenId id : {-1, -2147483647 - 1, 2048, 2147483647}) {
        CHECK(tokenizer.bytes(id).empty());
        CHECK_FALSE(tokenizer.is_control(id));
    }
}

TEST_CASE("one piece of a megabyte takes little time") {
    const Tokenizer tokenizer = v4();
    std::mt19937 random(3);
    std::string letters(std::size_t{1} << 20, 'a');
    for (char& c : letters) c = static_cast<char>('a' + random() % 26);
    for (const std::string& text : {std::string(std::size_t{1} << 20, 'a'), std::string(std::size_t{1} << 20, ' '),
                                    std::string(std::size_t{1} << 20, '='), letters}) {
        const auto start = std::chrono::steady_clock::now();
        const auto ids = take(tokenizer.encode(text));
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        CHECK(joined_bytes(tokenizer, ids) == text);
        CHECK(spent.count() < 20.0); // 0.3 s in a Release build; a quadratic loop would need hours
    }
}

TEST_CASE("threads share one tokenizer") {
    const Tokenizer tokenizer = tiny();
    const auto data = expected("tiny_expected.json");
    std::vector<std::pair<std::string, std::vector<TokenId>>> cases;
    for (const auto& item : data.at("cases")) cases.emplace_back(item.at("text"), item.at("ids"));
    std::vector<int> wrong(4, 0);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
        threads.emplace_back([&, t] {
            for (int round = 0; round < 5; ++round) {
                for (const auto& [text, ids] : cases) {
                    const auto result = tokenizer.encode(text);
                    if (!result.ok() || *result != ids) ++wrong[t];
                }
            }
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4, 0));
}

} // namespace dsv4::tokenizer::testing
