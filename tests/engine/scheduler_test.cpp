// The scheduler driven through random schedules: whatever happens around it, a sequence gets the tokens it gets alone.
#include "core/engine/scheduler.hpp"
#include "tests/engine/harness.hpp"

#include <map>
#include <random>

using namespace dsv4;
using namespace dsv4::test;
using engine::Landed;
using engine::Plan;
using engine::Scheduler;
using engine::SchedulerOptions;
using engine::Sequence;

namespace {

// A scheduler with its backend; two steps in flight like the engine.
class Driver {
  public:
    Driver(SchedulerOptions options, std::vector<std::uint32_t> pages, FakeOptions fake = {})
        : backend_(std::move(fake)),
          session_({&sdk::Backend::table(), static_cast<sdk::Backend*>(&backend_)}, config()),
          rules_(state::kind_rules(session_.backend().state_layouts(fake_program()), 128)),
          scheduler_(options, rules_, pages) {
        std::vector<dsv4_state_pool> pools;
        for (std::size_t i = 0; i < rules_.size(); ++i) pools.push_back({rules_[i].kind, pages[i]});
        session_.allocate(fake_program(), pools, options.slots);
        executable_ = session_.compile(fake_program(), options.max_rows, options.slots);
    }

    // Plans as far as two steps in flight allow; false: nothing in flight and nothing to plan.
    bool submit() {
        while (flights_.size() < 2) {
            auto plan = std::make_unique<Plan>();
            if (!scheduler_.plan(*plan)) break;
            const dsv4_ticket ticket = session_.submit(executable_, plan->batch.view());
            flights_.push_back({std::move(plan), ticket});
        }
        return !flights_.empty();
    }
    std::vector<Landed> land() {
        auto [plan, ticket] = std::move(flights_.front());
        flights_.pop_front();
        std::vector<Landed> landed;
        scheduler_.landed(*plan, session_.wait(ticket), landed);
        return landed;
    }
    Scheduler& scheduler() { return scheduler_; }
    FakeBackend& backend() { return backend_; }
    bool in_flight() const { return !flights_.empty(); }
    // Pages that are not free once the cache is empty.
    std::int64_t lost_pages() {
        scheduler_.cache().clear();
        std::int64_t lost = 0;
        for (const state::PagePool& pool : scheduler_.pools()) lost += std::int64_t(pool.size()) - pool.free_pages();
        return lost;
    }

