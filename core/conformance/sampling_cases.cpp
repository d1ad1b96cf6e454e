// Cases of the ops that choose tokens: mask and sample under every parameter, drafts and their verification.
#include "core/conformance/cases.hpp"

#include <limits>

namespace dsv4::conformance {
namespace {

using program::logit_rows;
using program::Op;
using program::Program;
using program::rows;

constexpr std::int64_t markov_rank = 32;

dsv4_sampling greedy() {
    dsv4_sampling s{};
    s.struct_size = sizeof s;
    s.top_p = 1;
    s.repetition_penalty = 1;
    s.logprobs = 3;
    s.max_length = std::numeric_limits<std::int64_t>::max();
    return s;
}

struct Setting {
    const char* name;
    void (*apply)(Reset&);
};

constexpr Setting settings[] = {
    {"greedy", [](Reset&) {}},
    {"temperature 1", [](Reset& r) { r.sampling.temperature = 1, r.sampling.seed = 7; }},
    {"temperature 0.3, top_k 5",
     [](Reset& r) { r.sampling.temperature = 0.3f, r.sampling.top_k = 5, r.sampling.seed = 11; }},
    {"top_p 0.8",
     [](Reset& r) { r.sampling.temperature = 0.9f, r.sampling.top_p = 0.8f, r.sampling.seed = 0xFFFFFFFFFFull; }},
    {"min_p 0.1", [](Reset& r) { r.sampling.temperature = 1.3f, r.sampling.min_p = 0.1f, r.sampling.seed = 3; }},
    {"penalties",
     [](Reset& r) {
         r.sampling.presence_penalty = 1.5f, r.sampling.frequency_penalty = 0.7f, r.sampling.repetition_penalty = 1.3f;
         r.prompt_ids = {1, 2, 3, 4, 5, 5};
         r.generated_ids = {6, 6, 6, 7, 1};
     }},
    {"bias",
     [](Reset& r) {
         r.bias = {{17, 100.0f}, {18, -100.0f}};
     }},
    {"stop id too early",
     [](Reset& r) {
         r.bias = {{9, 50.0f}};
         r.stop_ids = {9};
         r.sampling.min_length = 1000000;
     }},
    {"stop id",
     [](Reset& r) {
         r.bias = {{9, 50.0f}};
         r.stop_ids = {9};
     }},
    {"masked", [](Reset& r) { r.sampling.masked = 1; }},
};

Program sample_program(const Subject& subject) {
    Program p;
    p.precision = subject.precision;
    p.name = "check.sample";
    const auto vocab = subject.geometry.vocab_size;
    const auto logits = p.value("logits", DSV4_F32, {logit_rows, vocab});
    p.inputs = {logits};
    const auto masked = p.value("masked", DSV4_F32, {logit_rows, vocab});
    const auto token = p.value("token", DSV4_I32, {logit_rows});
    const auto logprob = p.value("logprob", DSV4_F32, {logit_rows});
    Op& mask = p.op("mask");
    mask.inputs = {logits};
    mask.outputs = {masked};
    const auto counts = p.state(DSV4_STATE_TOKEN_COUNTS, 0, {std::uint32_t(vocab)}, DSV4_I32);
    Op& sample = p.op("sample");
    sample.inputs = {masked};
    sample.states = {counts};
    sample.outputs = {token, logprob};
    p.outputs = {token, logprob};
    return p;
}

Bytes logits_for(std::size_t row_count, std::int64_t vocab, Random& random) {
    return random_values(random, DSV4_F32, row_count * std::size_t(vocab), 3);
}

} // namespace

std::vector<lower::TableEntry> draft_entries(const model::Geometry& geometry) {
    return {{"check.markov_w1", program::formats::bf16, {geometry.vocab_size, markov_rank}, 1},
            {"check.markov_w2", program::formats::bf16, {geometry.vocab_size, markov_rank}, 1},
            {"check.confidence", program::formats::bf16, {1, geometry.hidden_size + markov_rank}, 1}};
}

std::vector<Case> sampling_cases(const Subject& subject) {
    const std::int64_t vocab = subject.geometry.vocab_size;
    std::vector<Case> cases;

    // One slot a setting; a first token, then others from the record, some of them as two works of a ticket.
    {
        Case c;
        c.op = "sample/1";
        c.what = "every parameter, one slot each";
        c.programs = {sample_program(subject)};
        c.slots = int(std::size(settings));
        for (const Setting& setting : settings) c.slot_names.push_back(setting.name);
        c.positions = 64;
        Random random(seed_of(c.what, subject.seed));
        for (int step_number = 0; step_number < 8; ++step_number) {
            Step step;
            step.joined = step_number == 2 || step_number == 5;
            std::size_t masked_rows = 0;
            for (int s = 0; s < c.slots; ++s) {
                if (step_number == 0) {
                    Reset& r = step.resets[s];
                    r.sampling = greedy();
                    settings[s].apply(r);
                    r.committed = s;
                    step.rows.push_back({s, s, 5, DSV4_ROW_LOGITS, DSV4_INPUT_GIVEN});
                } else {
                    const bool finished = std::string_view(settings[s].name) == "stop id";
                    step.rows.push_back({s, 0, 0, DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, DSV4_INPUT_LAST, finished});
                }
                masked_rows += std::string_view(settings[s].name) == "masked";
            }
            step.inputs["logits"] = logits_for(step.rows.size(), vocab, random);
            const std::size_t words = std::size_t(vocab + 31) / 32;
            for (std::size_t i = 0; i < masked_rows * words; ++i)
                step.masks.push_back(std::uint32_t(random.bits()) & std::uint32_t(random.bits()));
            c.steps.push_back(std::move(step));
        }
        c.tolerances["token"] = c.tolerances["tokens"] = {0, 0, 0, 0.96};
        c.tolerances["logprob"] = {1e-4, 1e-3, 0};
        cases.push_back(std::move(c));
    }

    // Drafts from the Markov head, then their verification, greedy and probabilistic.
    for (const bool greedy_drafts : {true, false}) {
        Case c;
        c.op = "verify/1";
        c.what = greedy_drafts ? "greedy drafts" : "probabilistic drafts";
        c.slots = 6;
        c.positions = 64;
        const std::int64_t width = subject.geometry.hidden_size;
        const dsv4_element act = subject.precision == DSV4_SERVE ? DSV4_BF16 : DSV4_F32;
        Program draft;
        draft.precision = subject.precision;
        draft.name = "check.markov";
        {
            const auto logits = draft.value("logits", DSV4_F32, {logit_rows, vocab});
            const auto x = draft.value("x", act, {rows, width});
            draft.inputs = {logits, x};
            std::vector<program::WeightId> w;
            for (const auto& e : draft_entries(subject.geometry)) w.push_back(draft.weight(e.name, e.format, e.dims));
            const auto out = draft.value("draft", DSV4_I32, {logit_rows});
            const auto confidence = draft.value("confidence", DSV4_F32, {logit_rows});
            Op& op = draft.op("markov_step");
            op.inputs = {logits, x};
            op.weights = w;
            op.outputs = {out, confidence};
            op.attributes["greedy"] = std::int64_t(greedy_drafts);
            draft.outputs = {out, confidence};
        }
        Program verify;
        verify.precision = subject.precision;
        verify.name = "check.verify";
        {
            const auto logits = verify.value("logits", DSV4_F32, {logit_rows, vocab});
            verify.inputs = {logits};
            const auto token = verify.value("token", DSV4_I32, {logit_rows});
            const auto accepted = verify.value("accepted", DSV4_I32, {logit_rows});
            const auto counts = verify.state(DSV4_STATE_TOKEN_COUNTS, 0, {std::uint32_t(vocab)}, DSV4_I32);
            Op& op = verify.op("verify");
            op.inputs = {logits};
            op.states = {counts};
            op.outputs = {token, accepted};
            verify.outputs = {token, accepted};
        }
        c.programs = {sample_program(subject), draft, verify};
        Random random(seed_of(c.what, subject.seed));
        Step first;
        for (int s = 0; s < c.slots; ++s) {
            Reset& r = first.resets[s];
            r.sampling = greedy();
            if (s % 2) r.sampling.temperature = 1, r.sampling.seed = std::uint64_t(s) * 77;
            if (s == 3) r.sampling.frequency_penalty = 0.9f;
            first.rows.push_back({s, 0, 3, DSV4_ROW_LOGITS, DSV4_INPUT_GIVEN});
        }
        first.inputs["logits"] = logits_for(first.rows.size(), vocab, random);
        c.steps.push_back(first);
        constexpr int depth = 4;
        for (int round = 0; round < 4; ++round) {
            Step drafting, judging;
            drafting.program = 1;
            judging.program = 2;
            for (int s = 0; s < c.slots; ++s) {
                const int tokens = 1 + s % depth; // d_1 .. d_tokens
                for (int k = 0; k < tokens; ++k)
                    drafting.rows.push_back({s, k, k == 0 ? 0 : 2, DSV4_ROW_LOGITS | DSV4_ROW_DRAFT | DSV4_ROW_RELATIVE,
                                             k == 0 ? DSV4_INPUT_LAST : DSV4_INPUT_NOISE});
                for (int k = 0; k <= tokens; ++k)
                    judging.rows.push_back({s, k, k - 1, DSV4_ROW_LOGITS | DSV4_ROW_VERIFY | DSV4_ROW_RELATIVE,
                                            k == 0 ? DSV4_INPUT_LAST : DSV4_INPUT_DRAFT});
            }
            // Draft and target agree often: both peak at few tokens.
            auto peaked = [&](std::size_t row_count) {
                Bytes b = logits_for(row_count, vocab, random);
                auto* values = reinterpret_cast<float*>(b.data());
                for (std::size_t i = 0; i < row_count; ++i)
                    for (int t = 0; t < 3; ++t)
                        values[i * std::size_t(vocab) + 20 + std::size_t(t)] += 20 + 0.5f * float(t);
                return b;
            };
            drafting.inputs["logits"] = peaked(drafting.rows.size());
            drafting.inputs["x"] = random_values(random, act, drafting.rows.size() * std::size_t(width));
            judging.inputs["logits"] = peaked(judging.rows.size());
            c.steps.push_back(std::move(drafting));
            c.steps.push_back(std::move(judging));
        }
        for (const char* name : {"token", "tokens", "accepted", "draft"}) c.tolerances[name] = {0, 0, 0, 0.96};
        c.tolerances["logprob"] = {1e-4, 1e-3, 0};
        c.tolerances["confidence"] = {1e-4, 1e-3, 0};
        cases.push_back(std::move(c));
    }
    return cases;
}

} // namespace dsv4::conformance
