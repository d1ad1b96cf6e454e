// Rules of the completion parser that the vectors do not reach: ends of input, repairs, limits, leaked tokens.
#include "tests/support/catch.hpp"

#include "completion_parser.hpp"
#include "message_reader.hpp"

#include <chrono>

using namespace dsv4::deepseek_v4;
using dsv4::deepseek_v4::ParsedCompletion;

namespace {

const std::string open_block = "\n\n<｜DSML｜tool_calls>\n";
const std::string invoke_f = "<｜DSML｜invoke name=\"f\">\n";
const std::string close_param = "</｜DSML｜parameter>\n";
const std::string close_all = "</｜DSML｜invoke>\n</｜DSML｜tool_calls>";

std::string string_param(const std::string& key) { return "<｜DSML｜parameter name=\"" + key + "\" string=\"true\">"; }
std::string json_param(const std::string& key) { return "<｜DSML｜parameter name=\"" + key + "\" string=\"false\">"; }

ParserOptions with_tools(const std::string& tools = {}) {
    ParserOptions out;
    out.tools_enabled = true;
    if (!tools.empty()) out.tools = ToolSchemas(read_tools(parse_json(tools, "tools").value(), "tools"));
    return out;
}

ParsedCompletion parse(const std::string& text, ParserOptions options, StoppedBy by = StoppedBy::eos) {
    CompletionParser parser(std::move(options));
    ParsedCompletion out;
    Delta delta;
    parser.feed(text, Origin::spelled, delta);
    parser.finish(by, delta);
    accumulate(out, delta);
    out.finish = parser.finish_reason();
    out.malformed = parser.malformed();
    CHECK(parser.calls() == out.tool_calls.size());
    return out;
}

ParsedCompletion parse_pieces(const std::vector<std::pair<std::string, Origin>>& pieces) {
    CompletionParser parser(with_tools());
    ParsedCompletion out;
    Delta delta;
    for (const auto& [text, origin] : pieces) parser.feed(text, origin, delta);
    parser.finish(StoppedBy::eos, delta);
    accumulate(out, delta);
    return out;
}

// "name arguments" of each call, with "..." behind a call that was left open.
std::string calls(const ParsedCompletion& p) {
    std::string out;
    for (const auto& call : p.tool_calls) out += call.name + " " + call.arguments + (call.complete ? ";" : "...;");
    return out;
}

} // namespace

TEST_CASE("an end in text releases what was held, but not a begun tag") {
    CHECK(parse("a\n\n<", with_tools()).content == "a\n\n<");
    CHECK(parse("a</thin", with_tools()).content == "a</thin");
    CHECK(parse("a\n\n<｜", with_tools()).content == "a");
    CHECK(parse("a\n\n\n<｜DSML｜tool_ca", with_tools()).content == "a\n");
    CHECK(parse("a\n\n<｜DSML｜ inv", with_tools(), StoppedBy::length).content == "a");
    CHECK(parse("a\n\n<｜DSML｜tool_ca", ParserOptions{}).content == "a\n\n<｜DSML｜tool_ca");
    CHECK(parse("a\n\n<｜DSML｜other", with_tools()).content == "a\n\n<｜DSML｜other");
    ParserOptions thinking = with_tools();
    thinking.thinking = true;
    CHECK(parse("r\n<｜DS", thinking).reasoning == "r");
    CHECK(parse("<thin", thinking).reasoning == "<thin");
}

TEST_CASE("an end inside a block without a call") {
    const std::string prose = "see <｜DSML｜tool_calls> and more";
    CHECK(parse(prose, with_tools()).content == prose);
    CHECK(parse(prose, with_tools(), StoppedBy::stop).content == prose);
    CHECK(parse(prose, with_tools(), StoppedBy::length).content == "see ");
    CHECK(parse("a" + open_block + "text <", with_tools()).content == "a" + open_block + "text <");
    CHECK(parse("a" + open_block + " \n ", with_tools()).content == "a");
    CHECK(parse("a" + open_block + "<｜DSML｜unknown x=1>\n", with_tools()).content == "a");
    // Given back at the closer; what follows the block is discarded as after any block.
    CHECK(parse("a" + open_block + "text</｜DSML｜tool_calls>z", with_tools()).content ==
          "a" + open_block + "text</｜DSML｜tool_calls>");
}

