// Page ownership: sharing at boundaries, copies at forks, release behind the committed length.
#include "core/state/pages.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using state::KindRule;
using state::PagePool;
using state::SequencePages;

namespace {

std::vector<KindRule> model_rules(std::int64_t window) {
    std::vector<dsv4_state_layout> layouts;
    auto add = [&](dsv4_state_kind kind, std::uint32_t positions) {
        dsv4_state_layout l{};
        l.struct_size = sizeof l;
        l.kind = kind;
        l.positions_per_page = positions;
        layouts.push_back(l);
    };
    add(DSV4_STATE_WINDOW, 64);
    add(DSV4_STATE_CSA, 256);
    add(DSV4_STATE_CSA_PARTIAL, 4);
    add(DSV4_STATE_HCA_PARTIAL, 64);
    add(DSV4_STATE_TOKEN_COUNTS, 0);
    return state::kind_rules(layouts, window);
}

std::vector<PagePool> make_pools(std::int64_t window, std::uint32_t pages) {
    std::vector<PagePool> pools;
    for (const KindRule& rule : model_rules(window)) pools.emplace_back(rule, pages);
    return pools;
}

const dsv4_page_table& table(const SequencePages& pages, dsv4_state_kind kind) {
    for (const dsv4_page_table& t : pages.tables())
        if (t.kind == kind) return t;
    throw Failure(Code::internal, "no such table");
}

std::uint32_t all_free(const std::vector<PagePool>& pools) {
    std::uint32_t n = 0;
    for (const PagePool& p : pools) n += p.free_pages();
    return n;
}

} // namespace

TEST_CASE("only the pages that end exactly at a boundary belong to its state") {
    auto pools = make_pools(128, 200);
    SequencePages pages(pools);
    REQUIRE(pages.reserve(600));
    const auto boundary = pages.capture(512);
    REQUIRE(boundary);
    // Window: positions 384 to 511 are pages 6 and 7. Ratio-4 partials: 508 to 511 are page 127. Ratio 128: none.
    REQUIRE(boundary->parts().size() == 3);
    CHECK(boundary->parts()[0].first_page == 6);
    CHECK(boundary->parts()[0].ids ==
          std::vector<std::int32_t>{table(pages, DSV4_STATE_WINDOW).ids[6], table(pages, DSV4_STATE_WINDOW).ids[7]});
    CHECK(boundary->parts()[1].first_page == 127);
    CHECK(boundary->parts()[1].ids == std::vector<std::int32_t>{table(pages, DSV4_STATE_CSA_PARTIAL).ids[127]});
    CHECK(boundary->parts()[2].first_page == 8);
    CHECK(boundary->parts()[2].ids.empty());
}

TEST_CASE("a window that is no multiple of the page keeps the page it begins in") {
    auto pools = make_pools(100, 200);
    SequencePages pages(pools);
    REQUIRE(pages.reserve(256));
    CHECK(pages.capture(256)->parts()[0].first_page == 2); // 156 lies in page 2
}

TEST_CASE("a boundary whose pages are gone cannot be captured") {
    auto pools = make_pools(128, 200);
    SequencePages pages(pools);
    REQUIRE(pages.reserve(700));
    pages.release_behind(700);
    CHECK_FALSE(pages.capture(512));
    CHECK(table(pages, DSV4_STATE_WINDOW).first_page == (700 - 128) / 64);
    CHECK(table(pages, DSV4_STATE_CSA_PARTIAL).first_page == (700 - 8) / 4);
    CHECK(table(pages, DSV4_STATE_CSA).first_page == 0);
}

