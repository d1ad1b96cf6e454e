// Sequences that share batches do not see each other.
#include "tests/numerics/golden.hpp"
#include "tests/numerics/slots.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::numerics;

namespace {

// Prompt length, and how many tokens follow one by one.
struct Sequence {
    std::size_t prompt, decoded;
};
constexpr Sequence sequences[] = {{1, 12}, {2, 9}, {5, 12}, {31, 3}, {64, 12}, {127, 5}, {129, 2}, {200, 12}};
constexpr int count = int(std::size(sequences));

std::vector<std::int32_t> tokens_of(int sequence) {
    const auto all = ints(golden_a + "/golden.safetensors", "tokens");
    const Sequence& s = sequences[sequence];
    const auto begin = all.begin() + 11 * sequence; // each its own text
    return {begin, begin + std::ptrdiff_t(s.prompt + s.decoded)};
}

} // namespace

TEST_CASE("eight sequences batched together are bit-equal to each alone") {
    const Numbers numbers = GENERATE(score_numbers, serve_f32, serve_f64);
    INFO(numbers.name);
    Model model(golden_a, numbers);
    std::vector<std::vector<std::int32_t>> tokens;
    std::vector<std::vector<float>> alone(count), together(count);
    for (int s = 0; s < count; ++s) tokens.push_back(tokens_of(s));

    for (int s = 0; s < count; ++s) {
        Slots slots(model, 1, 256, 256);
        const auto all = std::span(tokens[std::size_t(s)]);
        alone[std::size_t(s)] = slots.run({{0, all, sequences[s].decoded + 1}});
    }

    // Prompts enter two a batch in pieces of up to 50 rows, while sequences that are through theirs decode: prefill and
    // decode rows share batches, in an order of slots that changes.
    Slots slots(model, count, 256, 256);
    std::vector<std::size_t> at(count, 0);
    std::size_t mixed_batches = 0;
    for (int batch = 0;; ++batch) {
        std::vector<Piece> pieces;
        int prefilling = 0, decoding = 0;
        for (int i = 0; i < count; ++i) {
            const int s = batch % 2 ? count - 1 - i : i;
            const auto all = std::span(std::as_const(tokens[std::size_t(s)]));
            std::size_t& done = at[std::size_t(s)];
            if (done == all.size()) continue;
            const std::size_t prompt = sequences[s].prompt;
            if (done < prompt && prefilling == 2) continue;
            const std::size_t rows = done < prompt ? std::min<std::size_t>(50, prompt - done) : 1;
            ++(done < prompt ? prefilling : decoding);
            pieces.push_back({s, all.subspan(done, rows), done + rows >= prompt ? 1u : 0u, done >= prompt});
            done += rows;
        }
        if (pieces.empty()) break;
        mixed_batches += prefilling > 0 && decoding > 0;
        const auto logits = slots.run(pieces);
        std::size_t next = 0;
        for (const Piece& piece : pieces)
            if (piece.logits) {
                const auto values = row(logits, next++, std::size_t(model.geometry().vocab_size));
                auto& all = together[std::size_t(piece.slot)];
                all.insert(all.end(), values.begin(), values.end());
            }
    }
    CHECK(mixed_batches >= 4);
    for (int s = 0; s < count; ++s) {
        INFO("sequence " << s);
        CHECK(same_bits(together[std::size_t(s)], alone[std::size_t(s)]));
    }
}

TEST_CASE("a slot that is used again remembers nothing") {
    Model model(golden_a, serve_f32);
    const auto first = tokens_of(7), second = tokens_of(5);
    Slots slots(model, 1, 256, 256);
    const auto fresh = slots.run({{0, second, second.size()}});
    slots.restart(0);
    slots.run({{0, first, 1}});
    slots.restart(0);
    CHECK(same_bits(slots.run({{0, second, second.size()}}), fresh));
}