  private:
    static const dsv4_session_config& config() {
        static const dsv4_session_config c = [] {
            dsv4_session_config x{};
            x.struct_size = sizeof x;
            x.group.world = 1;
            return x;
        }();
        return c;
    }
    FakeBackend backend_;
    runtime::BackendSession session_;
    std::vector<state::KindRule> rules_;
    Scheduler scheduler_;
    dsv4_executable* executable_ = nullptr;
    std::deque<std::pair<std::unique_ptr<Plan>, dsv4_ticket>> flights_;
};

// Pages for window, csa, hca, index, csa partial, hca partial, index partial.
std::vector<std::uint32_t> pool_pages(std::uint32_t blocks, std::uint32_t windows, std::uint32_t partials) {
    return {windows, blocks, blocks, blocks, partials, windows, partials};
}

struct Job {
    std::vector<std::int32_t> prompt;
    std::int64_t answer = 0;
    float temperature = 0;
    std::uint64_t seed = 0;
    float presence = 0;
};

sampling::Sampling sampling_of(const Job& job) {
    sampling::Sampling s;
    s.temperature = job.temperature;
    s.seed = job.seed;
    s.presence_penalty = job.presence;
    s.stop_ids = {1};
    s.max_length = std::int64_t(job.prompt.size()) + job.answer;
    return s;
}

constexpr std::uint64_t stop_every = 150;

// The tokens of a job that has a backend for itself, no cache and room for everything.
std::vector<std::int32_t> alone(const Job& job) {
    FakeOptions fake;
    fake.stop_every = stop_every;
    SchedulerOptions options;
    options.max_rows = 64;
    options.prefix.enabled = false;
    Driver driver(options, pool_pages(16, 80, 1100), fake);
    Sequence s(job.prompt, sampling_of(job), {});
    driver.scheduler().add(s);
    while (driver.submit()) driver.land();
    REQUIRE(driver.backend().violations() == std::vector<std::string>{});
    REQUIRE(driver.scheduler().take_retired().size() == 1);
    REQUIRE_FALSE(s.failure);
    return s.tokens;
}

struct Totals {
    std::uint64_t preemptions = 0, evicted_blocks = 0, evicted_states = 0, hits = 0, forked = 0, finished = 0;
};

// One random schedule over shared and diverging prompts.
void run_schedule(std::uint64_t seed, Totals& totals) {
    INFO("schedule " << seed);
    std::mt19937_64 random(seed);
    auto below = [&](std::uint64_t n) { return std::int64_t(random() % n); };

    SchedulerOptions options;
    options.slots = std::uint32_t(2 + below(6));
    options.max_rows = std::uint32_t(8 + below(300));
    options.prefix.enabled = below(5) != 0;
    options.prefix.boundary_states = std::uint32_t(below(8));
    options.prefix.every_blocks = std::uint32_t(below(3));
    FakeOptions fake;
    fake.stop_every = stop_every;
    // Small enough that room must be made, large enough for the longest sequence.
    const bool tight = below(4) != 0;
    Driver driver(
        options,
        tight ? pool_pages(std::uint32_t(6 + below(4)), std::uint32_t(12 + below(12)), std::uint32_t(30 + below(80)))
              : pool_pages(64, 200, 2000),
        fake);

    struct Live {
        Job job;
        std::unique_ptr<Sequence> sequence;
        bool cancelled = false, retired = false;
        std::int64_t host_stop = -1; // generated tokens after which the host ends it
    };
    std::vector<std::unique_ptr<Live>> live;
    std::vector<std::vector<std::int32_t>> families;
    for (int i = 0; i < 3; ++i) families.push_back(random_prompt(seed * 10 + std::uint64_t(i), 1100));
    int left = 14;
    auto arrive = [&] {
        Job job;
        const auto& family = families[std::size_t(below(3))];
        job.prompt.assign(family.begin(), family.begin() + 1 + below(800));
        if (below(2)) { // diverges somewhere
            const auto own = random_prompt(random(), std::size_t(1 + below(300)));
            job.prompt.insert(job.prompt.end(), own.begin(), own.end());
        }
        job.answer = 1 + below(250);
        if (below(3) == 0) {
            job.temperature = 0.8f;
            job.seed = random() % 5;
        }
        if (below(4) == 0) job.presence = 0.5f;
        const std::int64_t n = below(5) == 0 ? 2 + below(3) : 1;
        Sequence* first = nullptr;
        const int priority = below(6) == 0 ? 1 : 0;
        for (std::int64_t i = 0; i < n; ++i) {
            auto l = std::make_unique<Live>();
            l->job = job;
            l->job.seed += std::uint64_t(i);
            l->sequence = std::make_unique<Sequence>(job.prompt, sampling_of(l->job), "");
            l->sequence->owner = l.get();
            l->sequence->fork_of = first;
            l->sequence->priority = priority;
            if (below(6) == 0) l->host_stop = 1 + below(60);
            driver.scheduler().add(*l->sequence);
            if (!first) first = l->sequence.get();
            live.push_back(std::move(l));
        }
        --left;
    };
    auto collect = [&] {
        for (Sequence* s : driver.scheduler().take_retired()) {
            auto* l = static_cast<Live*>(s->owner);
            REQUIRE_FALSE(l->retired);
            l->retired = true;
        }
    };
    int idle_rounds = 0;
    for (int step = 0;; ++step) {
        REQUIRE(step < 100000);
        while (left > 0 && below(4) == 0) arrive();
        if (!live.empty()) {
            Live& some = *live[std::size_t(below(live.size()))];
            if (below(60) == 0) {
                driver.scheduler().finish(*some.sequence);
                some.cancelled = true;
            }
            if (below(10) == 0) some.sequence->paused = !some.sequence->paused;
        }
        if (left == 0 && below(20) == 0)
            for (auto& l : live) l->sequence->paused = false;
        const bool ran = driver.submit();
        collect();
        if (!ran) {
            const bool all = std::all_of(live.begin(), live.end(), [](const auto& l) { return l->retired; });
            if (left == 0 && all) break;
            // Nothing runs: only because of pauses, or because nobody has arrived.
            const bool paused =
                std::any_of(live.begin(), live.end(), [](const auto& l) { return !l->retired && l->sequence->paused; });
            if (!paused && left == 0 && !driver.scheduler().changed()) {
                REQUIRE(++idle_rounds < 3);
            } else
                idle_rounds = 0;
            continue;
        }
        for (const Landed& landed : driver.land()) {
            auto* l = static_cast<Live*>(landed.sequence->owner);
            if (l->host_stop >= 0 && landed.sequence->generated() >= l->host_stop)
                driver.scheduler().finish(*landed.sequence);
        }
        collect();
    }
    REQUIRE(driver.backend().violations() == std::vector<std::string>{});
    for (const auto& l : live) {
        INFO("prompt " << l->job.prompt.size() << ", answer " << l->job.answer << ", preempted "
                       << l->sequence->preemptions << ", cached " << l->sequence->prefix.tokens);
        REQUIRE_FALSE(l->sequence->failure);
        const auto reference = alone(l->job);
        const auto& got = l->sequence->tokens;
        REQUIRE(got.size() <= reference.size());
        REQUIRE(std::equal(got.begin(), got.end(), reference.begin()));
        if (!l->cancelled && l->host_stop < 0) {
            REQUIRE(got.size() == reference.size());
            ++totals.finished;
        }
        totals.hits += l->sequence->prefix.tokens > 0;
    }
    const auto load = driver.scheduler().load();
    totals.preemptions += load.preemptions;
    totals.evicted_blocks += load.prefix.evicted_blocks;
    totals.evicted_states += load.prefix.evicted_boundary_states;
    CHECK(load.running == 0);
    CHECK(load.waiting == 0);
    REQUIRE(driver.lost_pages() == 0);
}

} // namespace

