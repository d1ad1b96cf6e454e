// Rules of the request layer and of turns that the vectors do not reach.
#include "tests/support/catch.hpp"

#include "encoder.hpp"
#include "encoder_input.hpp"
#include "names.hpp"
#include "request.hpp"

using namespace dsv4;
using namespace dsv4::deepseek_v4;

namespace {

const std::string user = R"({"role":"user","content":"u"})";
const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";

std::string body(const std::string& messages, const std::string& more = {}) {
    return "{\"messages\":[" + messages + "]" + (more.empty() ? "" : ",") + more + "}";
}

Result<NormalisedRequest> normalised(const std::string& request, const RequestPolicy& policy = {}) {
    return guard([&] { return normalise(chat_fields(request).value(), policy).value(); });
}

// "chat" or the effort.
std::string resolved(const std::string& more, const RequestPolicy& policy = {}) {
    const NormalisedRequest request = normalised(body(user, more), policy).value();
    if (request.options.mode == ThinkingMode::chat) {
        CHECK(request.options.effort == Effort::unset);
        return "chat";
    }
    return request.options.effort == Effort::unset ? "unset" : std::string(name_of(request.options.effort));
}

// The prompt with tools' fixed text cut out, for reading.
std::string prompt(const std::string& request, const RequestPolicy& policy = {}) {
    const NormalisedRequest n = normalised(request, policy).value();
    std::string text = prompt_text(encode(n.messages, n.options).value());
    const std::string begin = "## Tools";
    const std::string end = "to invoke tool calls.\n";
    for (std::size_t at; (at = text.find(begin)) != std::string::npos;)
        text.replace(at, text.find(end) + end.size() - at, "[TOOLS]");
    return text;
}

// "parameter|message" of a refused request.
std::string refusal(const std::string& request, const RequestPolicy& policy = {}) {
    const auto result = normalised(request, policy);
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code == Code::invalid);
    return std::string(error_parameter(result.error())) + "|" + result.error().message;
}

} // namespace

TEST_CASE("effort names mean what DeepSeek's API says") {
    const std::pair<const char*, const char*> table[] = {{"none", "chat"},   {"minimal", "low"}, {"low", "low"},
                                                         {"medium", "high"}, {"high", "high"},   {"xhigh", "high"},
                                                         {"max", "max"},     {"ultra", "max"}};
    for (const auto& [name, effort] : table) {
        const std::string quoted = '"' + std::string(name) + '"';
        CHECK(resolved("\"reasoning_effort\":" + quoted) == effort);
        CHECK(resolved("\"reasoning\":{\"effort\":" + quoted + "}") == effort);
        CHECK(resolved("\"output_config\":{\"effort\":" + quoted + "}") == effort);
        CHECK(resolved("\"chat_template_kwargs\":{\"reasoning_effort\":" + quoted + "}") == effort);
    }
    CHECK(resolved(R"("reasoning_effort":"max","chat_template_kwargs":{"reasoning_effort":"low"})") == "low");
    CHECK(resolved(R"("reasoning_effort":null,"thinking":null,"chat_template_kwargs":null)") == "high");
    CHECK_THAT(refusal(body(user, R"("reasoning_effort":"Max")")),
               ContainsSubstring("reasoning_effort|reasoning_effort: unknown effort"));
    CHECK_THAT(refusal(body(user, R"("reasoning_effort":3)")), ContainsSubstring("reasoning_effort|"));
    // Named in chat mode an effort is ignored, but a wrong name is still wrong.
    CHECK(resolved(R"("reasoning_effort":"max","thinking":{"type":"disabled"})") == "chat");
    refusal(body(user, R"("reasoning_effort":"x","thinking":{"type":"disabled"})"));
}

