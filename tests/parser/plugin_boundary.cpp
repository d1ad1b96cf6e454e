// The built plugin, loaded through the raw C boundary: every vector again, errors, and the manifest's promises.
#include "tests/support/catch.hpp"

#include "completion_cases.hpp"
#include "loaded_parser.hpp"

using namespace dsv4;
using test::CompletionCase;
using test::Json;
using test::LoadedParser;

namespace {

dsv4_str text(const std::string& s) { return {s.data(), s.size()}; }

// Feeds parts of a case's text through the boundary.
class BoundaryRun {
  public:
    BoundaryRun(LoadedParser& parser, const CompletionCase& c) : parser_(parser), case_(c) {
        dsv4_completion_options options{};
        options.struct_size = sizeof options;
        options.thinking = c.thinking;
        options.tools_enabled = c.tools_enabled;
        options.tools = text(c.tools);
        REQUIRE(parser.table().stream_open(parser.self(), &options, &stream_) == nullptr);
        // As a tokenizer would have it: the markers are control tokens where they are not quoted, all else is ordinary.
        control_.assign(c.bytes.size(), false);
        for (const std::string marker : {"<think>", "</think>", "｜DSML｜"})
            for (std::size_t at = 0; (at = c.bytes.find(marker, at)) != std::string::npos; at += marker.size())
                if (!c.literal[at])
                    std::fill_n(control_.begin() + static_cast<std::ptrdiff_t>(at), marker.size(), true);
    }
    ~BoundaryRun() { parser_.table().stream_close(stream_); }
    BoundaryRun(const BoundaryRun&) = delete;
    BoundaryRun& operator=(const BoundaryRun&) = delete;

    Json feed(std::size_t at, std::size_t size) {
        std::vector<dsv4_piece> pieces;
        for (const std::size_t end = at + size; at < end;) {
            std::size_t same = at + 1;
            while (same < end && control_[same] == control_[at]) ++same;
            pieces.push_back({{case_.bytes.data() + at, same - at}, control_[at]});
            at = same;
        }
        deepseek_v4::Delta delta;
        REQUIRE(parser_.table().stream_feed(stream_, pieces.data(), pieces.size(), &collect, &delta) == nullptr);
        accumulate(whole_, delta);
        return test::delta_json(delta);
    }
    Json finish() {
        const std::int32_t reason = case_.stopped_by == deepseek_v4::StoppedBy::length ? DSV4_STOPPED_LENGTH
                                    : case_.stopped_by == deepseek_v4::StoppedBy::stop ? DSV4_STOPPED_STOP
                                                                                       : DSV4_STOPPED_EOS;
        deepseek_v4::Delta delta;
        dsv4_completion_end end{};
        end.struct_size = sizeof end;
        REQUIRE(parser_.table().stream_finish(stream_, reason, &collect, &delta, &end) == nullptr);
        accumulate(whole_, delta);
        for (std::size_t i = 0; i < whole_.tool_calls.size(); ++i)
            whole_.tool_calls[i].complete = i < end.complete_calls;
        whole_.finish = end.finish == DSV4_FINISH_LENGTH       ? deepseek_v4::Finish::length
                        : end.finish == DSV4_FINISH_TOOL_CALLS ? deepseek_v4::Finish::tool_calls
                                                               : deepseek_v4::Finish::stop;
        whole_.malformed = end.malformed != 0;
        return test::delta_json(delta);
    }
    Json result() const { return test::result_json(whole_); }
    bool malformed() const { return whole_.malformed; }

  private:
    static void collect(void* arg, const dsv4_delta* delta) {
        auto& out = *static_cast<deepseek_v4::Delta*>(arg);
        const std::string piece(delta->text.data, delta->text.size);
        if (delta->kind == DSV4_DELTA_REASONING) {
            out.reasoning += piece;
        } else if (delta->kind == DSV4_DELTA_CONTENT) {
            out.content += piece;
        } else {
            if (out.tool_calls.empty() || out.tool_calls.back().index != delta->index) {
                out.tool_calls.emplace_back();
                out.tool_calls.back().index = delta->index;
            }
            if (delta->kind == DSV4_DELTA_TOOL_BEGIN)
                out.tool_calls.back().name = piece;
            else
                out.tool_calls.back().arguments += piece;
        }
    }

