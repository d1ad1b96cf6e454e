// Whole models as Programs: goldens, cuts, mixed batches, sliding pages, state that leaves and comes back.
#include <iostream>

#include "plugin_support.hpp"

using namespace dsv4;
using namespace dsv4::test;

TEST_CASE("score: a whole model as a Program matches the float32 golden", "[plugin][model]") {
    Goldens golden("golden.safetensors");
    const auto model = program_model(golden_a, DSV4_SCORE, false);
    const Plugin plugin("f32");
    Client client(plugin);
    client.load(model.weights);
    client.allocate(model.program, 2, 512);
    const auto [logits, streams] =
        distance(feed(client, model, client.compile(model.program), golden.tokens, {400}), model, golden);
    std::cout << "plugin, score: logits max |diff| " << logits << ", streams " << streams << "\n";
    CHECK(logits <= 1e-3f);
    CHECK(streams <= 1e-3f);
}

TEST_CASE("strict serve: a whole model as a Program is bit-equal to the serving golden, however it is cut",
          "[plugin][model]") {
    const std::string directory = GENERATE(golden_a, odd);
    INFO(directory);
    Goldens golden("golden_serve.safetensors", directory);
    const auto model = program_model(directory, DSV4_SERVE, false);
    const Plugin plugin("f64");
    Client client(plugin);
    client.load(model.weights, false); // from memory of the caller's
    client.allocate(model.program, 2, 512);
    auto* executable = client.compile(model.program);
    for (const std::vector<std::size_t>& pieces : {std::vector<std::size_t>{golden.tokens.size()}, {131, 1, 1, 7}}) {
        const auto [logits, streams] =
            distance(feed(client, model, executable, golden.tokens, pieces, 1), model, golden);
        CHECK(logits == 0);
        CHECK(streams == 0);
    }
}

TEST_CASE("a row's result does not depend on its batch, its cut or the threads", "[plugin][model]") {
    Goldens golden("golden.safetensors");
    const auto model = program_model(golden_a, DSV4_SERVE, false);
    const std::vector<std::int32_t> a(golden.tokens.begin(), golden.tokens.begin() + 140),
        b(golden.tokens.begin() + 140, golden.tokens.begin() + 280);
    std::vector<float> alone_a, alone_b;
    {
        const Plugin plugin("f32", 1);
        Client client(plugin);
        client.load(model.weights);
        client.allocate(model.program, 2, 256);
        auto* executable = client.compile(model.program);
        alone_a = feed(client, model, executable, a, {140}).logits;
        alone_b = feed(client, model, executable, b, {3}, 1).logits;
    }
    const Plugin plugin("f32", 4);
    Client client(plugin);
    client.load(model.weights);
    client.allocate(model.program, 3, 256);
    auto* executable = client.compile(model.program);
    const std::size_t v = model.vocabulary;
    std::vector<float> mixed_a, mixed_b;
    // Both sequences in one batch, in uneven pieces, with pad rows of a third between them.
    for (std::size_t at_a = 0, at_b = 0, step = 0; at_a < a.size() || at_b < b.size(); ++step) {
        const std::size_t n_a = std::min<std::size_t>(step % 3 == 0 ? 31 : 2, a.size() - at_a),
                          n_b = std::min<std::size_t>(step % 2 == 0 ? 1 : 17, b.size() - at_b);
        Client::Item item{executable, {{2, at_a == 0 && step == 0}, {0, step == 0}, {1, step == 0}}, {}};
        for (std::size_t k = 0; k < n_a; ++k)
            item.rows.push_back(given(1, a[at_a + k], static_cast<std::int64_t>(at_a + k), DSV4_ROW_LOGITS));
        item.rows.push_back(given(0, 5, 7, DSV4_ROW_PAD));
        for (std::size_t k = 0; k < n_b; ++k)
            item.rows.push_back(given(2, b[at_b + k], static_cast<std::int64_t>(at_b + k), DSV4_ROW_LOGITS));
        Client::Outputs outputs{{"logits", std::vector<std::uint8_t>((n_a + n_b) * v * 4)}};
        item.outputs = &outputs;
        REQUIRE(client.run(item).errors.empty());
        const auto logits = values_of<float>(outputs.at("logits"));
        mixed_a.insert(mixed_a.end(), logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(n_a * v));
        mixed_b.insert(mixed_b.end(), logits.begin() + static_cast<std::ptrdiff_t>(n_a * v), logits.end());
        at_a += n_a;
        at_b += n_b;
    }
    CHECK(mixed_a == alone_a);
    CHECK(mixed_b == alone_b);
}

