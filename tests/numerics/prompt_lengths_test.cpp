// Every prompt length from 1 to 300, so every length modulo 4 and 128: a prefill followed by decoding gives the bits of
// one pass.
#include "tests/numerics/golden.hpp"
#include "tests/numerics/slots.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::numerics;

TEST_CASE("a prompt of any length goes on as one pass does") {
    const auto [numbers, longest] = GENERATE(table<Numbers, std::size_t>({{serve_f32, 300}, {score_numbers, 300}}));
    INFO(numbers.name);
    constexpr std::size_t decoded = 4, slot_count = 6;
    auto tokens = ints(golden_a + "/golden.safetensors", "tokens");
    tokens.resize(longest + decoded);
    Model model(golden_a, numbers);
    const auto vocab = std::size_t(model.geometry().vocab_size);
    runtime::ScoreOptions options;
    options.chunk_tokens = std::uint32_t(tokens.size());
    const auto whole = model.score(tokens, options).logits;

    // Six lengths a batch, prefilled together; then one row a slot and batch, placed by the backend's own record.
    Slots slots(model, slot_count, std::int64_t(tokens.size()), longest * slot_count);
    const auto all = std::span(std::as_const(tokens));
    std::size_t wrong = 0;
    auto check = [&](const std::vector<float>& logits, std::size_t length, std::size_t ahead) {
        for (std::size_t s = 0; s < slot_count; ++s)
            if (!same_bits(row(logits, s, vocab), row(whole, length + s - 1 + ahead, vocab))) {
                ++wrong;
                UNSCOPED_INFO("prompt of " << length + s << " tokens, row " << ahead << " behind it");
            }
    };
    for (std::size_t length = 1; length <= longest; length += slot_count) {
        std::vector<Piece> pieces;
        for (std::size_t s = 0; s < slot_count; ++s) {
            slots.restart(int(s));
            pieces.push_back({int(s), all.first(length + s)});
        }
        check(slots.run(pieces), length, 0);
        for (std::size_t ahead = 1; ahead <= decoded; ++ahead) {
            for (std::size_t s = 0; s < slot_count; ++s)
                pieces[s] = {int(s), all.subspan(length + s + ahead - 1, 1), 1, true};
            check(slots.run(pieces), length, ahead);
        }
    }
    CHECK(wrong == 0);
}