    LoadedParser& parser_;
    const CompletionCase& case_;
    std::vector<bool> control_;
    dsv4_completion_stream* stream_ = nullptr;
    deepseek_v4::ParsedCompletion whole_;
};

Json prompt_segments(const dsv4_prompt& prompt) {
    Json out = Json::array();
    for (std::uint32_t i = 0; i < prompt.segment_count; ++i) {
        const dsv4_segment& s = prompt.segments[i];
        out.push_back(
            Json::array({s.kind == DSV4_SEGMENT_CONTROL ? "ctl" : "txt", std::string(s.text.data, s.text.size)}));
    }
    return out;
}

std::string names(const dsv4_str* list, std::uint32_t count) {
    std::string out;
    for (std::uint32_t i = 0; i < count; ++i) out += std::string(list[i].data, list[i].size) + ";";
    return out;
}

// The request of a vector, cut into the fields of the boundary as an api plugin would.
struct RequestText {
    std::string messages, tools, tool_choice, response_format, effort, kwargs;
    dsv4_chat_request request{};

    explicit RequestText(const Json& body) {
        const auto field = [&](const char* key) { return body.contains(key) ? body[key].dump() : std::string(); };
        messages = field("messages");
        tools = field("tools");
        tool_choice = field("tool_choice");
        response_format = field("response_format");
        kwargs = field("chat_template_kwargs");
        if (body.contains("reasoning_effort")) effort = body["reasoning_effort"];
        request.struct_size = sizeof request;
        request.thinking = body.contains("thinking") ? body["thinking"]["type"] != "disabled" : DSV4_UNSAID;
        request.continue_final_message = request.default_thinking = DSV4_UNSAID;
        request.messages = text(messages);
        request.tools = text(tools);
        request.tool_choice = text(tool_choice);
        request.response_format = text(response_format);
        request.effort = text(effort);
        request.template_kwargs = text(kwargs);
    }
};

struct PromptGuard {
    LoadedParser& parser;
    const dsv4_prompt* prompt;
    ~PromptGuard() {
        if (prompt) parser.table().prompt_release(parser.self(), prompt);
    }
};

} // namespace

TEST_CASE("the loaded plugin describes itself as its manifest does") {
    LoadedParser parser;
    CHECK(std::string(parser.descriptor().name) == "parser-deepseek-v4");
    CHECK(parser.descriptor().abi_major == DSV4_ABI_MAJOR);
    CHECK(parser.descriptor().security_posture == DSV4_POSTURE_UNTRUSTED_INPUT);
    const dsv4_str* list = nullptr;
    std::uint32_t count = 0;
    REQUIRE(parser.table().control_names(parser.self(), &list, &count) == nullptr);
    CHECK(count == 14);
    CHECK_THAT(names(list, count), ContainsSubstring("<｜begin▁of▁sentence｜>;") && ContainsSubstring("｜DSML｜;"));
}

TEST_CASE("the loaded plugin refuses other kinds and bad options") {
    LoadedParser parser;
    dsv4_instance out{};
    out.struct_size = sizeof out;
    CHECK(test::error_code(parser.create(DSV4_KIND_API, &out)) == DSV4_UNSUPPORTED);
    parser.options().texts["encoding"] = "v5";
    CHECK(test::error_code(parser.create(DSV4_KIND_PARSER, &out)) == DSV4_INVALID);
    parser.options().texts["encoding"] = "v4-preview";
    parser.options().numbers["buffer_limit_bytes"] = 7;
    CHECK(test::error_code(parser.create(DSV4_KIND_PARSER, &out)) == DSV4_INVALID);
    CHECK(out.self == nullptr);
}

