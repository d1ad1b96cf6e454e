// The plugin through its C entry point: whole models against goldens, records, sampling, refusals, transfers.
#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

#include "client.hpp"
#include "dsv4/sdk/generate.hpp"
#include "program_model.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::test;

namespace {

const std::string golden_a = DSV4_SOURCE_DIR "/tests/vectors/model/golden-a";
const std::string odd = DSV4_SOURCE_DIR "/tests/backend_cpu/data/odd"; // widths that fit no block

dsv4_row given(std::int32_t slot, std::int32_t token, std::int64_t position, std::uint32_t flags = 0) {
    return {slot, DSV4_INPUT_GIVEN, token, flags, position};
}
dsv4_row next_row(std::int32_t slot) { return {slot, DSV4_INPUT_LAST, 0, DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, 0}; }

dsv4_sampling greedy() { return sdk::default_sampling(); }

Failure failure_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Failure& e) {
        return e;
    }
    FAIL("nothing was refused");
    return {Code::internal, ""};
}

struct Goldens {
    std::vector<std::int32_t> tokens, positions;
    Tensors file;
    explicit Goldens(const std::string& name, const std::string& directory = golden_a) {
        read_safetensors(directory + "/" + name, file);
        tokens = file.at("tokens").ints();
        positions = file.at("positions").ints();
    }
};

// Feeds `tokens` to slot 0 in pieces and collects every row's outputs.
struct Collected {
    std::vector<float> logits;
    std::vector<std::vector<float>> streams;
    std::map<int, std::vector<std::int32_t>> picks;
};
Collected feed(Client& client, const ProgramModel& model, dsv4_executable* executable,
               const std::vector<std::int32_t>& tokens, const std::vector<std::size_t>& pieces, std::int32_t slot = 0) {
    Collected out;
    out.streams.resize(model.layers);
    const bool serve = model.program.precision == DSV4_SERVE;
    for (std::size_t at = 0, i = 0; at < tokens.size(); ++i) {
        const std::size_t n = std::min(pieces[i % pieces.size()], tokens.size() - at);
        Client::Item item{executable, {{slot, at == 0}}, {}};
        for (std::size_t k = 0; k < n; ++k)
            item.rows.push_back(given(0, tokens[at + k], static_cast<std::int64_t>(at + k), DSV4_ROW_LOGITS));
        Client::Outputs outputs;
        for (const auto id : model.program.outputs) {
            const auto& v = model.program.values[id];
            std::size_t width = program::element_bytes(v.element);
            for (std::size_t d = 1; d < v.dims.size(); ++d) width *= static_cast<std::size_t>(v.dims[d]);
            outputs[v.name].resize(n * width);
        }
        item.outputs = &outputs;
        const TicketOutput result = client.run(item);
        REQUIRE(result.errors.empty());
        const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
        append(out.logits, values_of<float>(outputs.at("logits")));
        for (std::size_t l = 0; l < model.layers; ++l) {
            const auto& bytes = outputs.at("streams." + std::to_string(l));
            append(out.streams[l], serve ? from_bf16(bytes) : values_of<float>(bytes));
            const auto picks = outputs.find("picks." + std::to_string(l));
            if (picks != outputs.end()) append(out.picks[static_cast<int>(l)], values_of<std::int32_t>(picks->second));
        }
        at += n;
    }
    return out;
}