TEST_CASE("an end inside a tag's head starts nothing") {
    for (const StoppedBy by : {StoppedBy::eos, StoppedBy::length}) {
        CHECK(parse(open_block + "<｜DSML｜invoke name=\"f", with_tools(), by).tool_calls.empty());
        CHECK(parse(open_block + "<｜DSML｜invoke name=\"f\" x", with_tools(), by).tool_calls.empty());
        CHECK(calls(parse(open_block + invoke_f + "<｜DSML｜parameter name=\"k", with_tools(), by)) == "f ...;");
        CHECK(
            calls(parse(open_block + invoke_f + string_param("a") + "1" + close_param + "<｜DSML｜parameter name=\"k\"",
                        with_tools(), by)) == "f {\"a\": \"1\"...;");
    }
}

TEST_CASE("an end between parameters closes the call unless more was being written") {
    const std::string head = open_block + invoke_f + json_param("a") + "1" + close_param;
    for (const char* tail :
         {"", " \n", "<", "</", "</｜DSML｜", "</｜DSML｜inv", "</｜DSML｜ inv", "</｜DSML｜other"}) {
        INFO(tail);
        CHECK(calls(parse(head + tail, with_tools())) == "f {\"a\": 1};");
        CHECK(calls(parse(head + tail, with_tools(), StoppedBy::stop)) == "f {\"a\": 1};");
        CHECK(calls(parse(head + tail, with_tools(), StoppedBy::length)) == "f {\"a\": 1...;");
    }
    for (const char* tail : {"x", "<｜", "<｜DSML｜para", "<｜DSML｜other>"}) {
        INFO(tail);
        CHECK(calls(parse(head + tail, with_tools())) == "f {\"a\": 1...;");
    }
    CHECK(calls(parse(open_block + invoke_f, with_tools())) == "f {};");
    CHECK(calls(parse(open_block + invoke_f, with_tools(), StoppedBy::length)) == "f ...;");
}

TEST_CASE("an end inside a value") {
    const std::string head = open_block + invoke_f;
    for (const StoppedBy by : {StoppedBy::eos, StoppedBy::stop, StoppedBy::length}) {
        CHECK(calls(parse(head + string_param("a") + "rm -rf /tmp", with_tools(), by)) ==
              "f {\"a\": \"rm -rf /tmp...;");
        CHECK(calls(parse(head + string_param("a") + "x</｜DS", with_tools(), by)) == "f {\"a\": \"x...;");
        CHECK(calls(parse(head + string_param("a") + "x<", with_tools(), by)) == "f {\"a\": \"x...;");
        CHECK(calls(parse(head + json_param("a") + "12", with_tools(), by)) == "f ...;");
    }
    CHECK(calls(parse(head + string_param("a") + "x</｜DSML｜para", with_tools())) == "f {\"a\": \"x\"};");
    CHECK(calls(parse(head + json_param("a") + "12</｜DSML｜", with_tools())) == "f {\"a\": 12};");
    CHECK(calls(parse(head + string_param("a") + "x</｜DSML｜para", with_tools(), StoppedBy::length)) ==
          "f {\"a\": \"x\"...;");
}

