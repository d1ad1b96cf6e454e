// What bodies mean, without a listener: the request that is made of them, or the error and the field it names.
#include "tests/api_openai/fake_host.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <random>

using namespace dsv4::test;
using nlohmann::json;

namespace {

class Translated {
  public:
    Translated(LoadedApi& api, const std::string& route, const std::string& body) : api_(api) {
        REQUIRE(api.table().translate(api.self(), {route.data(), route.size()}, {body.data(), body.size()}, &t_) ==
                nullptr);
    }
    ~Translated() { api_.table().translation_release(api_.self(), t_); }
    int status() const { return t_->http_status; }
    std::uint32_t count() const { return t_->request_count; }
    const dsv4_generate_request& request(std::uint32_t i = 0) const {
        INFO(std::string(t_->error_json.data, t_->error_json.size));
        REQUIRE(t_->http_status == 200);
        REQUIRE(i < t_->request_count);
        return *t_->requests[i];
    }
    const dsv4_chat_request& chat() const {
        REQUIRE(request().chat != nullptr);
        return *request().chat;
    }
    json error() const {
        REQUIRE(t_->http_status != 200);
        REQUIRE(t_->request == nullptr);
        return json::parse(std::string(t_->error_json.data, t_->error_json.size)).at("error");
    }

  private:
    LoadedApi& api_;
    const dsv4_translation* t_ = nullptr;
};

std::string text(dsv4_str s) { return std::string(s.data ? s.data : "", s.size); }

struct Fixture {
    FakeHost host{nullptr};
    std::unique_ptr<LoadedApi> api = std::make_unique<LoadedApi>(host);
    void again() { api = std::make_unique<LoadedApi>(host); }
    Translated chat(const std::string& more) {
        return Translated(*api, "/v1/chat/completions",
                          R"({"messages":[{"role":"user","content":"hi"}])" + (more.empty() ? "" : "," + more) + "}");
    }
    Translated raw(const std::string& body) { return Translated(*api, "/v1/chat/completions", body); }
    Translated completion(const std::string& more) { return Translated(*api, "/v1/completions", "{" + more + "}"); }
};

} // namespace

TEST_CASE_METHOD(Fixture, "a silent chat request leaves everything to the deployment") {
    const auto t = chat("");
    const dsv4_generate_request& r = t.request();
    CHECK(t.count() == 1);
    CHECK(r.n == 1);
    CHECK(r.sampling_said == 0);
    CHECK(r.sampling.temperature == 0.0f);
    CHECK(r.sampling.top_p == 1.0f);
    CHECK(r.sampling.repetition_penalty == 1.0f);
    CHECK(r.sampling.logprobs == -1);
    CHECK(r.limits.max_tokens == -1);
    CHECK(r.limits.max_reasoning_tokens == -1);
    CHECK(r.prompt_logprobs == -1);
    CHECK(r.prompt_ids == nullptr);
    CHECK(r.prompt_text.size == 0);
    CHECK(t.chat().thinking == DSV4_UNSAID);
    CHECK(t.chat().continue_final_message == DSV4_UNSAID);
    CHECK(t.chat().default_thinking == DSV4_UNSAID);
    CHECK(t.chat().tools.size == 0);
    CHECK(t.chat().template_kwargs.size == 0);
}

TEST_CASE_METHOD(Fixture, "JSON parts travel as the client wrote them") {
    const std::string messages = R"([ {"role":"user", "b":1.50, "a":1e2, "content":"\u00e9 \/ \"x\"" } ])";
    const std::string tools =
        R"([{"function": {"parameters": {"z": 1.0, "a": 12345678901234567890123}, "name": "f"}, "type": "function"}])";
    const auto t = raw(R"({ "x":0, "tools" :)" + tools + R"(, "messages":  )" + messages +
                       R"( ,"tool_choice":{"type":"function","function":{"name":"f"}},"temperature":0.25,)" +
                       R"("chat_template_kwargs":{"thinking":false , "k":1.0}})");
    CHECK(text(t.chat().messages) == messages);
    CHECK(text(t.chat().tools) == tools);
    CHECK(text(t.chat().tool_choice) == R"({"type":"function","function":{"name":"f"}})");
    CHECK(text(t.chat().template_kwargs) == R"({"thinking":false , "k":1.0})");
    CHECK(t.request().sampling.temperature == 0.25f);
}

