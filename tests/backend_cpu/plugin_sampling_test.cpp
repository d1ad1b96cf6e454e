// Records and sampling through the plugin: decoding ahead, stops, masks, penalties, draft rows.
#include <chrono>
#include <thread>

#include "plugin_support.hpp"

using namespace dsv4;
using namespace dsv4::test;

TEST_CASE("decoding runs from the record, two tickets ahead", "[plugin][sampling]") {
    const auto logits_model = program_model(golden_a, DSV4_SERVE, false);
    const auto model = program_model(golden_a, DSV4_SERVE, true);
    const std::vector<std::int32_t> prompt{3, 141, 59, 26, 535};
    constexpr std::size_t wanted = 24;
    const Plugin plugin("f32");

    // What greedy decoding must give: the argmax of logits, token by token, from a Program without sampling.
    std::vector<std::int32_t> expected;
    {
        Client client(plugin);
        client.load(logits_model.weights);
        client.allocate(logits_model.program, 1, 256);
        auto* executable = client.compile(logits_model.program);
        auto ids = prompt;
        while (expected.size() < wanted) {
            const auto logits = feed(client, logits_model, executable, ids, {64}).logits;
            const auto row = logits.end() - static_cast<std::ptrdiff_t>(model.vocabulary);
            expected.push_back(static_cast<std::int32_t>(std::max_element(row, logits.end()) - row));
            ids.push_back(expected.back());
        }
    }

    Client client(plugin);
    client.load(model.weights);
    client.allocate(model.program, 4, 256);
    auto* executable = client.compile(model.program);
    dsv4_sampling sampling = greedy();
    const auto prefill = [&](std::int32_t slot) {
        Client::Item item{executable, {{slot, true, 0, &sampling, prompt}}, {}};
        for (std::size_t i = 0; i < prompt.size(); ++i)
            item.rows.push_back(
                given(0, prompt[i], static_cast<std::int64_t>(i), i + 1 == prompt.size() ? DSV4_ROW_LOGITS : 0));
        return item;
    };

    SECTION("greedy tokens and positions") {
        std::vector<dsv4_ticket> tickets{client.submit({prefill(2)})};
        std::vector<std::int32_t> got;
        for (std::size_t i = 0; i < wanted; ++i) {
            if (i + 1 < wanted)
                tickets.push_back(client.submit({{executable, {{2}}, {next_row(0)}}})); // before the last is known
            const TicketOutput out = client.wait(tickets[i]);
            REQUIRE(out.tokens.size() == 1);
            CHECK(out.tokens[0].slot == 2);
            CHECK(out.tokens[0].position == static_cast<std::int64_t>(prompt.size() + i));
            CHECK(out.tokens[0].flags == 0);
            CHECK(std::isnan(out.tokens[0].logprob));
            got.push_back(out.tokens[0].token);
        }
        CHECK(got == expected);
    }
    SECTION("a stop id finishes the record, later rows act as pad") {
        sampling.stop_ids = &expected[3];
        sampling.stop_count = 1;
        const auto first =
            static_cast<std::size_t>(std::find(expected.begin(), expected.end(), expected[3]) - expected.begin());
        std::vector<std::int32_t> got;
        std::vector<dsv4_ticket> tickets{client.submit({prefill(0)})};
        for (std::size_t i = 0; i < 7; ++i) {
            tickets.push_back(client.submit({{executable, {{0}}, {next_row(0)}}}));
            for (const Token& t : client.wait(tickets[i]).tokens) {
                got.push_back(t.token);
                CHECK((t.flags == DSV4_RESULT_FINISHED) == (got.size() == first + 1));
            }
        }
        client.wait(tickets.back());
        CHECK(got ==
              std::vector<std::int32_t>(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(first + 1)));
    }
    SECTION("min_length forbids the stop id, max_length finishes") {
        sampling.stop_ids = &expected[0];
        sampling.stop_count = 1;
        sampling.min_length = static_cast<std::int64_t>(prompt.size()) + 2; // one token more than the first
        sampling.max_length = static_cast<std::int64_t>(prompt.size()) + 3;
        const TicketOutput one = client.run(prefill(1));
        REQUIRE(one.tokens.size() == 1);
        CHECK(one.tokens[0].token != expected[0]);
        std::vector<Token> rest;
        for (int i = 0; i < 4; ++i)
            for (const Token& t : client.run({executable, {{1}}, {next_row(0)}}).tokens) rest.push_back(t);
        REQUIRE(!rest.empty());
        REQUIRE(rest.size() <= 2);
        CHECK(rest.back().flags == DSV4_RESULT_FINISHED);
    }
    SECTION("bias, log-probabilities and a late mask") {
        const dsv4_bias bias{77, 1000.0f};
        sampling.bias = &bias;
        sampling.bias_count = 1;
        sampling.logprobs = 5;
        const TicketOutput biased = client.run(prefill(0));
        REQUIRE(biased.tokens.size() == 1);
        CHECK(biased.tokens[0].token == 77);
        REQUIRE(biased.tokens[0].top.size() == 5);
        CHECK(biased.tokens[0].top[0].token == expected[0]); // of the logits before bias
        CHECK(biased.tokens[0].logprob < biased.tokens[0].top[0].logprob);
        double sum = 0;
        for (const auto& t : biased.tokens[0].top) sum += std::exp(t.logprob);
        CHECK(sum <= 1.0 + 1e-6);

        sampling = greedy();
        sampling.masked = 1;
        const dsv4_ticket ticket = client.submit({prefill(0)});
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        CHECK(client.table().poll(client.session(), ticket) == 0); // waits for its mask
        std::vector<std::uint32_t> words((model.vocabulary + 31) / 32, 0);
        CHECK(failure_of([&] { sdk::check(client.table().supply(client.session(), ticket, 0, words.data(), 1)); })
                  .error()
                  .code == Code::invalid);
        words[500 / 32] |= 1u << (500 % 32);
        sdk::check(client.table().supply(client.session(), ticket, 0, words.data(), words.size()));
        const TicketOutput masked = client.wait(ticket);
        REQUIRE(masked.tokens.size() == 1);
        CHECK(masked.tokens[0].token == 500);
    }
    SECTION("an empty mask is an error of that slot alone") {
        const Client::Item good = prefill(1);
        sampling.masked = 1;
        const Client::Item bad = prefill(0);
        dsv4_sampling plain = greedy();
        Client::Item both{executable, {bad.slots[0], good.slots[0]}, bad.rows};
        both.slots[1].sampling = &plain;
        for (dsv4_row r : good.rows) {
            r.slot = 1;
            both.rows.push_back(r);
        }
        const dsv4_ticket ticket = client.submit({both});
        const std::vector<std::uint32_t> words((model.vocabulary + 31) / 32, 0);
        sdk::check(client.table().supply(client.session(), ticket, 0, words.data(), words.size()));
        const TicketOutput out = client.wait(ticket);
        REQUIRE(out.errors.size() == 1);
        CHECK(out.errors[0].slot == 0);
        CHECK(out.errors[0].op == "sample/1");
        REQUIRE(out.tokens.size() == 1);
        CHECK(out.tokens[0].slot == 1);
        CHECK(out.tokens[0].token == expected[0]);
        CHECK(client.run({executable, {{0}}, {next_row(0)}}).tokens.empty()); // poisoned: acts as pad
    }
    SECTION("penalties count prompt and generated tokens") {
        sampling.repetition_penalty = 1e6f; // any token seen before is out, whatever the sign of its logit
        std::vector<std::int32_t> got;
        const auto keep = [&](const TicketOutput& out) { got.push_back(out.tokens.at(0).token); };
        keep(client.run(prefill(3)));
        for (int i = 0; i < 10; ++i) keep(client.run({executable, {{3}}, {next_row(0)}}));
        auto all = got;
        all.insert(all.end(), prompt.begin(), prompt.end());
        std::sort(all.begin(), all.end());
        CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    }
    SECTION("a seed gives the same tokens alone and beside others") {
        sampling.temperature = 1.0f;
        sampling.top_p = 0.9f;
        sampling.top_k = 50;
        sampling.seed = 1234567890123ull;
        std::vector<std::int32_t> alone, together;
        alone.push_back(client.run(prefill(0)).tokens.at(0).token);
        for (int i = 0; i < 6; ++i) alone.push_back(client.run({executable, {{0}}, {next_row(0)}}).tokens.at(0).token);
        client.run(prefill(1));
        together.push_back(client.run(prefill(2)).tokens.at(0).token);
        for (int i = 0; i < 6; ++i)
            together.push_back(client.run({executable, {{1}, {2}}, {next_row(0), next_row(1)}}).tokens.at(1).token);
        CHECK(together == alone);
    }
}