TEST_CASE("a JSON body in place of parameters") {
    const std::string head = open_block + invoke_f;
    CHECK(calls(parse(head + " {\"a\": [1,2]} \n" + close_all, with_tools())) == "f {\"a\": [1,2]};");
    CHECK(calls(parse(head + "{\"a\": 1,}" + close_all, with_tools())) == "f {\"arguments\": \"{\\\"a\\\": 1,}\"};");
    CHECK(calls(parse(head + "{\"a\": 1}", with_tools())) == "f ...;");
    CHECK(calls(parse(head + "{\"a\": 1}</｜DSML｜invo", with_tools())) == "f ...;");
    CHECK(calls(parse(head + "{}</｜DSML｜invoke><｜DSML｜invoke name=\"g\"></｜DSML｜invoke>", with_tools())) ==
          "f {};g {};");
    CHECK(calls(parse(head + "{}</｜DSML｜tool_calls><｜DSML｜invoke name=\"g\">", with_tools())) == "f {};");
    // Only the first thing in a call can be a body.
    CHECK(calls(parse(head + "so {\"a\": 1}" + close_all, with_tools())) == "f {};");
    CHECK(calls(parse(head + json_param("a") + "1" + close_param + "{\"b\": 2}" + close_all, with_tools())) ==
          "f {\"a\": 1};");
}

TEST_CASE("closers of other tags end values and calls") {
    const std::string head = open_block + invoke_f + string_param("a") + "x";
    CHECK(calls(parse(head + "</｜DSML｜invoke>" + invoke_f + close_all, with_tools())) == "f {\"a\": \"x\"};f {};");
    CHECK(calls(parse(head + "</｜DSML｜tool_calls>" + invoke_f, with_tools())) == "f {\"a\": \"x\"};");
    CHECK(calls(parse(head + "</｜DSML｜b>" + string_param("c") + "y" + close_param + close_all, with_tools())) ==
          "f {\"a\": \"x\", \"c\": \"y\"};");
    CHECK(calls(parse(open_block + invoke_f + "<｜DSML｜invoke name=\"g\">" + close_all, with_tools())) ==
          "f {};g {};");
}

TEST_CASE("one blank after the marker is accepted everywhere") {
    CHECK(calls(parse(
              "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" string=\"false\">1"
              "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>",
              with_tools())) == "f {\"a\": 1};");
    CHECK(parse("\n\n<｜DSML｜  calls>x", with_tools()).content == "\n\n<｜DSML｜  calls>x");
}

TEST_CASE("a lone wrapper parameter is unwrapped only where the schema says so") {
    const std::string tools =
        R"([{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"string"},"b":{}}}}}])";
    const std::string head = open_block + invoke_f;
    const std::string wrapped = string_param("arguments") + "{\"a\": 1}" + close_param;
    CHECK(calls(parse(head + wrapped + close_all, with_tools(tools))) == "f {\"a\": 1};");
    CHECK(calls(parse(head + json_param("input") + " {\"b\":2} " + close_param + close_all, with_tools(tools))) ==
          "f {\"b\":2};");
    // Unknown keys, no object, a second parameter, an unknown schema: kept as it is.
    CHECK(calls(parse(head + string_param("input") + "{\"z\": 1}" + close_param + close_all, with_tools(tools))) ==
          "f {\"input\": \"{\\\"z\\\": 1}\"};");
    CHECK(calls(parse(head + json_param("input") + "[1]" + close_param + close_all, with_tools(tools))) ==
          "f {\"input\": [1]};");
    CHECK(calls(parse(head + wrapped + json_param("b") + "2" + close_param + close_all, with_tools(tools))) ==
          "f {\"arguments\": \"{\\\"a\\\": 1}\", \"b\": 2};");
    CHECK(calls(parse(head + wrapped + close_all, with_tools())) == "f {\"arguments\": \"{\\\"a\\\": 1}\"};");
    // Dropped when the call is left open, resolved when the end closes it.
    CHECK(calls(parse(head + wrapped, with_tools(tools), StoppedBy::length)) == "f ...;");
    CHECK(calls(parse(head + wrapped, with_tools(tools))) == "f {\"a\": 1};");
}