TEST_CASE("random schedules give every sequence the tokens it gets alone") {
    Totals totals;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) run_schedule(seed, totals);
    // The schedules did exercise what they are for.
    CHECK(totals.finished > 400);
    CHECK(totals.preemptions > 100);
    CHECK(totals.hits > 50);
    CHECK(totals.evicted_blocks > 50);
    CHECK(totals.evicted_states > 50);
}

TEST_CASE("a fork shares its parent's pages and computes one row of the prompt") {
    SchedulerOptions options;
    options.slots = 4;
    options.max_rows = 512;
    Driver driver(options, pool_pages(32, 64, 600));
    Job job{random_prompt(7, 700), 40, 0.9f, 11, 0};
    std::vector<std::unique_ptr<Sequence>> sequences;
    for (std::uint64_t i = 0; i < 3; ++i) {
        Job own = job;
        own.seed += i;
        sequences.push_back(std::make_unique<Sequence>(job.prompt, sampling_of(own), ""));
        if (i > 0) sequences[i]->fork_of = sequences[0].get();
        driver.scheduler().add(*sequences[i]);
    }
    while (driver.submit()) driver.land();
    CHECK(sequences[0]->computed_prefill_tokens == 700);
    CHECK(sequences[1]->computed_prefill_tokens == 1);
    CHECK(sequences[2]->computed_prefill_tokens == 1);
    CHECK(sequences[0]->tokens != sequences[1]->tokens); // other seeds, other answers
    CHECK(sequences[1]->tokens != sequences[2]->tokens);
    CHECK(driver.backend().violations() == std::vector<std::string>{});
}

