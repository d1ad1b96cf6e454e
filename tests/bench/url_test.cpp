// Which URLs are taken, and what is said of the others.
#include "bench/url.hpp"
#include "dsv4/sdk/result.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4::bench;

TEST_CASE("URLs with addresses") {
    const Url a = parse_url("http://127.0.0.1:8000");
    CHECK(a.addresses == std::vector<std::string>{"127.0.0.1"});
    CHECK(a.port == 8000);
    CHECK(a.host == "127.0.0.1:8000");
    CHECK(a.prefix.empty());
    const Url b = parse_url("http://[::1]:81/api/v1/");
    CHECK(b.addresses == std::vector<std::string>{"::1"});
    CHECK(b.port == 81);
    CHECK(b.host == "[::1]:81");
    CHECK(b.prefix == "/api");
    const Url c = parse_url("http://localhost/v1");
    CHECK(c.addresses == std::vector<std::string>{"127.0.0.1", "::1"});
    CHECK(c.port == 80);
    CHECK(c.prefix.empty());
    CHECK(parse_url("http://10.1.2.3/xv1").prefix == "/xv1"); // "v1" is a whole segment or nothing
    CHECK(parse_url("http://10.1.2.3//v1//").prefix.empty());
}

TEST_CASE("URLs that are refused say why") {
    const auto message = [](const char* text) {
        try {
            parse_url(text);
        } catch (const dsv4::Failure& f) {
            return f.error().message;
        }
        return std::string("accepted");
    };
    CHECK_THAT(message("https://127.0.0.1"), ContainsSubstring("https is not supported"));
    CHECK_THAT(message("http://example.com:80"), ContainsSubstring("'example.com' is neither"));
    CHECK_THAT(message("127.0.0.1:8000"), ContainsSubstring("does not start with http://"));
    for (const char* text : {"http://127.0.0.1:0", "http://127.0.0.1:65536", "http://127.0.0.1:", "http://127.0.0.1:8x",
                             "http://127.0.0.1:-1", "http://[::1]8000"})
        CHECK_THAT(message(text), ContainsSubstring("port from 1 to 65535"));
    CHECK_THAT(message("http://[::1"), ContainsSubstring("bracket"));
    CHECK_THAT(message("http://[1.2.3.4]"), ContainsSubstring("IPv6"));
    CHECK_THAT(message("http:///x"), ContainsSubstring("no host"));
    CHECK_THAT(message("http://u:p@127.0.0.1"), ContainsSubstring("user name"));
    CHECK_THAT(message("http://127.0.0.1/?a"), ContainsSubstring("query"));
    CHECK_THAT(message("http://127.0.0.1/a\r\nX: y"), ContainsSubstring("character"));
}