TEST_CASE("message vectors through the boundary") {
    LoadedParser parser;
    for (const auto& vector : test::read_vectors("encoding", "enc-")) {
        INFO(vector.name);
        const Json& expected = vector.json["expected"];
        // Cut out of the file's text, so that number spelling survives.
        const std::string input =
            deepseek_v4::to_text(*deepseek_v4::parse_json(vector.text, vector.name).value().find("input"));
        PromptGuard out{parser, nullptr};
        dsv4_error* error = parser.table().encode_messages(parser.self(), text(input), &out.prompt);
        if (expected.contains("error")) {
            CHECK(test::error_code(error) == DSV4_INVALID);
            continue;
        }
        REQUIRE(error == nullptr);
        CHECK(prompt_segments(*out.prompt) == expected["segments"]);
    }
}

TEST_CASE("request vectors through the boundary") {
    LoadedParser parser;
    for (const auto& vector : test::read_vectors("encoding", "req-")) {
        INFO(vector.name);
        const Json& expected = vector.json["expected"];
        const Json& body = vector.json["input"]["request"];
        const RequestText fields(body);
        PromptGuard out{parser, nullptr};
        dsv4_error* error = parser.table().encode(parser.self(), &fields.request, &out.prompt);
        if (expected.contains("error")) {
            CHECK(test::error_code(error) == DSV4_INVALID);
            continue;
        }
        REQUIRE(error == nullptr);
        const dsv4_prompt& prompt = *out.prompt;
        CHECK(prompt_segments(prompt) == expected["segments"]);
        const Json& effort = expected["resolved"]["reasoning_effort"];
        CHECK(std::string(prompt.effort.data, prompt.effort.size) ==
              (effort.is_null() ? "" : effort.get<std::string>()));
        const bool thinking = expected["resolved"]["thinking_mode"] == "thinking";
        CHECK(prompt.thinking == (thinking ? 1 : 0));
        const bool tools = body.contains("tools") && body.value("tool_choice", Json()) != "none";
        CHECK(prompt.tools_enabled == (tools ? 1 : 0));
        CHECK((prompt.tools.size > 0) == tools);
        CHECK(names(prompt.banned_names, prompt.banned_count) == (tools ? "" : "｜DSML｜;"));
        CHECK(names(prompt.stop_names, prompt.stop_count) ==
              "<｜end▁of▁sentence｜>;<｜begin▁of▁sentence｜>;<｜User｜>;");
    }
}

TEST_CASE("a deployment's defaults hold for requests that say nothing") {
    LoadedParser parser;
    const std::string messages = R"([{"role":"user","content":"x"}])";
    dsv4_chat_request request{};
    request.struct_size = sizeof request;
    request.thinking = request.continue_final_message = DSV4_UNSAID;
    request.default_thinking = 0;
    request.messages = text(messages);
    const auto resolved = [&]() -> std::string {
        PromptGuard out{parser, nullptr};
        REQUIRE(parser.table().encode(parser.self(), &request, &out.prompt) == nullptr);
        return std::to_string(out.prompt->thinking) + std::string(out.prompt->effort.data, out.prompt->effort.size);
    };
    CHECK(resolved() == "0");
    request.thinking = 1;
    CHECK(resolved() == "1high");
    const std::string max = "max";
    request.default_effort = text(max);
    CHECK(resolved() == "1max");
    request.thinking = DSV4_UNSAID;
    const std::string low = "minimal";
    request.effort = text(low);
    CHECK(resolved() == "1low");
}

