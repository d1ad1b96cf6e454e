// The whole path on the tiny model and the CPU backend: parallel, cached and preempted answers equal those given alone.
#include "core/checkpoint/checkpoint.hpp"
#include "core/lower/deepseek_v4.hpp"
#include "tests/engine/harness.hpp"

#include <thread>

using namespace dsv4;
using namespace dsv4::test;

namespace {

std::vector<std::uint32_t> small_pools(const std::vector<dsv4_state_layout>& layouts) {
    std::vector<std::uint32_t> pages;
    for (const auto& rule : state::kind_rules(layouts, 64))
        pages.push_back(rule.grows() ? 4 : rule.positions_per_page == 4 ? 60 : 14);
    return pages;
}

struct TinyRig {
    TinyRig(std::uint32_t slots, std::uint32_t rows, bool cache, bool tight) {
        const auto opened =
            checkpoint::Checkpoint::open(std::filesystem::path(DSV4_SOURCE_DIR) / "models/dsv4-tiny").value();
        const lower::WeightTable weights(opened.weights());
        const program::Program program = lower::lower(opened.card().geometry, weights, {});
        dsv4_session_config session_config{};
        session_config.struct_size = sizeof session_config;
        session_config.group.world = 1;
        session_config.deterministic = 1;
        session = std::make_unique<runtime::BackendSession>(*loaded_cpu_backend(), session_config);
        session->load(opened, weights);
        plan::ServingPlan plan;
        plan.context.max_num_seqs = slots;
        plan.context.max_num_batched_tokens = rows;
        plan.context.max_model_len = 1024;
        plan.kv.prefix_caching = cache;
        engine::EngineConfig config = engine::config_from(plan, opened.card().geometry);
        config.cache_bytes = std::uint64_t(256) << 20;
        if (tight) {
            config.pool_pages = small_pools(session->backend().state_layouts(program));
            config.boundary_states = 2;
        }
        engine = std::make_unique<engine::Engine>(engine::EngineParts{.session = *session,
                                                                      .program = program,
                                                                      .tokenizer = tiny_tokenizer(),
                                                                      .parser = loaded_parser(),
                                                                      .grammar = {},
                                                                      .metrics = &metrics,
                                                                      .log = {},
                                                                      .clock_us = {}},
                                                  config);
    }
    ~TinyRig() {
        engine.reset();
        session.reset();
    }
    Answer ask(const Ask& ask) {
        Pending p(*engine, ask);
        return p.finish();
    }
    CountingMetrics metrics;
    std::unique_ptr<runtime::BackendSession> session;
    std::unique_ptr<engine::Engine> engine;
};

} // namespace

TEST_CASE("the tiny model serves: alone, together, from the cache and after preemption alike") {
    REQUIRE(loaded_cpu_backend()); // a missing plugin is a failure, never a skip
    std::vector<Ask> asks;
    const auto base = random_prompt(1, 400);
    const std::size_t lengths[] = {250, 243, 247, 239, 390}; // most grow into another block while they answer
    for (std::size_t i = 0; i < 5; ++i) {
        Ask ask;
        ask.prompt.assign(base.begin(), base.begin() + std::ptrdiff_t(lengths[i]));
        ask.prompt.push_back(std::int32_t(500 + i));
        ask.max_tokens = 24;
        ask.ignore_eos = true;
        if (i == 3) {
            ask.temperature = 0.8f;
            ask.presence = 0.5f;
        }
        asks.push_back(ask);
    }
    std::vector<std::vector<std::int32_t>> alone;
    {
        TinyRig rig(1, 64, false, false);
        for (const Ask& ask : asks) {
            alone.push_back(rig.ask(ask)[0].tokens);
            REQUIRE(alone.back().size() == 24);
        }
        Ask chat;
        chat.messages = R"([{"role":"user","content":"Hello"}])";
        chat.thinking = 0;
        chat.max_tokens = 8;
        const Answer a = rig.ask(chat);
        CHECK(a.errors == 0);
        CHECK(a[0].finals == 1);
        // Steering reaches the real sampler: a budget forces the closing token, a late mask rules the rest out.
        chat.thinking = 1;
        chat.max_reasoning = 3;
        chat.ignore_eos = true;
        const Answer budget = rig.ask(chat);
        REQUIRE(budget[0].tokens.size() == 8);
        CHECK(budget[0].tokens[3] == *tiny_tokenizer().control_id("</think>"));
        CHECK(budget[0].usage.reasoning_tokens == 3);
        Ask few = asks[0];
        few.allowed = {100, 200, 300};
        few.temperature = 1;
        few.logprobs = 2;
        const Answer masked = rig.ask(few);
        REQUIRE(masked.errors == 0);
        REQUIRE(masked[0].tokens.size() == 24);
        for (std::int32_t t : masked[0].tokens) CHECK((t == 100 || t == 200 || t == 300));
        CHECK(masked[0].tops[0].size() == 2);
    }
    for (const bool tight : {false, true}) {
        INFO("tight " << tight);
        TinyRig rig(4, 96, true, tight);
        // Whether requests meet is a matter of timing: more rounds until they do.
        for (int round = 0; round < 2 || (tight && round < 8 && rig.engine->load().preemptions == 0); ++round) {
            std::vector<std::unique_ptr<Pending>> pending;
            for (const Ask& ask : asks) pending.push_back(std::make_unique<Pending>(*rig.engine, ask));
            for (std::size_t i = 0; i < pending.size(); ++i) {
                const Answer& a = pending[i]->finish();
                REQUIRE(a.errors == 0);
                CHECK(a[0].tokens == alone[i]);
            }
        }
        if (tight)
            CHECK(rig.engine->load().preemptions > 0);
        else
            CHECK(rig.metrics.value(engine::Metric::prefix_hits) >= 256);
        Ask many = asks[3]; // completions that share the prompt's pages
        many.n = 3;
        const Answer a = rig.ask(many);
        CHECK(a[0].tokens == alone[3]);
        CHECK(a[1].tokens != a[0].tokens);
    }
}
