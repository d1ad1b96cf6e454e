// Many requests at once through the service, from several threads: answers equal those served alone, pages come back.
#include "tests/engine/harness.hpp"

#include <chrono>
#include <random>
#include <thread>

using namespace dsv4;
using namespace dsv4::test;

namespace {

struct Sent {
    Ask ask;
    bool cancel = false;
    std::uint64_t linger_us = 0; // a reader that takes its time
    Answer answer;
};

std::vector<Sent> mixed_load(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 random(seed);
    auto below = [&](std::uint64_t n) { return random() % n; };
    std::vector<std::vector<std::int32_t>> families;
    for (std::uint64_t i = 0; i < 4; ++i) families.push_back(random_prompt(seed * 100 + i, 1000));
    std::vector<Sent> load(count);
    for (Sent& s : load) {
        const auto& family = families[below(4)];
        s.ask.prompt.assign(family.begin(), family.begin() + std::ptrdiff_t(1 + below(900)));
        const auto own = random_prompt(random(), below(100));
        s.ask.prompt.insert(s.ask.prompt.end(), own.begin(), own.end());
        s.ask.max_tokens = std::int64_t(1 + below(150));
        if (below(6) == 0) s.ask.n = std::uint32_t(2 + below(3));
        if (below(4) == 0) {
            s.ask.temperature = 0.7f;
            s.ask.seed = below(1000);
        }
        if (below(4) == 0) s.ask.presence = 0.4f;
        if (below(8) == 0) s.ask.salt = "other";
        if (below(8) == 0) s.ask.priority = 1;
        s.cancel = below(8) == 0;
        if (below(6) == 0) s.linger_us = 300;
    }
    return load;
}

// Sends a load from four threads in random order and collects the answers.
void send(engine::Engine& engine, std::vector<Sent>& load, std::uint64_t seed) {
    std::vector<std::size_t> order(load.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    std::vector<std::thread> threads;
    std::atomic<int> stuck{0};
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            std::mt19937_64 random(seed + t);
            std::vector<std::pair<std::size_t, std::unique_ptr<Pending>>> mine;
            for (std::size_t k = t; k < order.size(); k += 4) {
                Sent& s = load[order[k]];
                mine.emplace_back(order[k], std::make_unique<Pending>(engine, s.ask));
                if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
                // Read a little of everything that is open.
                for (auto& [index, p] : mine) p->step(0);
                if (s.cancel && random() % 2) mine.back().second->cancel();
            }
            for (auto& [index, p] : mine) {
                if (load[index].cancel) p->cancel();
                try {
                    while (!p->answer().done) {
                        if (!p->step(60'000'000)) throw Failure(Code::deadline, "no more events");
                        if (load[index].linger_us)
                            std::this_thread::sleep_for(std::chrono::microseconds(load[index].linger_us));
                    }
                } catch (const Failure&) {
                    ++stuck;
                }
                load[index].answer = p->answer();
            }
        });
    for (std::thread& t : threads) t.join();
    REQUIRE(stuck == 0);
}

void check_against_alone(const std::vector<Sent>& load, const FakeOptions& fake) {
    // One quiet engine without a cache: requests one after the other.
    auto config = Rig::default_config();
    config.prefix_caching = false;
    Rig alone(config, fake);
    for (const Sent& s : load) {
        Ask one = s.ask;
        one.n = 1;
        one.priority = 0;
        REQUIRE(s.answer.errors == 0);
        for (std::uint32_t i = 0; i < s.ask.n; ++i) {
            const Completed& c = s.answer[i];
            REQUIRE(c.finals == 1);
            one.seed = s.ask.seed + i;
            const Answer reference = alone.ask(one);
            if (c.reason == DSV4_REASON_CANCELLED) {
                REQUIRE(s.cancel);
                REQUIRE(c.tokens.size() <= reference[0].tokens.size());
                REQUIRE(std::equal(c.tokens.begin(), c.tokens.end(), reference[0].tokens.begin()));
                continue;
            }
            REQUIRE(c.tokens == reference[0].tokens);
            REQUIRE(c.content == reference[0].content);
            REQUIRE(c.reason == reference[0].reason);
            REQUIRE(c.usage.completion_tokens == std::int64_t(c.tokens.size()));
        }
    }
}

} // namespace

TEST_CASE("64 concurrent requests get the answers they get alone, with and without cache, with pages to spare or not") {
    std::uint64_t preemptions = 0;
    double hits = 0;
    for (const bool cache : {true, false})
        for (const bool tight : {true, false}) {
            INFO("cache " << cache << ", tight " << tight);
            auto config = Rig::default_config();
            config.prefix_caching = cache;
            config.queue_tokens = 24;
            config.max_batched_tokens = 200;
            config.boundary_every_blocks = 2;
            if (tight) {
                config.pool_pages = {20, 10, 10, 10, 90, 20, 90};
                config.boundary_states = 3;
            }
            FakeOptions fake;
            fake.stop_every = 200;
            auto load = mixed_load(cache ? 1 : 2, 64);
            {
                Rig rig(config, fake);
                send(*rig.engine, load, 7 + tight);
                preemptions += tight ? rig.engine->load().preemptions : 0;
                hits += rig.metrics.value(engine::Metric::prefix_hits);
                CHECK((cache || rig.metrics.value(engine::Metric::prefix_hits) == 0));
                CHECK(rig.engine->drain(rig.engine->now_us() + 10'000'000));
            }
            check_against_alone(load, fake);
        }
    CHECK(preemptions > 20);
    CHECK(hits > 2000);
}

TEST_CASE("several threads submit, cancel, describe and drain at once") {
    FakeOptions fake;
    fake.ticket_us = 50;
    Rig rig(Rig::default_config(), fake);
    std::atomic<bool> stop{false};
    std::atomic<int> finals{0}, refused{0};
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            std::mt19937_64 random(t);
            while (!stop) {
                Ask ask;
                ask.prompt = random_prompt(random(), 1 + random() % 300);
                ask.max_tokens = 40;
                try {
                    Pending p(*rig.engine, ask);
                    if (random() % 3 == 0) p.cancel();
                    if (random() % 4 == 0) continue; // leave without reading
                    p.finish();
                    ++finals;
                } catch (const Failure& f) {
                    if (f.error().code != Code::environment) throw;
                    ++refused;
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
            }
        });
    std::thread looks([&] {
        while (!stop) {
            rig.engine->describe();
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
    });
    const auto soon = [](auto condition) { // however slow the machine
        for (int i = 0; i < 20'000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    soon([&] { return finals > 20; });
    CHECK(rig.engine->drain(rig.engine->now_us() + 20'000'000));
    soon([&] { return refused > 0; });
    stop = true;
    for (std::thread& t : threads) t.join();
    looks.join();
    CHECK(finals > 5);
    CHECK(refused > 0);
}

TEST_CASE("a request released while it runs lets the engine go") {
    FakeOptions fake;
    fake.ticket_us = 500;
    Rig rig(Rig::default_config(), fake);
    Ask ask;
    ask.prompt = random_prompt(1, 500);
    ask.max_tokens = 3000;
    auto a = std::make_unique<Pending>(*rig.engine, ask);
    a->step(1'000'000);
    a.reset(); // released while it runs
}