TEST_CASE("the plugin counts what clients and models get wrong, and says why a cache cannot be used") {
    LoadedParser parser;
    const auto note = [&](const std::string& messages, const std::string& tools) {
        dsv4_chat_request request{};
        request.struct_size = sizeof request;
        request.thinking = request.continue_final_message = request.default_thinking = DSV4_UNSAID;
        request.messages = text(messages);
        request.tools = text(tools);
        PromptGuard out{parser, nullptr};
        REQUIRE(parser.table().encode(parser.self(), &request, &out.prompt) == nullptr);
        return std::string(out.prompt->reused_note.data, out.prompt->reused_note.size);
    };
    const std::string turns =
        R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}])";
    const std::string call =
        R"([{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},)"
        R"({"role":"tool","tool_call_id":"1","content":"r"}])";
    const std::string tools = R"([{"type":"function","function":{"name":"f"}}])";
    CHECK_THAT(note(turns, ""), ContainsSubstring("reasoning"));
    CHECK(note(turns, tools).empty());
    CHECK(parser.metric("dsv4_parser_turns_without_reasoning_total") == 0);
    CHECK(note(call, tools).empty());
    CHECK(parser.metric("dsv4_parser_turns_without_reasoning_total") == 1);

    CHECK(parser.metric("dsv4_parser_malformed_completions_total") == 0);
    std::size_t malformed = 0;
    for (const CompletionCase& c : test::completion_cases()) {
        BoundaryRun run(parser, c);
        run.feed(0, c.bytes.size());
        run.finish();
        malformed += c.malformed;
    }
    CHECK(parser.metric("dsv4_parser_malformed_completions_total") == static_cast<double>(malformed));
}

TEST_CASE("parsing vectors through the boundary, whole and in the listed streams") {
    LoadedParser parser;
    for (const CompletionCase& c : test::completion_cases()) {
        INFO(c.name);
        BoundaryRun whole(parser, c);
        whole.feed(0, c.bytes.size());
        whole.finish();
        CHECK(whole.result() == c.expected);
        CHECK(whole.malformed() == c.malformed);
        // The listed deltas of these are those of a text without its tokens (completion_vectors.cpp checks them). With
        // tokens an ordinary `<` may precede a marker even where the text goes on as a quotation, and ordinary text
        // that merely begins like a marker need not wait.
        const bool deltas_differ = c.name.starts_with("par-030") || c.name.starts_with("par-048") ||
                                   c.name.starts_with("par-049") || c.name.starts_with("par-051");
        for (const test::StreamCase& stream : c.streams) {
            BoundaryRun run(parser, c);
            std::size_t at = 0;
            for (std::size_t i = 0; i < stream.sizes.size(); ++i) {
                INFO(stream.label << ", chunk " << i);
                const Json delta = run.feed(at, stream.sizes[i]);
                if (!deltas_differ) CHECK(delta == stream.deltas[i]);
                at += stream.sizes[i];
            }
            const Json final_delta = run.finish();
            if (!deltas_differ) CHECK(final_delta == stream.final_delta);
            CHECK(run.result() == c.expected);
        }
    }
}

TEST_CASE("the boundary answers bad input with errors") {
    LoadedParser parser;
    PromptGuard out{parser, nullptr};
    const std::string broken = R"([{"role":)";
    dsv4_chat_request request{};
    request.struct_size = sizeof request;
    request.thinking = request.continue_final_message = request.default_thinking = DSV4_UNSAID;
    CHECK(test::error_code(parser.table().encode(parser.self(), &request, &out.prompt)) == DSV4_INVALID);
    request.messages = text(broken);
    CHECK(test::error_code(parser.table().encode(parser.self(), &request, &out.prompt)) == DSV4_INVALID);
    CHECK(out.prompt == nullptr);

    dsv4_completion_options options{};
    options.struct_size = sizeof options;
    const std::string tools = R"({"not":"an array"})";
    options.tools = text(tools);
    dsv4_completion_stream* stream = nullptr;
    CHECK(test::error_code(parser.table().stream_open(parser.self(), &options, &stream)) == DSV4_INVALID);
    options.tools = {};
    REQUIRE(parser.table().stream_open(parser.self(), &options, &stream) == nullptr);
    dsv4_completion_end end{};
    end.struct_size = sizeof end;
    const auto ignore = [](void*, const dsv4_delta*) {};
    CHECK(test::error_code(parser.table().stream_finish(stream, 0, ignore, nullptr, &end)) == DSV4_INVALID);
    parser.table().stream_close(stream);
}