TEST_CASE_METHOD(Fixture, "repeated keys: the last wins; null is absent") {
    const auto t =
        raw(R"({"messages":1,"temperature":0.5,"top_p":null,"seed":null,"temperature":1.5,"messages":[{}]})");
    CHECK(text(t.chat().messages) == "[{}]");
    CHECK(t.request().sampling.temperature == 1.5f);
    CHECK(t.request().sampling_said == DSV4_SAID_TEMPERATURE);
}

TEST_CASE_METHOD(Fixture, "sampling and limits") {
    const auto t = chat(R"("temperature":0,"top_p":0.9,"top_k":40,"min_p":0.05,"presence_penalty":1,
        "frequency_penalty":-2,"repetition_penalty":1.1,"seed":7,"max_tokens":5,"max_completion_tokens":9,"min_tokens":2,
        "n":3,"stop":["a","","b"],"stop_token_ids":[3,4],"ignore_eos":true,"logit_bias":{"5":-100,"2":1.5},
        "allowed_token_ids":[1,2],"logprobs":true,"top_logprobs":4,"include_stop_str_in_output":true,"priority":3,
        "truncate_prompt_tokens":-1,"thinking_token_budget":64,"echo":true)");
    const dsv4_generate_request& r = t.request();
    CHECK(r.sampling_said == 0xff);
    CHECK(r.sampling.temperature == 0.0f);
    CHECK(r.sampling.top_p == 0.9f);
    CHECK(r.sampling.top_k == 40);
    CHECK(r.sampling.min_p == 0.05f);
    CHECK(r.sampling.presence_penalty == 1.0f);
    CHECK(r.sampling.frequency_penalty == -2.0f);
    CHECK(r.sampling.repetition_penalty == 1.1f);
    CHECK(r.sampling.seed == 7);
    CHECK(r.sampling.logprobs == 4);
    CHECK(r.limits.max_tokens == 9);
    CHECK(r.limits.min_tokens == 2);
    CHECK(r.limits.max_reasoning_tokens == 64);
    CHECK(r.n == 3);
    REQUIRE(r.stop_string_count == 2);
    CHECK(text(r.stop_strings[0]) == "a");
    CHECK(text(r.stop_strings[1]) == "b");
    REQUIRE(r.sampling.stop_count == 2);
    CHECK(r.sampling.stop_ids[1] == 4);
    CHECK(r.ignore_eos == 1);
    REQUIRE(r.sampling.bias_count == 2);
    CHECK(r.sampling.bias[0].token == 2);
    CHECK(r.sampling.bias[0].value == 1.5f);
    CHECK(r.sampling.bias[1].value == -100.0f);
    REQUIRE(r.allowed_id_count == 2);
    CHECK(r.include_stop_string == 1);
    CHECK(r.priority == -3);
    CHECK(r.truncate_prompt_tokens == -1);
    CHECK(r.echo == 1);
}

TEST_CASE_METHOD(Fixture, "spellings that clients use") {
    CHECK(chat(R"("max_tokens":5.0)").request().limits.max_tokens == 5);
    CHECK(chat(R"("max_tokens":1e3)").request().limits.max_tokens == 1000);
    CHECK(chat(R"("top_k":-1)").request().sampling.top_k == 0);
    CHECK(chat(R"("seed":-1)").request().sampling.seed == ~std::uint64_t{0});
    CHECK(chat(R"("stop":"x")").request().stop_string_count == 1);
    CHECK(chat(R"("repeat_penalty":1.3)").request().sampling.repetition_penalty == 1.3f);
    CHECK(chat(R"("cache_salt":"s")").request().cache_salt.size == 1);
    CHECK(text(chat(R"("cache_salt":"s","session_id":"t")").request().cache_salt) == "s\nt");
    CHECK(chat(R"("best_of":2,"n":2)").request().n == 2);
    CHECK(chat(R"("user":"u","metadata":{},"store":true,"verbosity":"low","modalities":["text"],"never_heard_of":1)")
              .status() == 200);
    CHECK(chat(R"("stream_options":{"include_usage":true})").status() == 200);
}

