// The event stream parser on every way to cut a stream.
#include "bench/sse.hpp"
#include "dsv4/sdk/result.hpp"
#include "tests/support/catch.hpp"

#include <string>
#include <vector>

using namespace dsv4::bench;

namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events parse(const std::vector<std::string>& pieces) {
    SseParser parser;
    Events events;
    for (const std::string& piece : pieces)
        for (const SseEvent& e : parser.feed(piece)) events.emplace_back(e.type, e.data);
    return events;
}

// At every pair of cuts, and byte by byte.
void check_every_split(const std::string& stream, const Events& expected) {
    for (std::size_t a = 0; a <= stream.size(); ++a)
        for (std::size_t b = a; b <= stream.size(); ++b) {
            const Events got = parse({stream.substr(0, a), stream.substr(a, b - a), stream.substr(b)});
            if (got != expected) FAIL("cuts at " << a << " and " << b << " of: " << stream);
        }
    std::vector<std::string> bytes;
    for (const char c : stream) bytes.emplace_back(1, c);
    REQUIRE(parse(bytes) == expected);
}

} // namespace

TEST_CASE("events of the WHATWG examples") {
    check_every_split("data: This is the first message.\n\n"
                      "data: This is the second message, it\ndata: has two lines.\n\n"
                      "data: This is the third message.\n\n",
                      {{"", "This is the first message."},
                       {"", "This is the second message, it\nhas two lines."},
                       {"", "This is the third message."}});
    check_every_split("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n",
                      {{"add", "73857293"}, {"remove", "2153"}});
    check_every_split(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
                      {{"", "first event"}, {"", "second event"}});
    check_every_split("data:test\n\ndata: test\n\n", {{"", "test"}, {"", "test"}});
}

TEST_CASE("every line ending, mixed, and a byte order mark") {
    const Events two{{"", "a\nb"}, {"x", "[DONE]"}};
    check_every_split("data: a\r\ndata: b\r\n\r\nevent: x\r\ndata: [DONE]\r\n\r\n", two);
    check_every_split("data: a\rdata: b\r\revent: x\rdata: [DONE]\r\r", two);
    check_every_split("data: a\ndata: b\r\n\nevent: x\rdata: [DONE]\n\r\n", two);
    check_every_split("\xEF\xBB\xBF"
                      "data: a\ndata: b\n\nevent: x\ndata: [DONE]\n\n",
                      two);
}

TEST_CASE("comments, unknown fields and events without data") {
    check_every_split(
        ": keep-alive\n\n: data: no\nretry: 10\nother\nevent: ghost\n\ndata: {\"a\": \"b: c\"}\n: in it\n\n",
        {{"", "{\"a\": \"b: c\"}"}});
    check_every_split("data\n\n", {{"", ""}}); // a data field that is empty is still a data field
}

TEST_CASE("an event that does not end is none, and one too large is refused") {
    CHECK(parse({"data: lost\n"}).empty());
    SseParser parser(16);
    CHECK(parser.feed("data: 0123456789\n\n").size() == 1);
    CHECK_THROWS_AS(parser.feed("data: 0123456789a"), dsv4::Failure);
    SseParser lines(16);
    CHECK(lines.feed("data: 01234567\n").empty());
    CHECK_THROWS_AS(lines.feed("data: 01234567\n"), dsv4::Failure);
}