// Largest differences to a golden file at its positions; picks and argmax are checked here.
std::pair<float, float> distance(const Collected& got, const ProgramModel& model, Goldens& golden) {
    const auto logits = golden.file.at("logits").floats();
    const std::size_t v = model.vocabulary, w = model.stream_width, k = model.top_k;
    float logit_worst = 0, stream_worst = 0;
    const auto widen = [](float& worst, float d) {
        if (!(d <= worst)) worst = d;
    };
    for (std::size_t i = 0; i < golden.positions.size(); ++i) {
        const auto t = static_cast<std::size_t>(golden.positions[i]);
        for (std::size_t c = 0; c < v; ++c) widen(logit_worst, std::fabs(got.logits[t * v + c] - logits[i * v + c]));
        for (std::size_t l = 0; l < model.layers; ++l) {
            const auto expected = golden.file.at("streams." + std::to_string(l)).floats();
            for (std::size_t c = 0; c < w; ++c)
                widen(stream_worst, std::fabs(got.streams[l][t * w + c] - expected[i * w + c]));
        }
        for (const auto& [l, picks] : got.picks) {
            const auto all = golden.file.at("picks." + std::to_string(l)).ints();
            std::vector<std::int32_t> want(all.begin() + static_cast<std::ptrdiff_t>(i * k),
                                           all.begin() + static_cast<std::ptrdiff_t>((i + 1) * k));
            std::vector<std::int32_t> have(picks.begin() + static_cast<std::ptrdiff_t>(t * k),
                                           picks.begin() + static_cast<std::ptrdiff_t>((t + 1) * k));
            std::sort(want.begin(), want.end());
            std::sort(have.begin(), have.end());
            CHECK(have == want);
        }
    }
    const auto argmax = golden.file.at("argmax").ints();
    for (std::size_t t = 0; t < argmax.size(); ++t) {
        const auto row = got.logits.begin() + static_cast<std::ptrdiff_t>(t * v);
        CHECK(std::max_element(row, row + static_cast<std::ptrdiff_t>(v)) - row == argmax[t]);
    }
    return {logit_worst, stream_worst};
}

} // namespace

TEST_CASE("the descriptor names itself and its manifest", "[plugin]") {
    const dsv4_plugin& d = Plugin::descriptor();
    CHECK(std::string(d.name) == "backend-cpu");
    CHECK(d.abi_major == DSV4_ABI_MAJOR);
    std::ifstream in(DSV4_SOURCE_DIR "/knowledge/plugins/backend-cpu.toml", std::ios::binary);
    const std::string manifest{std::istreambuf_iterator<char>(in), {}};
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, reinterpret_cast<const unsigned char*>(manifest.data()), manifest.size());
    char hex[2 * sizeof digest + 1];
    sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
    CHECK(std::string(d.manifest_sha256) == hex);
    for (const char* op : {"attend/1", "verify/1", "markov_step/1"}) CHECK_THAT(manifest, ContainsSubstring(op));

    dsv4_instance instance{};
    instance.struct_size = sizeof instance;
    dsv4_error* error = d.create(nullptr, DSV4_KIND_PARSER, nullptr, &instance);
    REQUIRE(error != nullptr);
    CHECK(error->code == DSV4_UNSUPPORTED);
    error->release(error);
}

TEST_CASE("one device that can be used", "[plugin]") {
    const Plugin plugin("f32");
    const dsv4_device_info* devices = nullptr;
    std::uint32_t count = 0;
    sdk::check(plugin.table().devices(plugin.self(), &devices, &count));
    REQUIRE(count == 1);
    CHECK(devices[0].memory_bytes > 0);
    CHECK(devices[0].arch.size > 0);
    CHECK(devices[0].unusable.size == 0);
    CHECK(failure_of([] { Plugin("f16"); }).error().code == Code::invalid);
}

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