TEST_CASE_METHOD(Fixture, "thinking, in every spelling; off wins") {
    const auto thinking = [&](const std::string& more) { return chat(more).chat().thinking; };
    CHECK(thinking(R"("thinking":{"type":"enabled"})") == 1);
    CHECK(thinking(R"("thinking":{"type":"adaptive"})") == 1);
    CHECK(thinking(R"("thinking":{"type":"disabled"})") == 0);
    CHECK(thinking(R"("thinking":true)") == 1);
    CHECK(thinking(R"("think":false)") == 0);
    CHECK(thinking(R"("enable_thinking":true)") == 1);
    CHECK(thinking(R"("enable_thinking":true,"thinking":{"type":"disabled"})") == 0);
    CHECK(chat(R"("thinking":{"type":"enabled","budget_tokens":99})").request().limits.max_reasoning_tokens == 99);
    CHECK(chat(R"("reasoning_budget":-1)").request().limits.max_reasoning_tokens == -1);
    CHECK(text(chat(R"("reasoning_effort":"max")").chat().effort) == "max");
    CHECK(text(chat(R"("reasoning":{"effort":"low"})").chat().effort) == "low");
    CHECK(text(chat(R"("output_config":{"effort":"low"},"reasoning_effort":"high")").chat().effort) == "high");
    CHECK(chat(R"("continue_final_message":true)").chat().continue_final_message == 1);
}

TEST_CASE_METHOD(Fixture, "the deployment's defaults are handed on") {
    host.options.values["default_thinking"] = std::string("off");
    host.options.values["default_effort"] = std::string("low");
    host.options.values["default_max_tokens"] = std::int64_t{77};
    host.options.values["agent_top_p"] = 0.95;
    again();
    const auto t = chat(R"("tools":[{"type":"function","function":{"name":"f"}}])");
    CHECK(t.chat().default_thinking == 0);
    CHECK(text(t.chat().default_effort) == "low");
    CHECK(t.request().limits.max_tokens == 77);
    CHECK(t.request().sampling.top_p == 0.95f);
    CHECK(chat("").request().sampling_said == 0);
    CHECK(completion(R"("prompt":"x")").request().limits.max_tokens == 16);
}

TEST_CASE_METHOD(Fixture, "tools: legacy functions, dropped kinds, choices") {
    {
        const auto t = chat(R"("functions":[{"name":"f","x":1.0}],"function_call":{"name":"f"})");
        CHECK(json::parse(text(t.chat().tools)) ==
              json::parse(R"([{"type":"function","function":{"name":"f","x":1.0}}])"));
        CHECK(json::parse(text(t.chat().tool_choice)) == json::parse(R"({"type":"function","function":{"name":"f"}})"));
    }
    CHECK(text(chat(R"("tools":[],"function_call":"none")").chat().tool_choice) == "\"none\"");

    host.options.values["drop_unknown_tools"] = true;
    host.options.values["auto_tool_choice"] = false;
    again();
    const auto dropped = chat(R"("tools":[{"type":"web_search"},{"type":"function","function":{"name":"f","v":1.0}}])");
    CHECK(text(dropped.chat().tools) == R"([{"type":"function","function":{"name":"f","v":1.0}}])");
    CHECK(text(dropped.chat().tool_choice) == "\"none\"");
}