TEST_CASE("any switch turns thinking off, and a deployment's default yields to what is said") {
    for (const char* off : {R"("thinking":{"type":"disabled"})", R"("chat_template_kwargs":{"thinking":false})",
                            R"("chat_template_kwargs":{"enable_thinking":false})",
                            R"("thinking":{"type":"disabled"},"chat_template_kwargs":{"thinking":true})"})
        CHECK(resolved(off) == "chat");
    RequestPolicy policy;
    policy.thinking = false;
    policy.effort = Effort::max;
    CHECK(resolved("", policy) == "chat");
    CHECK(resolved(R"("thinking":{"type":"enabled"})", policy) == "max");
    CHECK(resolved(R"("chat_template_kwargs":{"enable_thinking":true})", policy) == "max");
    CHECK(resolved(R"("reasoning_effort":"low")", policy) == "low");
    CHECK_THAT(refusal(body(user, R"("thinking":{"type":"maybe"})")), ContainsSubstring("thinking|"));
    CHECK_THAT(refusal(body(user, R"("chat_template_kwargs":{"thinking":"no"})")),
               ContainsSubstring("chat_template_kwargs|"));
    // The preview encoder has no name for its lowest effort.
    policy.variant = Variant::v4_preview;
    CHECK(resolved(R"("reasoning_effort":"low")", policy) == "unset");
}

TEST_CASE("roles, aliases and shapes of content") {
    const std::string chat = R"("thinking":{"type":"disabled"})";
    CHECK(prompt(body(R"({"role":"developer","content":"d"},)" + user, chat)) ==
          "<｜begin▁of▁sentence｜>d<｜User｜>u<｜Assistant｜></think>");
    CHECK(prompt(body(R"({"role":"user"},{"role":"function","name":"f","content":[{"type":"text","text":"1"},"2"]})",
                      chat)) ==
          "<｜begin▁of▁sentence｜><｜User｜>\n\n<tool_result>1\n\n2</tool_result><｜Assistant｜></think>");
    const std::string both = R"({"role":"assistant","content":"c","reasoning":"x","reasoning_content":"r"})";
    CHECK(prompt(body(user + "," + both + "," + user, tools + R"(,"reasoning_effort":"low")")) ==
          "<｜begin▁of▁sentence｜>\n\n[TOOLS]<｜User｜>u<｜Assistant｜><think>r</"
          "think>c<｜end▁of▁sentence｜><｜User｜>u<｜Assistant｜><think>");
    CHECK_THAT(refusal(body(R"({"role":"narrator","content":"x"})")),
               ContainsSubstring("messages|messages[0].role: unknown role 'narrator'"));
    CHECK_THAT(refusal(body(user + R"(,{"role":"user","content":[{"type":"input_audio"}]})")),
               ContainsSubstring("messages|messages[1].content[0]: content of type 'input_audio'"));
    for (const char* bad :
         {"7", R"({"content":"x"})", R"({"role":"user","content":5})", R"({"role":"user","content":[{}]})",
          R"({"role":"user","content":[{"type":"text"}]})", R"({"role":"assistant","tool_calls":{}})",
          R"({"role":"assistant","tool_calls":[{}]})", R"({"role":"assistant","tool_calls":[{"function":{}}]})",
          R"({"role":"assistant","reasoning_content":1})", R"({"role":"tool","tool_call_id":1})",
          R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1]"}}]})",
          R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":3}}]})"})
        CHECK_THAT(refusal(body(bad)), ContainsSubstring("messages|messages[0]"));
    CHECK_THAT(refusal("{}"), ContainsSubstring("messages|"));
    CHECK_THAT(refusal(body("")), ContainsSubstring("messages|"));
    CHECK_THAT(refusal("[]"), ContainsSubstring("|the request body is not a JSON object"));
    CHECK_THAT(refusal("{"), ContainsSubstring("|the request body is not valid JSON"));
}