TEST_CASE("a missing page is an error of its row and harms no other slot", "[plugin]") {
    const auto model = program_model(golden_a, DSV4_SERVE, true);
    const Plugin plugin("f32");
    Client client(plugin);
    client.load(model.weights);
    client.allocate(model.program, 2, 64); // 64 positions a slot
    auto* executable = client.compile(model.program);
    const dsv4_sampling sampling = greedy();
    Client::Item item{executable, {{0, true, 0, &sampling}, {1, true, 0, &sampling}}, {}};
    for (int p = 0; p < 65; ++p) item.rows.push_back(given(0, 9, p, p == 64 ? DSV4_ROW_LOGITS : 0));
    item.rows.push_back(given(1, 9, 0, DSV4_ROW_LOGITS));
    const TicketOutput out = client.run(item);
    REQUIRE(out.errors.size() == 1);
    CHECK(out.errors[0].slot == 0);
    CHECK(out.errors[0].row == 64);
    CHECK_THAT(out.errors[0].message,
               ContainsSubstring("page 1 of window") || ContainsSubstring("page 16 of csa_partial"));
    REQUIRE(out.tokens.size() == 1);
    CHECK(out.tokens[0].slot == 1);
    // A token outside the vocabulary too.
    const TicketOutput bad = client.run({executable, {{0, true, 0, &sampling}}, {given(0, 1024, 0, DSV4_ROW_LOGITS)}});
    REQUIRE(bad.errors.size() == 1);
    CHECK_THAT(bad.errors[0].message, ContainsSubstring("1024"));
    CHECK(client.run({executable, {}, {}}).tokens.empty()); // no rows at all
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

TEST_CASE("what cannot run is refused by name", "[plugin]") {
    const Plugin plugin("f32");
    const auto good = program_model(golden_a, DSV4_SERVE, false).program;
    plugin.supports(good);
    const auto refused = [&](const program::Program& p, const char* what) {
        const Failure f = failure_of([&] { plugin.supports(p); });
        CHECK(f.error().code == Code::unsupported);
        CHECK_THAT(f.error().message, ContainsSubstring(what));
    };
    const auto change = [&](const char* op, auto&& f) {
        program::Program p = good;
        for (program::Op& o : p.ops)
            if (o.name == op) {
                f(p, o);
                break;
            }
        return p;
    };
    using program::Op;
    using program::Program;
    refused(change("norm", [](Program&, Op& o) { o.name = "layer_norm"; }), "layer_norm/1");
    refused(change("norm", [](Program&, Op& o) { o.version = 2; }), "norm/2");
    refused(change("norm", [](Program&, Op& o) { o.attributes["bias"] = std::int64_t{1}; }), "'bias'");
    refused(change("norm", [](Program&, Op& o) { o.attributes.clear(); }), "'eps'");
    refused(change("norm", [](Program&, Op& o) { o.attributes["eps"] = std::int64_t{1}; }), "'eps'");
    refused(change("linear", [](Program&, Op& o) { o.attributes["quant"] = std::string("int3"); }), "int3");
    refused(change("linear", [](Program& p, Op& o) { p.values[o.outputs[0]].dims[1] += 1; }), "attn.wq_a");
    refused(
        change("linear", [](Program& p, Op& o) { p.weights[o.weights[0]].format = program::formats::nvfp4_block16; }),
        "nvfp4_block16");
    refused(
        change("linear",
               [](Program& p, Op& o) { p.weights[o.weights[0]].slice_dim = 0, p.weights[o.weights[0]].slice_end = 8; }),
        "slice");
    refused(change("linear", [](Program& p, Op& o) { p.values[o.outputs[0]].element = DSV4_F16; }), "f16");
    refused(change("hc_post", [](Program&, Op& o) { o.inputs.pop_back(); }), "3 inputs");
    refused(change("kv_store", [](Program& p, Op& o) { p.states[o.states[0]].row_dims = {7}; }), "rows");
    refused(change("kv_store", [](Program& p, Op& o) { p.states[o.states[0]].element = DSV4_F16; }), "f16");
    refused(change("attend", [](Program&, Op& o) { o.attributes["ratio"] = std::int64_t{8}; }), "ratio");
    refused(change("attend", [](Program&, Op& o) { o.attributes["rope_dim"] = std::int64_t{63}; }), "rope_dim");
    refused(change("route", [](Program&, Op& o) { o.attributes["hash"] = std::int64_t{2}; }), "hash");
    refused(change("experts", [](Program& p, Op& o) { p.weights[o.weights[1]].dims[0] = 3; }), "ffn.experts.w2");

    // A Program cut off anywhere is refused, never read beyond its end.
    const std::string bytes = program::encode(good);
    for (std::size_t n = 0; n < bytes.size(); n += 97) {
        dsv4_error* error = plugin.table().supports(plugin.self(), {bytes.data(), n});
        REQUIRE(error != nullptr);
        CHECK(error->code == DSV4_CORRUPT);
        error->release(error);
    }
}

TEST_CASE("calls out of order and bad weights are refused", "[plugin]") {
    const Plugin plugin("f32");
    const auto model = program_model(golden_a, DSV4_SERVE, true);
    Client client(plugin);
    CHECK(failure_of([&] { client.compile(model.program); }).error().code == Code::invalid);
    {
        auto weights = model.weights;
        weights[3].parts[0].first.pop_back();
        Client other(plugin);
        CHECK_THAT(failure_of([&] { other.load(weights); }).error().message, ContainsSubstring(weights[3].name));
    }
    {
        auto weights = model.weights;
        weights.pop_back();
        Client other(plugin);
        other.load(weights);
        other.allocate(model.program, 1, 64);
        const Failure f = failure_of([&] { other.compile(model.program); });
        CHECK(f.error().code == Code::not_found);
        CHECK_THAT(f.error().message, ContainsSubstring(model.weights.back().name));
    }
    {
        auto weights = model.weights;
        for (WeightData& w : weights)
            if (w.name == "layers.0.ffn.gate.tid2eid") w.parts[0].first[0] = 200; // expert 200 of 8
        Client other(plugin);
        other.load(weights);
        other.allocate(model.program, 1, 64);
        const Failure f = failure_of([&] { other.compile(model.program); });
        CHECK(f.error().code == Code::corrupt);
        CHECK_THAT(f.error().message, ContainsSubstring("tid2eid"));
    }
    client.load(model.weights);
    client.allocate(model.program, 2, 64);
    auto* executable = client.compile(model.program, 4, 2);
    const auto refused = [&](Client::Item item, const char* what) {
        item.executable = executable;
        CHECK_THAT(failure_of([&] { client.submit({item}); }).error().message, ContainsSubstring(what));
    };
    refused({nullptr, {{7, true}}, {}}, "slot 7");
    refused({nullptr, {{0, true}, {0, true}}, {}}, "appears twice");
    refused({nullptr, {{0, true}}, {given(1, 0, 0)}}, "slot entry 1");
    refused({nullptr, {{0, true}}, {given(0, 0, 1), given(0, 0, 1)}}, "does not come after");
    refused({nullptr, {{0, true}, {1, true}}, {given(0, 0, 0), given(1, 0, 0), given(0, 0, 1)}}, "apart");
    refused({nullptr, {{0, true}}, {given(0, 0, 0, 512)}}, "unknown flags");
    refused({nullptr, {{0, true}}, std::vector<dsv4_row>(5, given(0, 0, 0))}, "5 rows");
    refused({nullptr, {{0, true, 0, nullptr, {4096}}}, {}}, "4096");
    for (const auto& [break_it, what] : std::vector<std::pair<std::function<void(dsv4_sampling&)>, const char*>>{
             {[](dsv4_sampling& s) { s.temperature = -1; }, "temperature"},
             {[](dsv4_sampling& s) { s.temperature = NAN; }, "temperature"},
             {[](dsv4_sampling& s) { s.top_p = 0; }, "top_p"},
             {[](dsv4_sampling& s) { s.min_p = 2; }, "min_p"},
             {[](dsv4_sampling& s) { s.repetition_penalty = 0; }, "repetition_penalty"},
             {[](dsv4_sampling& s) { s.top_k = -3; }, "top_k"}}) {
        dsv4_sampling s = greedy();
        break_it(s);
        refused({nullptr, {{0, true, 0, &s}}, {}}, what);
    }
    const dsv4_ticket_result* result = nullptr;
    CHECK(failure_of([&] { sdk::check(client.table().wait(client.session(), 99, 0, &result)); }).error().code ==
          Code::not_found);
    dsv4_memory_report memory{};
    memory.struct_size = sizeof memory;
    sdk::check(client.table().memory(client.session(), &memory));
    CHECK(memory.weights_bytes > 8'000'000);
    CHECK(memory.state_bytes > 0);
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

TEST_CASE("an executable does not outlive the state it was compiled for", "[plugin]") {
    const auto serve = program_model(golden_a, DSV4_SERVE, true), score = program_model(golden_a, DSV4_SCORE, true);
    const Plugin plugin("f32");
    Client client(plugin);
    client.load(serve.weights);
    client.allocate(serve.program, 1, 64);
    auto* executable = client.compile(serve.program);
    CHECK_THAT(failure_of([&] { client.compile(score.program); }).error().message, ContainsSubstring("state_alloc"));
    client.allocate(serve.program, 2, 128); // larger pools, the same layouts
    const Client::Item item{executable, {{1, true}}, {given(0, 1, 0, DSV4_ROW_LOGITS)}};
    CHECK(client.run(item).tokens.size() == 1);
    client.allocate(score.program, 2, 128);
    CHECK_THAT(failure_of([&] { client.submit({item}); }).error().message, ContainsSubstring("another state"));
    client.compile(score.program);
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
