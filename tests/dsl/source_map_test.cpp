// Byte offsets, lines and columns.
#include "dsl/source_map.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4::dsl;

TEST_CASE("columns count code points, both ways") {
    SourceMap sources;
    const SourceId id = sources.add("x", "a\xC3\xA9\xE6\x97\xA5z\r\n\n\xF0\x9F\x98\x80q");
    struct Row {
        std::uint32_t offset;
        Position position;
    };
    const Row rows[] = {{0, {1, 1}}, {1, {1, 2}},  {3, {1, 3}},  {6, {1, 4}}, {7, {1, 5}},
                        {9, {2, 1}}, {10, {3, 1}}, {14, {3, 2}}, {15, {3, 3}}};
    for (const Row& row : rows) {
        INFO(row.offset);
        CHECK(sources.position(id, row.offset) == row.position);
        CHECK(sources.offset(id, row.position) == row.offset);
    }
    CHECK(sources.position(id, 2) == Position{1, 2});  // inside a code point: its start
    CHECK(sources.position(id, 99) == Position{3, 3}); // past the end
    CHECK(sources.offset(id, {1, 50}) == 7);           // past a line's end: before its line break
    CHECK(sources.offset(id, {9, 1}) == 15);
    CHECK(sources.line_count(id) == 3);
    CHECK(sources.line_text(id, 1) == "a\xC3\xA9\xE6\x97\xA5z");
    CHECK(sources.line_text(id, 2).empty());
}

TEST_CASE("long lines agree with counting one by one") {
    // Code points of one to four bytes in an order without a period of 64.
    static constexpr const char* pieces[] = {"a", "\xC3\xA9", "\xE6\x97\xA5", "\xF0\x9F\x98\x80", "b"};
    std::string text = "first\n";
    std::vector<std::uint32_t> starts;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        starts.push_back(static_cast<std::uint32_t>(text.size()));
        text += pieces[(i * i + i / 7) % 5];
    }
    text += "\nlast";
    SourceMap sources;
    const SourceId id = sources.add("x", text);
    for (std::uint32_t i = 0; i < starts.size(); ++i) {
        REQUIRE(sources.position(id, starts[i]) == Position{2, i + 1});
        REQUIRE(sources.offset(id, {2, i + 1}) == starts[i]);
    }
}

TEST_CASE("a byte order mark is before the first column") {
    SourceMap sources;
    const SourceId id = sources.add("x", "\xEF\xBB\xBF"
                                         "ab");
    CHECK(sources.position(id, 3) == Position{1, 1});
    CHECK(sources.offset(id, {1, 2}) == 4);
    CHECK(sources.line_text(id, 1) == "ab");
}

TEST_CASE("empty texts have one empty line") {
    SourceMap sources;
    const SourceId id = sources.add("x", "");
    CHECK(sources.line_count(id) == 1);
    CHECK(sources.position(id, 0) == Position{1, 1});
    CHECK(sources.offset(id, {1, 1}) == 0);
    CHECK(sources.offset(id, {1, 7}) == 0);
    CHECK(sources.line_text(id, 1).empty());
}

TEST_CASE("UTF-8 is checked strictly") {
    const auto invalid = [](std::string_view text) { return find_invalid_utf8(text); };
    constexpr auto none = std::string_view::npos;
    CHECK(invalid("") == none);
    CHECK(invalid("a\xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF") == none);
    CHECK(invalid("ab\x80") == 2);           // stray continuation
    CHECK(invalid("\xC1\xBF") == 0);         // overlong
    CHECK(invalid("\xE0\x9F\xBF") == 0);     // overlong
    CHECK(invalid("\xF0\x8F\xBF\xBF") == 0); // overlong
    CHECK(invalid("a\xED\xA0\x80") == 1);    // surrogate
    CHECK(invalid("\xF4\x90\x80\x80") == 0); // beyond Unicode
    CHECK(invalid("\xFF") == 0);
    CHECK(invalid("x\xE6\x97") == 1); // cut off
}