TEST_CASE("tools replace those of a leading system message, and tool_choice is held against them") {
    const std::string system =
        R"({"role":"system","content":"s","tools":[{"type":"function","function":{"name":"old"}}]},)" + user;
    const auto functions = [](const std::string& request) {
        std::string out;
        const NormalisedRequest n = normalised(request).value();
        for (const JsonValue& f : n.functions) out += f.find("name")->text() + ";";
        CHECK(n.tools_enabled == !out.empty());
        return out;
    };
    CHECK(functions(body(system)) == "old;");
    CHECK(functions(body(system, tools)) == "f;");
    CHECK(functions(body(system, tools + R"(,"tool_choice":"none")")).empty());
    CHECK(functions(body(user, R"("tools":[])")).empty());
    CHECK(functions(body(user, tools + R"(,"tool_choice":{"type":"function","function":{"name":"f"}})")) == "f;");
    CHECK_THAT(refusal(body(user, tools + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})")),
               ContainsSubstring("tool_choice|"));
    CHECK_THAT(refusal(body(user, R"("tool_choice":"required")")), ContainsSubstring("tool_choice|"));
    CHECK_THAT(refusal(body(user, R"("tool_choice":"sometimes")")), ContainsSubstring("tool_choice|"));
    for (const char* bad : {"{}", "[1]", "[{}]", R"([{"function":{}}])", R"([{"type":"web","function":{"name":"f"}}])"})
        CHECK_THAT(refusal(body(user, std::string("\"tools\":") + bad)), ContainsSubstring("tools|tools"));
}

TEST_CASE("the last message decides who writes next") {
    const std::string low = R"("reasoning_effort":"low")";
    const std::string begin = "<｜begin▁of▁sentence｜>";
    CHECK(prompt(body(R"({"role":"system","content":"s"})", low)) == begin + "s<｜Assistant｜><think>");
    CHECK(prompt(body(user + R"(,{"role":"latest_reminder","content":"r"})", low)) ==
          begin + "<｜User｜>u<｜Assistant｜><think><｜latest_reminder｜>r<｜Assistant｜><think>");
    CHECK(prompt(body(user + R"(,{"role":"assistant","content":"a"})", low)) ==
          begin + "<｜User｜>u<｜Assistant｜><think></think>a<｜end▁of▁sentence｜><｜Assistant｜><think>");
    const std::string open = R"(,{"role":"assistant","content":"a","reasoning_content":"r")";
    const std::string continued = begin + "<｜User｜>u<｜Assistant｜><think>r</think>a";
    CHECK(prompt(body(user + open + R"(,"prefix":true})", low)) == continued);
    CHECK(prompt(body(user + open + "}", low + R"(,"continue_final_message":true)")) == continued);
    CHECK_THAT(refusal(body(user, R"("continue_final_message":true)")), ContainsSubstring("continue_final_message|"));
    CHECK_THAT(refusal(body(user, R"("continue_final_message":1)")), ContainsSubstring("continue_final_message|"));
    CHECK_THAT(refusal(body(R"({"role":"assistant","content":"a","prefix":true},)" + user)),
               ContainsSubstring("messages|messages[0].prefix"));
    CHECK_THAT(refusal(body(R"({"role":"user","content":"a","prefix":true})")),
               ContainsSubstring("messages|messages[0].prefix"));
}

TEST_CASE("prompts say where the completion begins") {
    const auto inside = [](const std::string& request) {
        const NormalisedRequest n = normalised(request).value();
        return ends_in_reasoning(encode(n.messages, n.options).value());
    };
    CHECK(inside(body(user)));
    CHECK_FALSE(inside(body(user, R"("reasoning_effort":"none")")));
    CHECK_FALSE(inside(body(user + R"(,{"role":"assistant","content":"","prefix":true})")));
    CHECK_FALSE(inside(body(user + R"(,{"role":"assistant","content":"<think>","prefix":true})")));
}

