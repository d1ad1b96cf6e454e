// The bundled model on twenty prompts: answers of the float64 reference, and of the serving reference where it is sure
// (data/tiny_prompts.json, made by make_tiny_prompts.py).
#include "tests/numerics/golden.hpp"
#include "tests/numerics/slots.hpp"
#include "tests/support/catch.hpp"

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace dsv4;
using namespace dsv4::numerics;

namespace {

using Tokens = std::vector<std::int32_t>;

nlohmann::json prompts() {
    std::ifstream in(DSV4_SOURCE_DIR "/tests/numerics/data/tiny_prompts.json");
    auto list = nlohmann::json::parse(in);
    REQUIRE(list.size() == 20);
    return list;
}

std::int32_t best(std::span<const float> logits) {
    return std::int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

} // namespace

TEST_CASE("score continues the prompts as the reference does") {
    Model model(tiny, score_numbers);
    const auto vocab = std::size_t(model.geometry().vocab_size);
    std::size_t made = 0;
    for (const auto& entry : prompts()) {
        const auto text = entry["text"].get<std::string>();
        INFO(entry["kind"].get<std::string>() << ": " << text);
        const auto prompt = entry["prompt"].get<Tokens>(), wanted = entry["greedy"].get<Tokens>();
        REQUIRE((wanted.size() >= 16 || wanted.back() == model.geometry().eos_token_ids.at(0)));
        Slots slots(model, 1, std::int64_t(prompt.size() + wanted.size()), std::uint32_t(prompt.size()));
        Tokens got{best(row(slots.run({{0, prompt}}), 0, vocab))};
        while (got.size() < wanted.size()) {
            const std::int32_t last[] = {got.back()};
            got.push_back(best(row(slots.run({{0, last, 1, true}}), 0, vocab)));
        }
        CHECK(got == wanted);
        made += got.size();
    }
    std::cout << "dsv4-tiny, score: " << made << " tokens equal the reference's\n";
}

TEST_CASE("serve chooses as the serving reference does where that is sure") {
    const Numbers numbers = GENERATE(serve_f32, serve_f64);
    INFO(numbers.name);
    Model model(tiny, numbers);
    std::size_t sure = 0, all = 0, equal = 0;
    for (const auto& entry : prompts()) {
        INFO(entry["kind"].get<std::string>());
        const auto prompt = entry["prompt"].get<Tokens>(), wanted = entry["serve_argmax"].get<Tokens>();
        const auto lead = entry["serve_lead"].get<std::vector<double>>();
        Tokens tokens = prompt;
        for (const std::int32_t token : entry["greedy"].get<Tokens>()) tokens.push_back(token);
        tokens.pop_back();
        REQUIRE(wanted.size() + prompt.size() - 1 == tokens.size());
        const runtime::Score got = model.score(tokens, {});
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const bool same = got.argmax[prompt.size() - 1 + i] == wanted[i];
            ++all;
            equal += same;
            if (!(lead[i] >= 0.75)) continue;
            ++sure;
            INFO("generated token " << i << ", lead " << lead[i]);
            CHECK(same);
        }
    }
    std::cout << "dsv4-tiny, " << numbers.name << ": " << equal << " of " << all << " choices equal, " << sure
              << " of them with a lead of 0.75 or more\n";
    CHECK(sure >= all * 9 / 10);
    // With double sums nothing is left to chance.
    if (numbers.accumulate == std::string("f64")) CHECK(equal == all);
}
