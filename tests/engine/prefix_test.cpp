// The prefix cache by itself and through the engine: what is reused, what is evicted, and every reason for a miss.
#include "tests/engine/harness.hpp"

#include <set>

using namespace dsv4;
using namespace dsv4::test;
using engine::Metric;
using prefix::BlockKeys;
using prefix::Match;
using prefix::Miss;
using prefix::PrefixCache;

namespace {

// Pools and sequences without a scheduler.
struct Bench {
    explicit Bench(prefix::Options options, std::uint32_t blocks = 64, std::uint32_t sliding = 400) {
        FakeBackend backend;
        for (const auto& rule : state::kind_rules(backend.state_layouts(fake_program()), 128))
            pools.emplace_back(rule, rule.grows() ? blocks : sliding);
        cache = std::make_unique<PrefixCache>(options, pools);
    }
    // Computes `tokens` as one sequence and publishes what a scheduler would, retaining the given block boundaries.
    void compute(const std::vector<std::int32_t>& tokens, const std::set<std::size_t>& retained,
                 std::string_view salt = {}) {
        state::SequencePages pages(pools);
        REQUIRE(pages.reserve(std::int64_t(tokens.size())));
        BlockKeys keys(salt);
        cache->publish(keys, tokens, tokens.size() / 256, pages);
        for (std::size_t block : retained)
            cache->retain(keys, tokens, block, *pages.capture(std::int64_t(block) * 256));
    }
    Match match(const std::vector<std::int32_t>& tokens, std::string_view salt = {}) {
        BlockKeys keys(salt);
        return cache->match(keys, tokens);
    }
    std::uint32_t free_blocks() const { return pools[1].free_pages(); }
    std::vector<state::PagePool> pools;
    std::unique_ptr<PrefixCache> cache;
};

std::vector<std::int32_t> joined(std::vector<std::int32_t> a, const std::vector<std::int32_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

} // namespace

TEST_CASE("block keys depend on every token before, on order and on the salt") {
    auto tokens = random_prompt(1, 768);
    auto last = [](std::vector<std::int32_t> t, std::string_view salt) { return BlockKeys(salt).upto(3, t)[2]; };
    const auto key = last(tokens, "");
    CHECK(last(tokens, "") == key);
    CHECK(last(tokens, "a") != key);
    auto changed = tokens;
    changed[0] ^= 1;
    CHECK(last(changed, "") != key);
    changed = tokens;
    std::swap(changed[10], changed[300]);
    CHECK(last(changed, "") != key);
    BlockKeys grown("");
    grown.upto(1, tokens);
    CHECK(grown.upto(3, tokens)[2] == key);
}

TEST_CASE("a hit needs both the blocks and a boundary state, and leaves a token over") {
    Bench bench({true, 8, 0});
    const auto tokens = random_prompt(1, 1024);
    bench.compute(tokens, {2, 4});
    CHECK(bench.match(joined(tokens, {7})).tokens == 1024);
    CHECK(bench.match(joined(tokens, {7})).reason() == "");
    // The fourth boundary is the end itself: no token would be left to compute.
    const Match whole = bench.match(tokens);
    CHECK(whole.tokens == 512);
    CHECK(whole.reason() == "boundary-state-not-retained");
    const std::vector<std::int32_t> half(tokens.begin(), tokens.begin() + 600);
    CHECK(bench.match(half).tokens == 512);
    CHECK(bench.match(half).reason() == "");
}

TEST_CASE("every reason for a miss says what happened") {
    const auto tokens = random_prompt(1, 1024);
    SECTION("disabled") {
        Bench bench({false, 8, 0});
        bench.compute(tokens, {4});
        CHECK(bench.match(tokens).reason() == "disabled");
        CHECK(bench.cache->statistics().blocks == 0);
    }
    SECTION("below-block") {
        Bench bench({true, 8, 0});
        CHECK(bench.match(random_prompt(1, 256)).reason() == "below-block");
        CHECK(bench.match(random_prompt(1, 257)).reason() == "none-yet");
    }
    SECTION("none-yet: nothing known, or nothing behind what is known") {
        Bench bench({true, 8, 0});
        CHECK(bench.match(tokens).reason() == "none-yet");
        bench.compute({tokens.begin(), tokens.begin() + 512}, {2});
        const Match m = bench.match(tokens);
        CHECK(m.tokens == 512);
        CHECK(m.reason() == "none-yet");
    }
    SECTION("diverged-at: the first token that differs") {
        Bench bench({true, 8, 0});
        bench.compute(tokens, {1, 2, 3, 4});
        auto other = joined(tokens, {7});
        other[700] ^= 1;
        const Match m = bench.match(other);
        CHECK(m.tokens == 512);
        CHECK(m.reason() == "diverged-at 700");
        other = tokens;
        other[3] ^= 1;
        CHECK(bench.match(other).reason() == "diverged-at 3");
        other[0] ^= 1; // another first token, but no other salt knows it: the trees part at 0
        CHECK(bench.match(other).reason() == "diverged-at 0");
    }
    SECTION("salt: the same tokens, but of another tenant") {
        Bench bench({true, 8, 0});
        bench.compute(tokens, {4}, "one");
        CHECK(bench.match(tokens, "two").reason() == "salt");
        CHECK(bench.match(tokens, "two").tokens == 0);
        CHECK(bench.match(joined(tokens, {7}), "one").tokens == 1024);
        bench.compute(random_prompt(2, 512), {2}, "two");
        CHECK(bench.match(tokens, "two").reason() == "salt");
    }
    SECTION("growing-evicted") {
        Bench bench({true, 8, 0});
        bench.compute(tokens, {2, 3});
        REQUIRE(bench.cache->evict_block());
        REQUIRE(bench.cache->evict_block());
        const Match m = bench.match(joined(tokens, {7}));
        CHECK(m.tokens == 512);
        CHECK(m.reason() == "growing-evicted");
    }
    SECTION("boundary-state-evicted by the budget") {
        Bench bench({true, 1, 0});
        bench.compute(tokens, {3});
        bench.compute(random_prompt(2, 512), {2});
        const Match m = bench.match({tokens.begin(), tokens.begin() + 800});
        CHECK(m.tokens == 0);
        CHECK(m.reason() == "boundary-state-evicted");
    }
    SECTION("boundary-state-evicted to make room") {
        Bench bench({true, 8, 0});
        bench.compute(tokens, {3});
        REQUIRE(bench.cache->evict_boundary_state());
        CHECK_FALSE(bench.cache->evict_boundary_state());
        CHECK(bench.match({tokens.begin(), tokens.begin() + 800}).reason() == "boundary-state-evicted");
    }
    SECTION("boundary-state-not-retained") {
        Bench bench({true, 0, 0});
        bench.compute(tokens, {4});
        CHECK(bench.match(joined(tokens, {7})).reason() == "boundary-state-not-retained");
    }
}

TEST_CASE("eviction takes the least recently used leaf and never a block in use") {
    Bench bench({true, 8, 0}, 12);
    const auto a = random_prompt(1, 768), b = random_prompt(2, 768);
    bench.compute(a, {3});
    bench.compute(b, {3});
    CHECK(bench.free_blocks() == 6);
    CHECK(bench.match(joined(a, {7})).tokens == 768); // now b is older
    state::SequencePages holds_b(bench.pools);
    BlockKeys keys("");
    const auto longer_b = joined(b, {7});
    const Match m = bench.cache->match(keys, longer_b);
    bench.cache->attach(m, keys, longer_b, holds_b);
    for (int i = 0; i < 3; ++i) REQUIRE(bench.cache->evict_block()); // a's, from its end: b's are in use
    CHECK(bench.match(joined(a, {7})).tokens == 0);
    CHECK_FALSE(bench.cache->evict_block());
    CHECK(bench.free_blocks() == 9);
    holds_b.clear();
    REQUIRE(bench.cache->evict_block());
    CHECK(bench.match(longer_b).reason() == "boundary-state-not-retained"); // two blocks are left, without a state
    bench.cache->clear();
    CHECK(bench.free_blocks() == 12);
}

TEST_CASE("publishing again behind an eviction repairs the chain") {
    Bench bench({true, 8, 0});
    const auto tokens = random_prompt(1, 1024);
    bench.compute(tokens, {4});
    for (int i = 0; i < 3; ++i) REQUIRE(bench.cache->evict_block());
    CHECK(bench.cache->statistics().blocks == 1);
    bench.compute(tokens, {4});
    CHECK(bench.cache->statistics().blocks == 4);
    CHECK(bench.match(joined(tokens, {7})).tokens == 1024);
}

TEST_CASE("a next turn reuses the end of the turn before") {
    auto config = Rig::default_config();
    config.boundary_every_blocks = 0; // only ends are kept
    Rig rig(config);
    Ask ask;
    ask.prompt = random_prompt(1, 700);
    ask.max_tokens = 400;
    const Answer first = rig.ask(ask);
    Ask next = ask;
    next.prompt = joined(joined(ask.prompt, first[0].tokens), random_prompt(2, 50));
    const Answer second = rig.ask(next);
    CHECK(second.cached == 1024); // 1100 tokens: the last boundary that was committed
    CHECK(second.miss == "");
    CHECK(second[0].usage.cached_tokens == 1024);
    // The end of the first prompt is kept too: another answer to it starts there.
    Ask retry = ask;
    retry.temperature = 1;
    CHECK(rig.ask(retry).cached == 512);
    CHECK(rig.metrics.value(Metric::prefix_hits) == 1024 + 512);
    CHECK(rig.metrics.value(Metric::prefix_queries) == 700 + 1150 + 700);
    Rig cold;
    CHECK(cold.ask(next)[0].tokens == second[0].tokens);
}

TEST_CASE("every n-th boundary is kept, so that a branch in the middle starts near") {
    auto config = Rig::default_config();
    config.boundary_every_blocks = 2;
    Rig rig(config);
    Ask ask;
    ask.prompt = random_prompt(1, 1600);
    rig.ask(ask);
    Ask branch = ask;
    branch.prompt[1200] ^= 1;
    const Answer b = rig.ask(branch);
    CHECK(b.cached == 1024); // blocks 1 to 4 are common, the fourth boundary is kept
    CHECK(b.miss == "diverged-at 1200");
    branch = ask;
    branch.prompt[800] ^= 1;
    const Answer c = rig.ask(branch);
    CHECK(c.cached == 512); // block 3 is common, but its boundary was not kept
    CHECK(c.miss == "boundary-state-not-retained");
    CHECK(rig.metrics.value(Metric::prefix_misses, "boundary-state-not-retained") == 1);
    CHECK(rig.metrics.value(Metric::prefix_misses, "diverged-at") == 1);
    CHECK(rig.metrics.value(Metric::prefix_misses, "none-yet") == 1);
}

TEST_CASE("salts keep tenants apart through the engine") {
    Rig rig;
    Ask ask;
    ask.prompt = random_prompt(1, 600);
    ask.salt = "tenant one";
    const Answer one = rig.ask(ask);
    ask.salt = "tenant two";
    const Answer two = rig.ask(ask);
    CHECK(two.cached == 0);
    CHECK(two.miss == "salt");
    CHECK(two[0].tokens == one[0].tokens);
    CHECK(rig.ask(ask).cached == 512);
}