TEST_CASE("missing reasoning is counted, and refused where the deployment is strict") {
    const auto turn = [](const std::string& reasoning) {
        return user + R"(,{"role":"assistant",)" + reasoning +
               R"("tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},)" +
               R"({"role":"tool","tool_call_id":"1","content":"r"})";
    };
    RequestPolicy strict;
    strict.strict_reasoning = true;
    CHECK(normalised(body(turn(""), tools)).value().turns_without_reasoning == 1);
    CHECK(normalised(body(turn(R"("reasoning_content":"",)"), tools), strict).value().turns_without_reasoning == 0);
    CHECK_THAT(refusal(body(turn(""), tools), strict),
               ContainsSubstring(
                   "messages|messages: The reasoning_content in the thinking mode must be passed back to the API."));
    CHECK(normalised(body(turn(""), tools + R"(,"reasoning_effort":"none")"), strict).ok());
}

TEST_CASE("a response format reaches the prompt only where the deployment says so") {
    const std::string format =
        R"("reasoning_effort":"none","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"a":1.0}}})";
    RequestPolicy policy;
    CHECK(prompt(body(user, format)) == "<｜begin▁of▁sentence｜><｜User｜>u<｜Assistant｜></think>");
    policy.response_format_in_prompt = true;
    CHECK(
        prompt(body(user, format), policy) ==
        "<｜begin▁of▁sentence｜>\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"
        "{\"a\": 1.0}<｜User｜>u<｜Assistant｜></think>");
    CHECK(prompt(body(user, R"("reasoning_effort":"none","response_format":{"type":"text"})"), policy) ==
          "<｜begin▁of▁sentence｜><｜User｜>u<｜Assistant｜></think>");
    CHECK_THAT(refusal(body(user, R"("response_format":{"type":"json_schema"})")),
               ContainsSubstring("response_format|"));
    CHECK_THAT(refusal(body(user, R"("response_format":"json")")), ContainsSubstring("response_format|"));
}

namespace {

std::string encoded(const std::string& input) {
    const EncoderInput in = read_encoder_input(parse_json(input, "input").value()).value();
    return prompt_text(encode(in.messages, in.options, in.context).value());
}

} // namespace

TEST_CASE("results stay in call order, texts in their places, until the next calls") {
    const std::string calls =
        R"({"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"f","arguments":"{}"}}]},)";
    const std::string prompt_of_results = encoded(
        R"({"thinking_mode":"chat","context":[)" + calls.substr(0, calls.size() - 1) +
        R"(],"messages":[{"role":"tool","tool_call_id":"b","content":"B"},{"role":"user","content":"t"},)"
        R"({"role":"tool","tool_call_id":"x","content":"X"},{"role":"tool","tool_call_id":"a","content":"A"}]})");
    // An unknown id sorts with the first call; order of arrival decides between them.
    CHECK(prompt_of_results == "<｜User｜><tool_result>X</tool_result>\n\nt\n\n<tool_result>A</tool_result>\n\n"
                               "<tool_result>B</tool_result><｜Assistant｜></think>");
}

TEST_CASE("a user turn with a task is not joined by the next") {
    CHECK(
        encoded(
            R"({"thinking_mode":"chat","messages":[{"role":"user","content":"a","task":"query"},{"role":"user","content":"b"},{"role":"user","content":"c","task":"poem"}]})") ==
        "<｜begin▁of▁sentence｜><｜User｜>a<｜User｜>b\n\nc<｜Assistant｜></think>");
    CHECK(
        encoded(
            R"({"thinking_mode":"thinking","messages":[{"role":"user","content":"a","task":"domain"},{"role":"assistant","content":"b","reasoning_content":"r"}]})") ==
        "<｜begin▁of▁sentence｜><｜User｜>a<｜domain｜>b<｜end▁of▁sentence｜>");
    const auto bad = guard(
        [] { return encoded(R"({"thinking_mode":"chat","messages":[{"role":"user","content":"a","task":"poem"}]})"); });
    REQUIRE_FALSE(bad.ok());
    CHECK_THAT(bad.error().message, ContainsSubstring("poem"));
}
