// The completion parser against every committed parsing vector, cut in every way that matters.
#include "tests/support/catch.hpp"

#include "completion_cases.hpp"
#include "completion_parser.hpp"

using namespace dsv4;
using namespace dsv4::deepseek_v4;
using test::CompletionCase;
using test::Json;
using test::Run;

TEST_CASE("whole completions parse as the vectors say") {
    const auto cases = test::completion_cases();
    REQUIRE(cases.size() == 54);
    for (const CompletionCase& c : cases) {
        INFO(c.name << ": " << c.why);
        Run run(c);
        run.feed(0, c.bytes.size());
        run.finish();
        CHECK(test::result_json(run.whole()) == c.expected);
        CHECK(run.whole().malformed == c.malformed);
    }
}

TEST_CASE("streams give the listed deltas after each chunk") {
    std::size_t streams = 0;
    for (const CompletionCase& c : test::completion_cases()) {
        for (const test::StreamCase& stream : c.streams) {
            INFO(c.name << ", stream " << stream.label << ": " << c.why);
            Run run(c);
            std::size_t at = 0;
            for (std::size_t i = 0; i < stream.sizes.size(); ++i) {
                INFO("chunk " << i << ": " << c.bytes.substr(at, stream.sizes[i]));
                const Json delta = test::delta_json(run.feed(at, stream.sizes[i]));
                CHECK(delta == stream.deltas[i]);
                at += stream.sizes[i];
            }
            REQUIRE(at == c.bytes.size());
            CHECK(test::delta_json(run.finish()) == stream.final_delta);
            CHECK(test::result_json(run.whole()) == c.expected);
            ++streams;
        }
    }
    CHECK(streams >= 54);
}

TEST_CASE("every cut into two chunks gives the same result") {
    for (const CompletionCase& c : test::completion_cases()) {
        for (std::size_t cut = 0; cut <= c.bytes.size(); ++cut) {
            Run run(c);
            run.feed(0, cut);
            run.feed(cut, c.bytes.size() - cut);
            run.finish();
            if (test::result_json(run.whole()) == c.expected) continue;
            FAIL(c.name << ", cut at byte " << cut << ": " << test::result_json(run.whole()).dump());
        }
    }
}

TEST_CASE("one character and one byte at a time give the same result") {
    for (const CompletionCase& c : test::completion_cases()) {
        INFO(c.name);
        Run bytes(c);
        for (std::size_t i = 0; i < c.bytes.size(); ++i) bytes.feed(i, 1);
        bytes.finish();
        CHECK(test::result_json(bytes.whole()) == c.expected);

        Run characters(c);
        for (std::size_t i = 0; i < c.bytes.size();) {
            std::size_t size = 1;
            while (i + size < c.bytes.size() && (c.bytes[i + size] & 0xC0) == 0x80) ++size;
            characters.feed(i, size);
            i += size;
        }
        characters.finish();
        CHECK(test::result_json(characters.whole()) == c.expected);
        CHECK(characters.whole().malformed == c.malformed);
    }
}
