// What streams and whole answers are taken for.
#include "bench/answer.hpp"
#include "dsv4/sdk/result.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4::bench;

namespace {

// Feeds each part at 10, 20, 30 ... microseconds.
Sample read(const std::vector<std::string>& parts, bool finish = true) {
    Sample sample;
    StreamReader reader(sample);
    std::int64_t now = 0;
    for (const std::string& part : parts) reader.feed(part, now += 10);
    if (finish) reader.finish(now + 10);
    return sample;
}

std::string delta(const std::string& members) {
    return "data: {\"choices\":[{\"index\":0,\"delta\":{" + members + "}}]}\n\n";
}

const std::string done = "data: [DONE]\n\n";
const std::string usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":34}}\n\n";

} // namespace

TEST_CASE("output is what carries text, reasoning or calls") {
    const Sample s = read({delta(R"("role":"assistant","content":"")"), delta(R"("reasoning_content":"hm")"),
                           ": ping\n\n", delta(R"("content":"a")"), delta(R"("content":null)"),
                           delta(R"("tool_calls":[{"index":0,"function":{"name":"f"}}])"), delta(""), usage, done});
    CHECK(s.outcome == Outcome::ok);
    CHECK(s.outputs_us == std::vector<std::int64_t>{20, 40, 60});
    CHECK(s.end_us == 90);
    REQUIRE(s.usage);
    CHECK(s.usage->prompt_tokens == 12);
    CHECK(s.usage->completion_tokens == 34);
}

TEST_CASE("completions carry text") {
    const Sample s = read({"data: {\"choices\":[{\"text\":\"a\"}],\"usage\":null}\n\n", done});
    CHECK(s.outputs_us == std::vector<std::int64_t>{10});
    CHECK_FALSE(s.usage);
}

TEST_CASE("errors in a stream, in either form") {
    const Sample a =
        read({delta(R"("content":"a")"), "data: {\"error\":{\"message\":\"lost\",\"code\":500}}\n\n", done});
    CHECK(a.outcome == Outcome::stream_error);
    CHECK(a.message == "lost");
    CHECK(a.end_us == 20);
    const Sample b = read({"event: error\ndata: {\"error\":\"gone\"}\n\n"});
    CHECK(b.outcome == Outcome::stream_error);
    CHECK(b.message == "gone");
    CHECK(read({"event: error\ndata: plain words\n\n"}).message == "plain words");
}

TEST_CASE("streams that are not what the API says") {
    const auto malformed = [](const std::string& text) {
        const Sample s = read({text});
        CHECK(s.outcome == Outcome::malformed);
        CHECK_FALSE(s.message.empty());
        CHECK(s.message.size() <= 300);
    };
    malformed("data: {\"choices\":[\n\n");
    malformed("data: 5\n\n");
    malformed("data: {\"choices\":{}}\n\n");
    malformed("data: {}\n\n");
    malformed("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":-1,\"completion_tokens\":1}}\n\n");
    malformed("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n");
    malformed("data: " + std::string(5000, '[') + "\n\n");
    malformed("data: " + std::string(500, 'x') + "\n\n");
    malformed(delta(R"("content":"a")"));                    // no [DONE]
    malformed(delta(R"("content":"a")") + "data: [DONE]\n"); // the event does not end
}

TEST_CASE("nothing after the end of a stream changes its sample") {
    const Sample s = read({done, delta(R"("content":"late")"), "data: {\"error\":{\"message\":\"late\"}}\n\n"});
    CHECK(s.outcome == Outcome::ok);
    CHECK(s.outputs_us.empty());
    CHECK(s.end_us == 10);
}

TEST_CASE("whole answers") {
    const auto read_whole = [](const std::string& body) {
        Sample s;
        read_whole_answer(body, s);
        return s;
    };
    const Sample good =
        read_whole(R"({"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}})");
    CHECK(good.outcome == Outcome::ok);
    REQUIRE(good.usage);
    CHECK(good.usage->completion_tokens == 2);
    for (const char* bad : {"", "<html>", "[]", "{}", R"({"choices":[]})", R"({"choices":[{}],"usage":5})",
                            R"({"choices":[{}],"error":{"message":"no"}})"})
        CHECK(read_whole(bad).outcome == Outcome::malformed);
}

TEST_CASE("messages of errors") {
    CHECK(error_message(R"({"error":{"message":"the queue is full"}})") == "the queue is full");
    CHECK(error_message(R"({"error":"flat"})") == "flat");
    CHECK(error_message(R"({"message":"other"})") == "other");
    CHECK(error_message("Bad Gateway") == "Bad Gateway");
    CHECK(error_message("").empty());
    CHECK(error_message(std::string(1000, 'y')).size() == 300);
}

TEST_CASE("the first model") {
    CHECK(first_model(R"({"object":"list","data":[{"id":"a"},{"id":"b"}]})") == "a");
    for (const char* bad : {"", "{}", R"({"data":[]})", R"({"data":[{"id":5}]})", R"({"data":[1]})"})
        CHECK_THROWS_AS(first_model(bad), dsv4::Failure);
}
