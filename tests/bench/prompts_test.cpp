// Request bodies as JSON.
#include "bench/prompts.hpp"
#include "dsv4/sdk/result.hpp"
#include "tests/support/catch.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <unistd.h>

using namespace dsv4::bench;
using nlohmann::json;

namespace {

struct TemporaryFile {
    explicit TemporaryFile(const std::string& text) {
        path =
            (std::filesystem::temp_directory_path() / ("dsv4_prompts_" + std::to_string(getpid()) + ".json")).string();
        std::ofstream(path) << text;
    }
    ~TemporaryFile() { std::remove(path.c_str()); }
    std::string path;
};

RequestSettings asking(const std::string& prompt) {
    RequestSettings s;
    s.model = "m\"1";
    s.prompt = prompt;
    return s;
}

} // namespace

TEST_CASE("a chat request") {
    RequestSettings s = asking("say \"hi\"\nå");
    s.max_tokens = 5;
    s.temperature = 0.5;
    s.extra_body = R"({"ignore_eos": true, "chat_template_kwargs": {"thinking": false}})";
    CHECK(json::parse(Requests(s).body(3)) == json::parse(R"({
        "messages": [{"role": "user", "content": "say \"hi\"\nå"}], "model": "m\"1", "max_tokens": 5,
        "temperature": 0.5, "stream": true, "stream_options": {"include_usage": true}, "ignore_eos": true,
        "chat_template_kwargs": {"thinking": false}})"));
}

TEST_CASE("a completion request without a stream, and a stream without usage") {
    RequestSettings s = asking("once");
    s.api = Api::completions;
    s.stream = false;
    const Requests requests(s);
    CHECK(json::parse(requests.body(0)) == json::parse(R"({"prompt": "once", "model": "m\"1", "stream": false})"));
    CHECK(std::string(requests.path()) == "/v1/completions");
    RequestSettings counted = asking("x");
    counted.include_usage = false;
    CHECK_FALSE(json::parse(Requests(counted).body(0)).contains("stream_options"));
}

TEST_CASE("prompts of a file are asked in turn") {
    const TemporaryFile file(R"(["one", [{"role": "system", "content": "s"}, {"role": "user", "content": "two"}]])");
    RequestSettings s;
    s.prompts_file = file.path;
    const Requests requests(s);
    const auto messages = [&](std::uint64_t i) { return json::parse(requests.body(i)).at("messages"); };
    CHECK(messages(0) == json::parse(R"([{"role": "user", "content": "one"}])"));
    CHECK(messages(1) == json::parse(R"([{"role": "system", "content": "s"}, {"role": "user", "content": "two"}])"));
    CHECK(messages(2) == messages(0));
    s.api = Api::completions;
    CHECK_THROWS_AS(Requests(s), dsv4::Failure); // it takes no messages
}

TEST_CASE("random prompts depend on seed and number alone") {
    RequestSettings s;
    s.random_words = 50;
    s.seed = 9;
    const Requests requests(s);
    std::set<std::string> seen;
    for (std::uint64_t i = 0; i < 200; ++i) {
        const std::string text = json::parse(requests.body(i)).at("messages").at(0).at("content");
        CHECK(std::count(text.begin(), text.end(), ' ') == 50);
        CHECK(text.starts_with(std::to_string(i) + " "));
        seen.insert(text.substr(text.find(' ')));
    }
    CHECK(seen.size() == 200);
    CHECK(Requests(s).body(7) == requests.body(7));
    s.seed = 10;
    CHECK(Requests(s).body(7) != requests.body(7));
}

TEST_CASE("requests that cannot be made are refused") {
    const auto refused = [](const RequestSettings& s) { CHECK_THROWS_AS(Requests(s), dsv4::Failure); };
    refused({}); // nothing to ask
    RequestSettings both = asking("x");
    both.random_words = 3;
    refused(both);
    for (const char* extra :
         {"[1]", "{", R"({"stream": false})", R"({"messages": []})", R"({"model": "x"})", R"({"n": 2})"}) {
        RequestSettings s = asking("x");
        s.extra_body = extra;
        refused(s);
    }
    RequestSettings no_tokens = asking("x");
    no_tokens.max_tokens = 0;
    refused(no_tokens);
    refused(asking("\xff")); // not UTF-8
    for (const char* text : {"", "{}", "[]", "[1]", "[[]]", R"([["x"]])", R"([[{"content": "no role"}]])", "[\"a\""}) {
        const TemporaryFile file(text);
        RequestSettings s;
        s.prompts_file = file.path;
        refused(s);
    }
    RequestSettings missing;
    missing.prompts_file = "/nonexistent/prompts.json";
    refused(missing);
}