TEST_CASE("sliding pages may be gone behind their reach", "[plugin]") {
    const auto model = program_model(golden_a, DSV4_SERVE, false);
    Goldens golden("golden_serve.safetensors");
    const Plugin plugin("f64");
    Client client(plugin);
    client.load(model.weights);
    client.allocate(model.program, 1, 512);
    auto* executable = client.compile(model.program);
    const std::vector<std::int32_t> first(golden.tokens.begin(), golden.tokens.begin() + 256);
    feed(client, model, executable, first, {256});
    Collected out;
    Client::Item item{executable, {{0}}, {}};
    for (int p = 256; p < 400; ++p)
        item.rows.push_back(given(0, golden.tokens[static_cast<std::size_t>(p)], p, DSV4_ROW_LOGITS));
    item.hidden_below = {{DSV4_STATE_WINDOW, 256 - 32},
                         {DSV4_STATE_CSA_PARTIAL, 252},
                         {DSV4_STATE_INDEX_PARTIAL, 252},
                         {DSV4_STATE_HCA_PARTIAL, 256}};
    Client::Outputs outputs{{"logits", std::vector<std::uint8_t>(144 * model.vocabulary * 4)}};
    item.outputs = &outputs;
    REQUIRE(client.run(item).errors.empty());
    const auto logits = values_of<float>(outputs.at("logits"));
    const auto expected = golden.file.at("logits").floats();
    for (std::size_t i = 0; i < golden.positions.size(); ++i) {
        if (golden.positions[i] < 256) continue;
        const auto t = static_cast<std::size_t>(golden.positions[i] - 256);
        CHECK(std::equal(expected.begin() + static_cast<std::ptrdiff_t>(i * model.vocabulary),
                         expected.begin() + static_cast<std::ptrdiff_t>((i + 1) * model.vocabulary),
                         logits.begin() + static_cast<std::ptrdiff_t>(t * model.vocabulary)));
    }
}

TEST_CASE("state leaves and comes back bit for bit, mismatches are refused", "[plugin]") {
    const auto model = program_model(golden_a, DSV4_SERVE, false);
    Goldens golden("golden_serve.safetensors");
    const Plugin plugin("f32");
    Client client(plugin);
    client.load(model.weights);
    client.allocate(model.program, 2, 256);
    auto* executable = client.compile(model.program);
    const std::vector<std::int32_t> head(golden.tokens.begin(), golden.tokens.begin() + 150),
        tail(golden.tokens.begin() + 150, golden.tokens.begin() + 160);
    feed(client, model, executable, head, {150});

    // All pages of slot 0 out, into the pages of slot 1.
    std::vector<dsv4_page_list> from, to;
    std::vector<std::vector<std::int32_t>> ids;
    for (const std::int32_t slot : {0, 1})
        for (const std::int32_t kind : {DSV4_STATE_WINDOW, DSV4_STATE_CSA, DSV4_STATE_HCA, DSV4_STATE_INDEX,
                                        DSV4_STATE_CSA_PARTIAL, DSV4_STATE_HCA_PARTIAL, DSV4_STATE_INDEX_PARTIAL})
            ids.push_back(client.pages(kind, slot));
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::int32_t kinds[] = {DSV4_STATE_WINDOW,       DSV4_STATE_CSA,         DSV4_STATE_HCA,
                                      DSV4_STATE_INDEX,        DSV4_STATE_CSA_PARTIAL, DSV4_STATE_HCA_PARTIAL,
                                      DSV4_STATE_INDEX_PARTIAL};
        (i < 7 ? from : to).push_back({kinds[i % 7], static_cast<std::uint32_t>(ids[i].size()), ids[i].data()});
    }
    dsv4_transfer t{};
    t.struct_size = sizeof t;
    t.pages = from.data();
    t.page_list_count = 7;
    t.end_position = 150;
    t.checkpoint_hash[5] = 42;
    t.memory_kind = DSV4_MEMORY_HOST;
    std::uint64_t needed = 0;
    dsv4_ticket ticket = 0;
    CHECK(failure_of([&] { sdk::check(client.table().state_export(client.session(), &t, &needed, &ticket)); })
              .error()
              .code == Code::exhausted);
    REQUIRE(needed > 0);
    std::vector<std::uint8_t> blob(needed);
    t.memory = blob.data();
    t.memory_bytes = blob.size();
    sdk::check(client.table().state_export(client.session(), &t, &needed, &ticket));
    client.wait(ticket);
    CHECK(std::string(blob.begin(), blob.begin() + 8) == "DSV4BLOB");

    t.pages = to.data();
    const auto refused = [&](const char* what) {
        const Failure f = failure_of([&] { sdk::check(client.table().state_import(client.session(), &t, &ticket)); });
        CHECK(f.error().code == Code::invalid);
        CHECK_THAT(f.error().message, ContainsSubstring(what));
    };
    t.checkpoint_hash[5] = 43;
    refused("checkpoint hash");
    t.checkpoint_hash[5] = 42;
    t.begin_position = 1;
    refused("positions");
    t.begin_position = 0;
    blob[76 + 16] ^= 1;
    refused("layout tag of window");
    blob[76 + 16] ^= 1;
    blob[8] = 9;
    refused("version");
    blob[8] = 1;
    --t.memory_bytes;
    refused("bytes");
    ++t.memory_bytes;
    sdk::check(client.table().state_import(client.session(), &t, &ticket));
    client.wait(ticket);

    const auto logits_of = [&](std::int32_t slot, bool reset) {
        Client::Item item{executable, {{slot, reset, 150}}, {}};
        for (std::size_t i = 0; i < tail.size(); ++i)
            item.rows.push_back(
                {0, DSV4_INPUT_GIVEN, tail[i], DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, static_cast<std::int64_t>(i)});
        Client::Outputs outputs{{"logits", std::vector<std::uint8_t>(tail.size() * model.vocabulary * 4)}};
        item.outputs = &outputs;
        REQUIRE(client.run(item).errors.empty());
        return outputs.at("logits");
    };
    const auto moved = logits_of(1, true), stayed = logits_of(0, false);
    CHECK(moved == stayed);
}
