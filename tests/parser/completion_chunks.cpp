// Property: however random markup is cut into chunks, the deltas add up to the result of the whole text.
#include "tests/support/catch.hpp"

#include "completion_parser.hpp"
#include "message_reader.hpp"

#include <random>

using namespace dsv4::deepseek_v4;

namespace {

constexpr std::string_view fragments[] = {std::string_view("\0", 1),
                                          "<｜User｜>",
                                          "<｜place▁holder▁no▁7｜>",
                                          "<｜",
                                          "｜>",
                                          "<|EOT|>",
                                          "<think>",
                                          "</think>",
                                          "｜DSML｜",
                                          "<｜DSML｜tool_calls>",
                                          "</｜DSML｜tool_calls>",
                                          "<｜DSML｜invoke name=\"f\">",
                                          "<｜DSML｜invoke name=\"g\">",
                                          "</｜DSML｜invoke>",
                                          "<｜DSML｜parameter name=\"a\" string=\"true\">",
                                          "<｜DSML｜parameter name=\"b\" string=\"false\">",
                                          "<｜DSML｜parameter name=\"arguments\">",
                                          "</｜DSML｜parameter>",
                                          "<｜DSML｜ calls>",
                                          "</｜DSML｜ invoke>",
                                          "<｜DSML｜toolcalls>",
                                          "<",
                                          "</",
                                          "<｜",
                                          "｜",
                                          "\n",
                                          "\n\n",
                                          " ",
                                          ">",
                                          "\"",
                                          "{",
                                          "}",
                                          "{\"a\": 1}",
                                          "[1, 2]",
                                          "12",
                                          "text",
                                          "日本",
                                          "é",
                                          "🚀",
                                          "\xff",
                                          "\xe6\xb3",
                                          "name=\"",
                                          "invoke",
                                          "tool_calls>",
                                          "parameter"};

struct Piece {
    std::string text;
    Origin origin;
};

std::vector<Piece> random_pieces(std::mt19937& random) {
    std::vector<Piece> out;
    const std::size_t count = 1 + random() % 40;
    // Most texts begin like a tool block, or chance would rarely get that far.
    if (random() % 4 != 0)
        for (const char* text : {"x\n\n", "<｜DSML｜tool_calls>", "\n", "<｜DSML｜invoke name=\"f\">"})
            out.push_back({text, Origin::control});
    for (std::size_t i = 0; i < count; ++i) {
        const Origin origin =
            random() % 8 != 0 ? static_cast<Origin>(1 + random() % 2) : static_cast<Origin>(random() % 4);
        out.push_back({std::string(fragments[random() % std::size(fragments)]), origin});
    }
    return out;
}

ParserOptions options_of(unsigned bits) {
    static const ToolSchemas schemas(read_tools(
        parse_json(
            R"([{"function":{"name":"f","parameters":{"properties":{"a":{"type":"string"},"b":{"type":"number"}}}}}])",
            "tools")
            .value(),
        "tools"));
    ParserOptions out;
    out.thinking = bits & 1;
    out.tools_enabled = bits & 2 || bits & 4;
    if (bits & 8) out.tools = schemas;
    if (bits & 16) out.buffer_limit_bytes = 40;
    return out;
}

struct Outcome {
    ParsedCompletion whole;
    bool operator==(const Outcome& other) const {
        const auto same = [](const ParsedCompletion::Call& a, const ParsedCompletion::Call& b) {
            return a.name == b.name && a.arguments == b.arguments && a.complete == b.complete;
        };
        return whole.reasoning == other.whole.reasoning && whole.content == other.whole.content &&
               whole.finish == other.whole.finish && whole.malformed == other.whole.malformed &&
               std::equal(whole.tool_calls.begin(), whole.tool_calls.end(), other.whole.tool_calls.begin(),
                          other.whole.tool_calls.end(), same);
    }
};

template <class NextSize>
Outcome run(const std::vector<Piece>& pieces, unsigned bits, StoppedBy by, NextSize&& next_size) {
    CompletionParser parser(options_of(bits));
    Outcome out;
    for (const Piece& piece : pieces) {
        for (std::size_t at = 0; at < piece.text.size();) {
            const std::size_t size = std::min<std::size_t>(next_size(), piece.text.size() - at);
            Delta delta;
            parser.feed(std::string_view(piece.text).substr(at, size), piece.origin, delta);
            accumulate(out.whole, delta);
            at += size;
        }
    }
    Delta delta;
    parser.finish(by, delta);
    accumulate(out.whole, delta);
    out.whole.finish = parser.finish_reason();
    out.whole.malformed = parser.malformed();
    return out;
}

} // namespace

TEST_CASE("random markup gives the same result in every chunking") {
    std::mt19937 random(731);
    std::size_t with_calls = 0;
    for (int round = 0; round < 20000; ++round) {
        const std::vector<Piece> pieces = random_pieces(random);
        const unsigned bits = random();
        const StoppedBy by = static_cast<StoppedBy>(random() % 3);
        const Outcome whole = run(pieces, bits, by, [] { return std::size_t{1} << 20; });
        with_calls += whole.whole.tool_calls.size() > 0;
        const bool same = whole == run(pieces, bits, by, [] { return 1; }) &&
                          whole == run(pieces, bits, by, [&] { return 1 + random() % 7; });
        if (same) continue;
        std::string text;
        for (const Piece& piece : pieces) text += piece.text;
        FAIL("round " << round << " differs: " << text);
    }
    CHECK(with_calls > 5000);
}

TEST_CASE("complete calls always hold a JSON object") {
    std::mt19937 random(2026);
    std::size_t complete = 0;
    for (int round = 0; round < 20000; ++round) {
        const Outcome out = run(random_pieces(random), random() | 2, StoppedBy::eos, [] { return 64; });
        for (const auto& call : out.whole.tool_calls) {
            if (!call.complete) continue;
            ++complete;
            const auto parsed = parse_json(call.arguments, "arguments");
            INFO(call.arguments);
            REQUIRE(parsed.ok());
            REQUIRE(parsed->is_object());
        }
    }
    CHECK(complete > 5000);
}