TEST_CASE_METHOD(Fixture, "constraints on the text") {
    const std::string format = R"({"type":"json_schema","json_schema":{"name":"n","schema":{"b":1.0,"a":2}}})";
    CHECK(text(chat("\"response_format\":" + format).chat().response_format) == format);
    CHECK(chat(R"("response_format":{"type":"text"})").chat().response_format.size == 0);
    CHECK(json::parse(text(chat(R"("guided_json":{"type":"object"})").chat().response_format)) ==
          json::parse(R"({"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}})"));
    const auto choice = chat(R"("guided_choice":["yes","n\"o"])");
    CHECK(text(choice.request().grammar) == R"(root ::= "yes" | "n\"o")");
    CHECK(choice.request().grammar_syntax == DSV4_GRAMMAR_EBNF);
    CHECK(text(chat(R"("structured_outputs":{"grammar":"root ::= \"a\""})").request().grammar) == "root ::= \"a\"");
    const auto schema =
        completion(R"("prompt":"x","response_format":{"type":"json_schema","json_schema":{"schema":{"z":1}}})");
    CHECK(text(schema.request().grammar) == R"({"z":1})");
    CHECK(schema.request().grammar_syntax == DSV4_GRAMMAR_JSON_SCHEMA);
}

TEST_CASE_METHOD(Fixture, "text completions: prompts as text and ids") {
    const auto plain = completion(R"("prompt":"ab")");
    CHECK(text(plain.request().prompt_text) == "ab");
    CHECK(plain.request().parse_special == 1);
    CHECK(plain.request().add_bos == 1);
    CHECK(plain.request().chat == nullptr);
    CHECK(plain.request().limits.max_tokens == 16);
    CHECK(completion(R"("prompt":"ab","parse_special":false,"add_special_tokens":false)").request().parse_special == 0);
    CHECK(completion(R"("prompt":"ab","add_special_tokens":false)").request().add_bos == 0);
    const auto several = completion(R"("prompt":["a","b"],"n":2,"logprobs":3,"echo":true)");
    REQUIRE(several.count() == 2);
    CHECK(text(several.request(1).prompt_text) == "b");
    CHECK(several.request(1).n == 2);
    CHECK(several.request(1).sampling.logprobs == 3);
    CHECK(several.request(1).echo == 1);
    const auto ids = completion(R"("prompt":[1,2,3])");
    REQUIRE(ids.request().prompt_id_count == 3);
    CHECK(ids.request().prompt_ids[2] == 3);
    const auto lists = completion(R"("prompt":[[1],[2,3]])");
    REQUIRE(lists.count() == 2);
    CHECK(lists.request(1).prompt_ids[1] == 3);
    CHECK(text(completion(R"("prompt":"def f(","suffix":"return")").request().prompt_text) ==
          "<｜fim▁begin｜>def f(<｜fim▁hole｜>return<｜fim▁end｜>");
    CHECK(completion(R"("prompt":"")").request().prompt_text.size == 0);
}

TEST_CASE_METHOD(Fixture, "half a surrogate pair becomes U+FFFD, and only that") {
    const auto t = raw(R"({"messages":["\ud83d","\udE00x","\uD83D\uDE00","\\ud83d","\ud83d\u0041"]})");
    CHECK(text(t.chat().messages) == R"(["\ufffd","\ufffdx","\uD83D\uDE00","\\ud83d","\ufffd\u0041"])");
}

TEST_CASE_METHOD(Fixture, "what is wrong is named") {
    struct Case {
        const char* more;
        const char* param; // null: JSON null
        const char* message;
        const char* code = nullptr;
    };
    const std::string many(520, ' ');
    const std::vector<Case> cases = {
        {R"("temperature":2.5)", "temperature", "temperature must be between 0 and 2"},
        {R"("temperature":-0.1)", "temperature", "between"},
        {R"("temperature":"1")", "temperature", "must be a number"},
        {R"("temperature":true)", "temperature", "must be a number"},
        {R"("top_p":0)", "top_p", "above 0"},
        {R"("top_p":1.01)", "top_p", "between"},
        {R"("top_k":-2)", "top_k", "at least -1"},
        {R"("top_k":1.5)", "top_k", "whole number"},
        {R"("min_p":-1)", "min_p", "between"},
        {R"("presence_penalty":3)", "presence_penalty", "between -2 and 2"},
        {R"("frequency_penalty":-3)", "frequency_penalty", "between"},
        {R"("repetition_penalty":0)", "repetition_penalty", "above 0"},
        {R"("seed":"x")", "seed", "whole number"},
        {R"("seed":9223372036854775808)", "seed", "whole number"},
        {R"("max_tokens":0)", "max_tokens", "max_tokens must be at least 1"},
        {R"("max_completion_tokens":0)", "max_completion_tokens", "must be at least 1"},
        {R"("max_tokens":"5")", "max_tokens", "whole number"},
        {R"("max_tokens":4,"min_tokens":5)", "min_tokens", "must not be above max_tokens"},
        {R"("n":0)", "n", "at least 1"},
        {R"("n":9)", "n", "at most 8"},
        {R"("best_of":2)", "best_of", "equal n", "unsupported_parameter"},
        {R"("stop":5)", "stop", "string"},
        {R"("stop":["a",5])", "stop", "stop[1] must be a string"},
        {R"("stop":["1","2","3","4","5","6","7","8","9","0","1","2","3","4","5","6","7"])", "stop", "at most 16"},
        {R"("stop_token_ids":[99999])", "stop_token_ids", "stop_token_ids[0] must be a token id"},
        {R"("stop_token_ids":"x")", "stop_token_ids", "array"},
        {R"("allowed_token_ids":[])", "allowed_token_ids", "at least one"},
        {R"("logit_bias":{"x":1})", "logit_bias", "not a token id"},
        {R"("logit_bias":{"99999":1})", "logit_bias", "not a token id"},
        {R"("logit_bias":{"1":101})", "logit_bias", "between -100 and 100"},
        {R"("logit_bias":[1])", "logit_bias", "object"},
        {R"("logprobs":1)", "logprobs", "true or false"},
        {R"("top_logprobs":3)", "top_logprobs", "needs logprobs"},
        {R"("logprobs":true,"top_logprobs":21)", "top_logprobs", "at most 20"},
        {R"("prompt_logprobs":1)", "prompt_logprobs", "not offered", "unsupported_parameter"},
        {R"("stream":"yes")", "stream", "true or false"},
        {R"("stream_options":5)", "stream_options", "object"},
        {R"("messages":null)", "messages", "is required"},
        {R"("tools":{})", "tools", "array"},
        {R"("tools":[5])", "tools", "tools[0] must be an object"},
        {R"("tools":[{"type":"web_search"}])", "tools", "tools[0].type"},
        {R"("tools":[{"type":"function"}])", "tools", "tools[0].function must be an object"},
        {R"("tools":[{"type":"function","function":{}}])", "tools", "tools[0].function.name"},
        {R"("tools":[{"type":"function","function":{"name":"a b"}}])", "tools", "1 to 64"},
        {R"("tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}])",
         "tools", "repeats the name 'f'"},
        {R"("thinking":5)", "thinking", "object"},
        {R"("thinking":{"type":"sometimes"})", "thinking", "thinking.type must be"},
        {R"("thinking":{"type":"enabled","budget_tokens":-1})", "thinking", "thinking.budget_tokens"},
        {R"("reasoning_effort":5)", "reasoning_effort", "string"},
        {R"("response_format":5)", "response_format", "object"},
        {R"("response_format":{})", "response_format", "response_format.type"},
        {R"("response_format":{"type":"xml"})", "response_format", "text, json_object or json_schema"},
        {R"("response_format":{"type":"json_schema","json_schema":{}})", "response_format", "schema"},
        {R"("response_format":{"type":"json_object"},"guided_json":{})", "guided_json", "cannot be combined"},
        {R"("guided_regex":"a+")", "guided_regex", "not offered", "unsupported_parameter"},
        {R"("guided_json":"nonsense")", "guided_json", "JSON schema"},
        {R"("chat_template":"{{x}}")", "chat_template", "not offered", "unsupported_parameter"},
        {R"("continue_final_message":true,"add_generation_prompt":true)", "continue_final_message", "combined"},
        {R"("use_beam_search":true)", "use_beam_search", "not offered", "unsupported_parameter"},
        {R"("length_penalty":2)", "length_penalty", "beam", "unsupported_parameter"},
        {R"("bad_words":["x"])", "bad_words", "not offered", "unsupported_parameter"},
        {R"("modalities":["text","audio"])", "modalities", "text only", "unsupported_parameter"},
        {R"("model":5)", "model", "string"},
        {R"("cache_salt":5)", "cache_salt", "string"},
        {R"("priority":"x")", "priority", "whole number"},
    };
    for (const Case& c : cases) {
        INFO(c.more);
        const auto t = chat(c.more);
        CHECK(t.status() == 400);
        const json e = t.error();
        CHECK(e.at("type") == "invalid_request_error");
        CHECK(e.at("param") == c.param);
        CHECK(e.at("status") == 400);
        CHECK((c.code ? e.at("code") == c.code : e.at("code").is_null()));
        INFO(e.at("message"));
        CHECK(e.at("message").get<std::string>().find(c.message) != std::string::npos);
    }
}

