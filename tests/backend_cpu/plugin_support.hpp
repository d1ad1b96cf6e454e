// What the tests of the plugin share: rows and samplings in short, refusals, feeding a prompt, distances to goldens.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "client.hpp"
#include "dsv4/sdk/generate.hpp"
#include "program_model.hpp"
#include "tests/support/catch.hpp"

namespace dsv4::test {

inline const std::string golden_a = DSV4_SOURCE_DIR "/tests/vectors/model/golden-a";
inline const std::string odd = DSV4_SOURCE_DIR "/tests/backend_cpu/data/odd"; // widths that fit no block

inline dsv4_row given(std::int32_t slot, std::int32_t token, std::int64_t position, std::uint32_t flags = 0) {
    return {slot, DSV4_INPUT_GIVEN, token, flags, position};
}
inline dsv4_row next_row(std::int32_t slot) {
    return {slot, DSV4_INPUT_LAST, 0, DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, 0};
}

inline dsv4_sampling greedy() { return sdk::default_sampling(); }

inline Failure failure_of(const std::function<void()>& f) {
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
inline Collected feed(Client& client, const ProgramModel& model, dsv4_executable* executable,
                      const std::vector<std::int32_t>& tokens, const std::vector<std::size_t>& pieces,
                      std::int32_t slot = 0) {
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
inline std::pair<float, float> distance(const Collected& got, const ProgramModel& model, Goldens& golden) {
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

} // namespace dsv4::test
