// The plugin as a library, and everything that it must refuse by name.
#include <sodium.h>

#include <fstream>
#include <iterator>

#include "plugin_support.hpp"

using namespace dsv4;
using namespace dsv4::test;

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