TEST_CASE_METHOD(Fixture, "completion bodies that are wrong") {
    const std::vector<std::pair<const char*, const char*>> cases = {
        {"", "prompt"},
        {R"("prompt":5)", "prompt"},
        {R"("prompt":[])", "prompt"},
        {R"("prompt":["a",[1]])", "prompt"},
        {R"("prompt":[1,"a"])", "prompt"},
        {R"("prompt":[99999])", "prompt"},
        {R"("prompt":[[]])", "prompt"},
        {R"("prompt":[-1])", "prompt"},
        {R"("prompt":"a","logprobs":21)", "logprobs"},
        {R"("prompt":["a","b"],"suffix":"x")", "suffix"},
        {R"("prompt":"a","suffix":"x","parse_special":false)", "suffix"},
        {R"("prompt":"a","max_tokens":0)", "max_tokens"},
    };
    for (const auto& [body, param] : cases) {
        INFO(body);
        const auto t = completion(body);
        CHECK(t.status() == 400);
        CHECK(t.error().at("param") == param);
    }
}

TEST_CASE_METHOD(Fixture, "bodies that are not JSON objects") {
    std::string deep = R"({"messages":)" + std::string(200, '[') + std::string(200, ']') + "}";
    const std::vector<std::string> bodies = {"",
                                             "{",
                                             "[]",
                                             "5",
                                             "null",
                                             "{\"messages\":[NaN]}",
                                             "{\"messages\":[1e999]}",
                                             "{\"messages\":[\"\xff\"]}",
                                             "{\"messages\":[\"\xed\xa0\x80\"]}",
                                             std::string("{\"messages\":[]}\0{}", 18),
                                             "{\"messages\":[],}",
                                             "{\"messages\":[]} x",
                                             "{'messages':[]}",
                                             "{\"messages\":[\"\x01\"]}",
                                             deep};
    for (const std::string& body : bodies) {
        INFO(body.substr(0, 60));
        const auto t = raw(body);
        CHECK(t.status() == 400);
        CHECK(t.error().at("type") == "invalid_request_error");
    }
}