TEST_CASE("an adopted prefix is shared, continues at the boundary and comes back whole") {
    auto pools = make_pools(128, 200);
    const std::uint32_t before = all_free(pools);
    {
        SequencePages first(pools), second(pools);
        REQUIRE(first.reserve(300));
        {
            const auto boundary = first.capture(256);
            REQUIRE(boundary);
            second.adopt({first.growing_block(0)}, *boundary, 256);
        }
        REQUIRE(second.reserve(260));
        const dsv4_page_table& window = table(second, DSV4_STATE_WINDOW);
        CHECK(window.first_page == 2);
        CHECK(window.count == 3); // two shared, one of its own
        CHECK(window.ids[0] == table(first, DSV4_STATE_WINDOW).ids[2]);
        CHECK(window.ids[2] != table(first, DSV4_STATE_WINDOW).ids[4]);
        const dsv4_page_table& partial = table(second, DSV4_STATE_CSA_PARTIAL);
        CHECK(partial.first_page == 63);
        CHECK(partial.count == 2);
        CHECK(table(second, DSV4_STATE_HCA_PARTIAL).first_page == 4);
        CHECK(table(second, DSV4_STATE_CSA).ids[0] == table(first, DSV4_STATE_CSA).ids[0]);
        CHECK(table(second, DSV4_STATE_CSA).ids[1] != table(first, DSV4_STATE_CSA).ids[1]);
        CHECK(pools[0].references(window.ids[0]) == 2);
    }
    CHECK(all_free(pools) == before);
}

TEST_CASE("a fork shares whole pages and copies begun ones") {
    auto pools = make_pools(128, 200);
    const std::uint32_t before = all_free(pools);
    {
        SequencePages parent(pools), child(pools);
        REQUIRE(parent.reserve(400));
        std::vector<dsv4_page_copy> copies;
        REQUIRE(child.fork(parent, 330, copies));
        // 330 = 5 window pages and 10 positions, 1 block and 74, 82 partial pages and 2, 5 pages and 10.
        REQUIRE(copies.size() == 4);
        for (const dsv4_page_copy& c : copies) {
            const dsv4_page_table& from = table(parent, dsv4_state_kind(c.kind));
            const dsv4_page_table& to = table(child, dsv4_state_kind(c.kind));
            CHECK(to.ids[to.count - 1] == c.to);
            CHECK(from.ids[std::int64_t(to.count) - 1 + to.first_page - from.first_page] == c.from);
        }
        CHECK(table(child, DSV4_STATE_WINDOW).first_page == (330 - 128) / 64);
        CHECK(table(child, DSV4_STATE_CSA).count == 2);
        CHECK(table(child, DSV4_STATE_CSA).ids[0] == table(parent, DSV4_STATE_CSA).ids[0]);
        SequencePages even(pools);
        copies.clear();
        REQUIRE(even.fork(parent, 256, copies));
        CHECK(copies.empty());
    }
    CHECK(all_free(pools) == before);
}

TEST_CASE("a fork that does not fit changes nothing") {
    auto pools = make_pools(128, 100);
    SequencePages parent(pools), child(pools);
    REQUIRE(parent.reserve(398)); // 100 partial pages: the pool is empty
    const std::uint32_t before = all_free(pools);
    std::vector<dsv4_page_copy> copies{{1, 2, 3}};
    CHECK_FALSE(child.fork(parent, 330, copies));
    CHECK(copies.size() == 1);
    CHECK(all_free(pools) == before);
}

TEST_CASE("pages that do not divide a block are refused") {
    dsv4_state_layout l{};
    l.kind = DSV4_STATE_WINDOW;
    l.positions_per_page = 96;
    CHECK_THROWS_AS(state::kind_rules({l}, 128), Failure);
    l.kind = DSV4_STATE_CSA;
    l.positions_per_page = 128;
    CHECK_THROWS_AS(state::kind_rules({l}, 128), Failure);
}

TEST_CASE("a page released twice is a defect that is named") {
    PagePool pool(model_rules(128)[0], 2);
    const std::int32_t page = pool.acquire();
    pool.share(page);
    pool.release(page);
    pool.release(page);
    CHECK_THROWS_AS(pool.release(page), Failure);
    CHECK(pool.acquire() >= 0);
    CHECK(pool.acquire() >= 0);
    CHECK(pool.acquire() == -1);
}