TEST_CASE("draft rows leave the target's state alone", "[plugin]") {
    const auto model = program_model(golden_a, DSV4_SERVE, false);
    const Plugin plugin("f32");
    Client client(plugin);
    client.load(model.weights);
    client.allocate(model.program, 2, 128);
    auto* executable = client.compile(model.program);
    const std::vector<std::int32_t> prompt{3, 141, 59, 26, 535, 897, 93};
    const auto expected = feed(client, model, executable, prompt, {7}, 0).logits;
    feed(client, model, executable, {prompt.begin(), prompt.begin() + 6}, {6}, 1);
    // Rows of another token on positions 2 and 3, as drafts: nothing of them may remain.
    Client::Item item{executable, {{1}}, {given(0, 7, 2, DSV4_ROW_DRAFT), given(0, 7, 3, DSV4_ROW_DRAFT)}};
    REQUIRE(client.run(item).errors.empty());
    Client::Outputs outputs{{"logits", std::vector<std::uint8_t>(model.vocabulary * 4)}};
    // Position 6 relative to the record: drafts committed nothing.
    item.rows = {{0, DSV4_INPUT_GIVEN, prompt[6], DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, 0}};
    item.outputs = &outputs;
    REQUIRE(client.run(item).errors.empty());
    const auto got = values_of<float>(outputs.at("logits"));
    CHECK(std::equal(got.begin(), got.end(), expected.end() - static_cast<std::ptrdiff_t>(model.vocabulary)));
}

TEST_CASE("closing gives up on a ticket that waits for its mask", "[plugin]") {
    const Plugin plugin("f32");
    const auto model = program_model(golden_a, DSV4_SERVE, true);
    Client client(plugin);
    client.load(model.weights);
    client.allocate(model.program, 1, 64);
    dsv4_sampling s = greedy();
    s.masked = 1;
    client.submit({{client.compile(model.program), {{0, true, 0, &s}}, {given(0, 1, 0, DSV4_ROW_LOGITS)}}});
    // Client's destructor must return.
}