TEST_CASE_METHOD(Fixture, "strict parameters and unknown models") {
    host.options.values["strict_params"] = true;
    host.options.values["served_model_name"] = std::string("big, small");
    again();
    CHECK(chat(R"("wat":1)").error().at("param") == "wat");
    CHECK(chat(R"("model":"big")").status() == 200);
    CHECK(chat(R"("model":"small[1m]")").status() == 200);
    const auto unknown = chat(R"("model":"other")");
    CHECK(unknown.status() == 404);
    CHECK(unknown.error().at("code") == "model_not_found");
    CHECK(Translated(*api, "/v1/nothing", "{}").status() == 404);
    CHECK(Translated(*api, "/beta/completions", R"({"prompt":"x"})").status() == 200);
    CHECK(Translated(*api, "/chat/completions?x=1", R"({"messages":[]})").status() == 200);
}

TEST_CASE_METHOD(Fixture, "request vectors translate; their messages stay as they are") {
    std::size_t seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator(DSV4_SOURCE_DIR "/tests/vectors/encoding")) {
        if (!entry.path().filename().string().starts_with("req-")) continue;
        std::ifstream file(entry.path());
        const json vector = json::parse(file);
        INFO(entry.path());
        const json& body = vector.at("input").at("request");
        const auto t = raw(body.dump());
        // What the parser refuses is the parser's business: here it is a well-formed request.
        CHECK(json::parse(text(t.chat().messages)) == body.at("messages"));
        if (body.contains("tools")) CHECK(json::parse(text(t.chat().tools)) == body.at("tools"));
        if (body.contains("thinking")) CHECK(t.chat().thinking == (body["thinking"]["type"] == "disabled" ? 0 : 1));
        if (body.contains("reasoning_effort"))
            CHECK(text(t.chat().effort) == body.at("reasoning_effort").get<std::string>());
        ++seen;
    }
    CHECK(seen == 17);
}

