// Fuzzes the completion parser: any bytes, any origins, any cuts; streaming must equal the whole, and memory stay
// bounded.
#include "completion_parser.hpp"
#include "message_reader.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace dsv4::deepseek_v4;

namespace {

constexpr std::size_t limit_bytes = 256;

// Input: three bytes of options, then records of one byte (origin, size) and that many bytes of text. A size of 7 means
// "a marker": one byte that picks a fragment of markup, so that the fuzzer need not find the spellings.
struct Piece {
    std::string_view text;
    Origin origin;
};

constexpr std::string_view markers[] = {
    "<think>",
    "</think>",
    "｜DSML｜",
    "<｜DSML｜tool_calls>",
    "</｜DSML｜tool_calls>",
    "<｜DSML｜invoke name=\"f\">",
    "</｜DSML｜invoke>",
    "<｜DSML｜parameter name=\"a\" string=\"true\">",
    "<｜DSML｜parameter name=\"b\" string=\"false\">",
    "<｜DSML｜parameter name=\"arguments\">",
    "</｜DSML｜parameter>",
    "<｜DSML｜ calls>",
    "<｜DSML｜",
    "</｜DSML｜",
    "<｜User｜>",
    "{\"a\": 1}",
};

std::vector<Piece> read_pieces(std::string_view data) {
    std::vector<Piece> out;
    while (!data.empty()) {
        const auto head = static_cast<unsigned char>(data[0]);
        data.remove_prefix(1);
        const Origin origin = static_cast<Origin>(head % 4);
        const std::size_t size = (head >> 2) % 8;
        if (size == 7 && !data.empty()) {
            out.push_back({markers[static_cast<unsigned char>(data[0]) % std::size(markers)], origin});
            data.remove_prefix(1);
        } else {
            const std::size_t taken = std::min(size + 1, data.size());
            out.push_back({data.substr(0, taken), origin});
            data.remove_prefix(taken);
        }
    }
    return out;
}

ParserOptions read_options(unsigned char bits) {
    ParserOptions out;
    out.thinking = bits & 1;
    out.tools_enabled = bits & 2;
    if (bits & 4)
        out.tools = ToolSchemas(read_tools(
            parse_json(R"([{"function":{"name":"f","parameters":{"properties":{"a":{"type":"string"}}}}}])", "tools")
                .value(),
            "tools"));
    if (bits & 8) out.buffer_limit_bytes = limit_bytes;
    return out;
}

ParsedCompletion run(const std::vector<Piece>& pieces, unsigned char bits, StoppedBy by, std::size_t chunk_bytes) {
    CompletionParser parser(read_options(bits));
    ParsedCompletion out;
    for (const Piece& piece : pieces) {
        for (std::size_t at = 0; at < piece.text.size(); at += chunk_bytes) {
            Delta delta;
            parser.feed(piece.text.substr(at, chunk_bytes), piece.origin, delta);
            accumulate(out, delta);
            if ((bits & 8) && parser.held_bytes() > 2 * limit_bytes) std::abort();
        }
    }
    Delta delta;
    parser.finish(by, delta);
    accumulate(out, delta);
    out.finish = parser.finish_reason();
    out.malformed = parser.malformed();
    return out;
}

bool same(const ParsedCompletion& a, const ParsedCompletion& b) {
    if (a.reasoning != b.reasoning || a.content != b.content || a.finish != b.finish || a.malformed != b.malformed ||
        a.tool_calls.size() != b.tool_calls.size())
        return false;
    for (std::size_t i = 0; i < a.tool_calls.size(); ++i)
        if (a.tool_calls[i].name != b.tool_calls[i].name || a.tool_calls[i].arguments != b.tool_calls[i].arguments ||
            a.tool_calls[i].complete != b.tool_calls[i].complete)
            return false;
    return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) return 0;
    const unsigned char bits = data[0];
    const StoppedBy by = static_cast<StoppedBy>(data[1] % 3);
    const std::size_t chunk_bytes = 1 + data[2] % 5;
    const auto pieces = read_pieces({reinterpret_cast<const char*>(data) + 3, size - 3});
    const ParsedCompletion whole = run(pieces, bits, by, std::size_t{1} << 20);
    if (!same(whole, run(pieces, bits, by, chunk_bytes))) std::abort();
    for (std::size_t i = 0; i < whole.tool_calls.size(); ++i) {
        const auto& call = whole.tool_calls[i];
        // Complete arguments are a JSON object by a second opinion; only the last call can be incomplete.
        if (call.complete ? !nlohmann::json::parse(call.arguments).is_object() : i + 1 != whole.tool_calls.size())
            std::abort();
    }
    return 0;
}