TEST_CASE("forks whose parent is cancelled compute the prompt themselves") {
    SchedulerOptions options;
    options.slots = 4;
    options.max_rows = 64;
    Driver driver(options, pool_pages(32, 64, 600));
    Job job{random_prompt(8, 500), 20, 0, 0, 0};
    Sequence parent(job.prompt, sampling_of(job), ""), child(job.prompt, sampling_of(job), "");
    child.fork_of = &parent;
    driver.scheduler().add(parent);
    driver.scheduler().add(child);
    driver.submit();
    driver.land();
    driver.scheduler().finish(parent);
    while (driver.submit()) driver.land();
    CHECK(driver.scheduler().take_retired().size() == 2);
    CHECK(child.generated() == 20);
    CHECK(parent.generated() == 0);
}

TEST_CASE("a fork shares only what has landed: a row that fails is not passed on") {
    SchedulerOptions options;
    options.slots = 4;
    options.max_rows = 150;
    Driver driver(options, pool_pages(32, 64, 600));
    Job job{random_prompt(8, 300), 20, 0, 0, 0};
    Sequence parent(job.prompt, sampling_of(job), ""), child(job.prompt, sampling_of(job), "");
    child.fork_of = &parent;
    driver.backend().fail_row_in(2); // the last chunk before the fork
    driver.scheduler().add(parent);
    driver.scheduler().add(child);
    while (driver.submit()) driver.land();
    CHECK(parent.failure);
    REQUIRE_FALSE(child.failure);
    CHECK(child.computed_prefill_tokens == 300);
    CHECK(child.generated() == 20);
    CHECK(driver.backend().violations() == std::vector<std::string>{});
    Driver quiet(options, pool_pages(32, 64, 600));
    Sequence reference(job.prompt, sampling_of(job), "");
    quiet.scheduler().add(reference);
    while (quiet.submit()) quiet.land();
    CHECK(child.tokens == reference.tokens);
}

TEST_CASE("a more important request runs first and takes a slot where there is none") {
    SchedulerOptions options;
    options.slots = 1;
    options.max_rows = 64;
    Driver driver(options, pool_pages(32, 64, 600));
    Job job{random_prompt(9, 100), 200, 0, 0, 0};
    Sequence ordinary(job.prompt, sampling_of(job), ""), urgent(job.prompt, sampling_of(job), "");
    driver.scheduler().add(ordinary);
    for (int i = 0; i < 10 && driver.submit(); ++i) driver.land();
    const std::int64_t so_far = ordinary.generated();
    CHECK(so_far > 0);
    urgent.priority = 5;
    driver.scheduler().add(urgent);
    while (driver.submit() && urgent.generated() < 200) driver.land();
    CHECK(urgent.generated() == 200);
    CHECK(ordinary.generated() <= so_far + 3);
    CHECK(ordinary.preemptions == 1);
    while (driver.submit()) driver.land();
    CHECK(ordinary.tokens == urgent.tokens);
}

TEST_CASE("a request that can never fit fails with a reason and harms nobody") {
    SchedulerOptions options;
    options.slots = 2;
    options.max_rows = 64;
    Driver driver(options, pool_pages(3, 64, 600)); // 768 positions
    Job large{random_prompt(1, 900), 10, 0, 0, 0}, small{random_prompt(2, 100), 10, 0, 0, 0},
        growing{random_prompt(3, 700), 300, 0, 0, 0};
    Sequence a(large.prompt, sampling_of(large), ""), b(small.prompt, sampling_of(small), ""),
        c(growing.prompt, sampling_of(growing), "");
    driver.scheduler().add(a);
    driver.scheduler().add(b);
    driver.scheduler().add(c);
    while (driver.submit()) driver.land();
    CHECK(driver.scheduler().take_retired().size() == 3);
    REQUIRE(a.failure);
    CHECK(a.failure->code == Code::exhausted);
    CHECK_FALSE(b.failure);
    CHECK(b.generated() == 10);
    REQUIRE(c.failure); // grew until nothing was left
    CHECK(c.failure->code == Code::exhausted);
    CHECK(c.generated() > 0);
    CHECK(driver.lost_pages() == 0);
}

TEST_CASE("pools that cannot hold one sequence are refused at the start") {
    SchedulerOptions options;
    CHECK_THROWS_AS(Driver(options, pool_pages(16, 2, 600)), Failure);
    CHECK_THROWS_AS(Driver(options, pool_pages(0, 64, 600)), Failure);
}