TEST_CASE("markers spelled by ordinary tokens are text, real ones need not mark their surroundings") {
    // As the engine feeds it: one piece a token.
    const auto tokens = [](std::initializer_list<std::pair<const char*, Origin>> pieces, bool thinking) {
        ParserOptions options = with_tools();
        options.thinking = thinking;
        CompletionParser parser(std::move(options));
        ParsedCompletion out;
        for (const auto& [text, origin] : pieces) {
            Delta delta;
            parser.feed(text, origin, delta);
            accumulate(out, delta);
        }
        Delta delta;
        parser.finish(StoppedBy::eos, delta);
        accumulate(out, delta);
        return out;
    };
    const Origin plain = Origin::ordinary;
    const Origin control = Origin::control;
    const ParsedCompletion real = tokens({{"why", plain},
                                          {"</think>", control},
                                          {"ok\n\n<", plain},
                                          {"｜DSML｜", control},
                                          {"tool_calls>\n<", plain},
                                          {"｜DSML｜", control},
                                          {"invoke name=\"f\">\n<", plain},
                                          {"｜DSML｜", control},
                                          {"parameter name=\"a\" string=\"true\">x</｜DSML｜parameter></think>", plain},
                                          {"</", plain},
                                          {"｜DSML｜", control},
                                          {"parameter>\n</", plain},
                                          {"｜DSML｜", control},
                                          {"invoke>", plain}},
                                         true);
    CHECK(real.reasoning == "why");
    CHECK(real.content == "ok");
    CHECK(calls(real) == "f {\"a\": \"x</｜DSML｜parameter></think>\"};");

    const ParsedCompletion quoted = tokens({{"r</think>", plain},
                                            {"<think>", plain},
                                            {"<｜DSML｜tool_calls>\n", plain},
                                            {"</think>", control},
                                            {"c", plain}},
                                           true);
    CHECK(quoted.reasoning == "r</think><think><｜DSML｜tool_calls>\n");
    CHECK(quoted.content == "c");
}

TEST_CASE("leaked control tokens are not shown, and turn markers end the turn") {
    const auto feed = [](std::initializer_list<std::pair<const char*, Origin>> pieces) {
        CompletionParser parser(with_tools());
        Delta delta;
        for (const auto& [text, origin] : pieces) parser.feed(text, origin, delta);
        parser.finish(StoppedBy::eos, delta);
        CHECK(parser.malformed());
        return delta.content;
    };
    CHECK(feed({{"a", Origin::ordinary}, {"<｜place▁holder▁no▁7｜>", Origin::control}, {"b", Origin::ordinary}}) ==
          "ab");
    CHECK(feed({{"a", Origin::ordinary}, {"<|EOT|>", Origin::control}, {"b", Origin::ordinary}}) == "ab");
    for (const char* marker : {"<｜User｜>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"})
        CHECK(feed({{"a", Origin::ordinary}, {marker, Origin::control}, {"b", Origin::ordinary}}) == "a");
    // However the tokens are cut, and where two follow each other.
    CHECK(feed({{"a", Origin::ordinary},
                {"<｜place▁", Origin::control},
                {"holder▁no▁7｜></thi", Origin::control},
                {"nk>", Origin::control},
                {"b", Origin::ordinary}}) == "ab");
    CHECK(feed({{"a", Origin::ordinary}, {"<｜User｜", Origin::control}, {"></think>b", Origin::control}}) == "a");
    // In a value too.
    CHECK(calls(parse_pieces({{open_block + invoke_f + string_param("a") + "x", Origin::spelled},
                              {"<|EOT|>", Origin::control},
                              {"y" + close_param + close_all, Origin::spelled}})) == "f {\"a\": \"xy\"};");
    // Spelled by ordinary tokens it is text, and control bytes of another form are not taken for one.
    CHECK(feed({{"a<｜>", Origin::control},
                {"<｜b c｜>", Origin::control},
                {"<｜User", Origin::control},
                {"｜>", Origin::ordinary},
                {"<｜", Origin::control},
                {"</think>", Origin::control}}) == "a<｜><｜b c｜><｜User｜><｜");
    CompletionParser parser(with_tools());
    Delta delta;
    parser.feed("<｜User｜>x", Origin::ordinary, delta);
    CHECK(delta.content == "<｜User｜>x");
}

