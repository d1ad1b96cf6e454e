// However a prompt is cut into batches, and however many threads work on it, the bits are the same.
#include "tests/numerics/golden.hpp"
#include "tests/numerics/model.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::numerics;

namespace {

runtime::Score run(Model& model, const std::vector<std::int32_t>& tokens, std::uint32_t chunk) {
    runtime::ScoreOptions options;
    options.chunk_tokens = chunk;
    options.streams = true;
    return model.score(tokens, options);
}

void check_same(const runtime::Score& a, const runtime::Score& b) {
    REQUIRE(!a.logits.empty());
    CHECK(same_bits(a.logits, b.logits));
    CHECK(a.argmax == b.argmax);
    CHECK(a.picks == b.picks);
    REQUIRE(a.streams.size() == b.streams.size());
    for (const auto& [layer, streams] : a.streams) {
        INFO("streams of layer " << layer);
        CHECK(same_bits(streams, b.streams.at(layer)));
    }
}

} // namespace

TEST_CASE("any chunk size gives the same bits") {
    const Numbers numbers = GENERATE(score_numbers, serve_f32, serve_f64);
    INFO(numbers.name);
    const auto tokens = ints(golden_a + "/golden.safetensors", "tokens");
    Model model(golden_a, numbers);
    const runtime::Score whole = run(model, tokens, 400);
    for (const std::uint32_t chunk : {1u, 3u, 7u, 64u}) { // 1: token by token
        INFO("chunks of " << chunk);
        check_same(run(model, tokens, chunk), whole);
    }
}

TEST_CASE("one thread and two give the same bits") {
    const Numbers numbers = GENERATE(score_numbers, serve_f32, serve_f64);
    INFO(numbers.name);
    auto tokens = ints(golden_a + "/golden.safetensors", "tokens");
    tokens.resize(150);
    Model one(golden_a, numbers, 1), two(golden_a, numbers, 2), five(golden_a, numbers, 5);
    const runtime::Score whole = run(one, tokens, 64);
    check_same(run(two, tokens, 64), whole);
    check_same(run(five, tokens, 64), whole);
}