TEST_CASE_METHOD(Fixture, "mutated bodies give a request or an error, never anything else") {
    const std::vector<std::string> seeds = {
        R"({"messages":[{"role":"user","content":"\ud83d\ude00 hi"}],"tools":[{"type":"function","function":{"name":"f"}}],)"
        R"("stop":["a","b"],"logit_bias":{"5":1.5},"thinking":{"type":"enabled"},"n":2,"top_p":0.5})",
        R"({"messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"a":[1]}}}})",
        R"({"messages":[1],"functions":[{"name":"f"}],"guided_choice":["x"],"stream_options":{"include_usage":true}})"};
    const std::vector<std::string> prompts = {R"({"prompt":["a","b"],"logprobs":2,"echo":true,"stop":"x"})",
                                              R"({"prompt":[[1,2],[3]],"max_tokens":5.0,"allowed_token_ids":[1]})"};
    std::mt19937 random(3);
    const std::string_view pool = "{}[]\",:\\u0d8f\n\0\xff-+.e1 null";
    std::size_t fine = 0;
    for (int i = 0; i < 20'000; ++i) {
        const bool chat_route = random() % 2 == 0;
        const auto& from = chat_route ? seeds : prompts;
        std::string body = from[random() % from.size()];
        for (std::size_t k = random() % 3; k > 0; --k) {
            const std::size_t at = random() % body.size();
            switch (random() % 4) {
            case 0: body[at] = pool[random() % pool.size()]; break;
            case 1: body.insert(at, 1, pool[random() % pool.size()]); break;
            case 2: body.erase(at, 1 + random() % 4); break;
            default: body += body.substr(at, random() % 20);
            }
        }
        const Translated t(*api, chat_route ? "/v1/chat/completions" : "/v1/completions", body);
        INFO(body);
        REQUIRE((t.status() == 200 || t.status() == 400));
        if (t.status() == 200)
            ++fine;
        else
            REQUIRE(!t.error().at("message").get<std::string>().empty());
    }
    CHECK(fine > 5'000);
    CHECK(fine < 15'000);
}

TEST_CASE("options that cannot hold are refused") {
    const auto create = [](const char* name, auto value) {
        FakeHost host(nullptr);
        host.options.values[name] = value;
        LoadedApi api(host);
    };
    CHECK_THROWS_WITH(create("api_key", std::string("sk-1234567890")),
                      ContainsSubstring("must name where a key is kept"));
    CHECK_THROWS(create("api_key", std::string("env:MISSING")));
    const auto start = [](const std::string& address, bool remote) {
        FakeHost host(nullptr);
        host.options.values["host"] = address;
        host.options.values["allow_remote"] = remote;
        LoadedApi(host).start();
    };
    CHECK_THROWS_WITH(start("0.0.0.0", false), ContainsSubstring("other machines can reach"));
    CHECK_THROWS_WITH(start("::", false), ContainsSubstring("other machines can reach"));
    CHECK_THROWS_WITH(start("example.org", true), ContainsSubstring("not a numeric address"));
    CHECK_NOTHROW(start("0.0.0.0", true));
    CHECK_NOTHROW(start("localhost", false));
}