TEST_CASE("bytes that are no UTF-8 never reach the output") {
    CHECK(parse("a\xff"
                "b",
                with_tools())
              .content == "a\xEF\xBF\xBD"
                          "b");
    CHECK(parse("a\xe6\xb3", with_tools()).content == "a\xEF\xBF\xBD"); // cut off by the end
    CHECK(parse("a\xe6\xb3z", with_tools()).content == "a\xEF\xBF\xBDz");
    CHECK(parse("\xed\xa0\x80", with_tools()).content == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK(parse("\xf0\x9f\x9a\x80", with_tools()).content == "🚀");
    CHECK(calls(parse(open_block + invoke_f + string_param("a") + "\xc3(" + close_param + close_all, with_tools())) ==
          "f {\"a\": \"\xEF\xBF\xBD(\"};");
}

TEST_CASE("what is held back is bounded") {
    ParserOptions options = with_tools();
    options.buffer_limit_bytes = 1000;
    const std::string heads[] = {open_block,
                                 open_block + "<｜DSML｜invoke name=\"",
                                 open_block + invoke_f + "<｜DSML｜parameter name=\"",
                                 open_block + invoke_f + json_param("a"),
                                 open_block + invoke_f + "{\"a\": \"",
                                 open_block + invoke_f + string_param("a") + "x</｜DSML｜"};
    for (const std::string& head : heads) {
        for (const char* unit : {"x", "日", "<", "\n", "<｜DSML｜q>"}) {
            INFO(head << unit);
            CompletionParser parser(options);
            Delta delta;
            parser.feed(head, Origin::control, delta);
            std::size_t most = 0;
            for (int i = 0; i < 5000; ++i) {
                parser.feed(unit, Origin::control, delta);
                most = std::max(most, parser.held_bytes());
            }
            CHECK(most <= 1100);
            parser.finish(StoppedBy::eos, delta);
        }
    }
    // Many keys count as well.
    CompletionParser parser(options);
    Delta delta;
    parser.feed(open_block + invoke_f, Origin::control, delta);
    for (int i = 0; i < 1000; ++i)
        parser.feed(json_param(std::string("k").append(std::to_string(i))) + "1" + close_param, Origin::control, delta);
    CHECK(parser.held_bytes() <= 1100);
    parser.finish(StoppedBy::eos, delta);
    CHECK(parser.complete_calls() == 0);
}

TEST_CASE("beyond the limit a block is given back and a call is left open") {
    ParserOptions options = with_tools();
    options.buffer_limit_bytes = 100;
    const std::string prose = "a" + open_block + std::string(300, 'p') + "日本 </think>" + "z";
    const ParsedCompletion given_back = parse(prose, options);
    CHECK(given_back.content == "a" + open_block + std::string(300, 'p') + "日本 z");
    CHECK(given_back.malformed);

    const ParsedCompletion open = parse(open_block + invoke_f + json_param("a") + std::string(300, '1') + close_param +
                                            json_param("b") + "2" + close_param + close_all,
                                        options);
    CHECK(calls(open) == "f ...;");
    CHECK(open.finish == Finish::tool_calls);
    // A streamed value is not held, so it has no limit.
    const ParsedCompletion streamed =
        parse(open_block + invoke_f + string_param("a") + std::string(3000, 'x') + close_param + close_all, options);
    CHECK(calls(streamed) == "f {\"a\": \"" + std::string(3000, 'x') + "\"};");
}

TEST_CASE("time is linear in the length of the completion") {
    // Inputs made to provoke rescanning; at a quadratic cost this case would take hours.
    const auto repeat = [](const std::string& unit, std::size_t bytes) {
        std::string out;
        while (out.size() < bytes) out += unit;
        return out;
    };
    const auto begin = std::chrono::steady_clock::now();
    for (const char* unit : {"\n", "<", "</thin", "\n\n<｜DSML｜tool_call", "<｜DSML｜x>", "</｜DSML｜"})
        for (const std::string& head :
             {std::string(), open_block, open_block + invoke_f, open_block + invoke_f + string_param("a"),
              open_block + invoke_f + json_param("a")})
            parse(head + repeat(unit, 1 << 18), with_tools());
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}
