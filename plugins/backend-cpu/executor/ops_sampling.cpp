// Ops that end a step: mask, sample, verify, and the draft chain of a Markov head.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../kernels/dot.hpp"
#include "ops.hpp"
#include "run.hpp"

namespace dsv4::cpu::ops {
namespace {

// Logits of the j-th row with logits after bias, penalties and impossible stop ids. `next`: position of the emitted
// token.
Distribution row_distribution(const Record& record, std::span<const float> logits, std::int64_t next,
                              std::span<const TokenCount> counts) {
    const Sampling& s = record.sampling;
    std::vector<float> adjusted(logits.begin(), logits.end());
    for (const auto& [id, value] : s.parameters.bias)
        if (static_cast<std::size_t>(id) >= adjusted.size())
            throw Failure(Code::invalid, "bias token " + std::to_string(id) + " is outside the vocabulary");
    const bool too_short = next + 1 < s.min_length;
    adjust_logits(adjusted, s.parameters, counts,
                  too_short ? std::span<const std::int32_t>(s.stop_ids) : std::span<const std::int32_t>());
    return distribution(adjusted, s.parameters);
}

// A stop id, or the sequence reaches its greatest length with this token.
bool finishes(const Record& record, std::int32_t token, std::int64_t next) {
    const auto& stops = record.sampling.stop_ids;
    return std::find(stops.begin(), stops.end(), token) != stops.end() || next + 1 >= record.sampling.max_length;
}

// Makes `token` at position `next` the record's last and reports it. `logits`: the model's, for log-probabilities.
void emit_token(Run& run, const ActiveRow& row, std::int32_t token, std::int64_t next, std::int32_t accepted,
                std::span<const float> logits) {
    Record& record = run.record(row);
    const Sampling& s = record.sampling;
    Outcome::Emitted out;
    out.result.token = token;
    out.result.position = next;
    out.result.accepted = accepted;
    out.result.logprob = std::numeric_limits<float>::quiet_NaN();
    if (s.logprobs >= 0) {
        const LogProbabilities p = log_probabilities(logits, token, static_cast<std::size_t>(s.logprobs));
        out.result.logprob = p.token;
        for (const auto& [id, value] : p.best) out.top.push_back({id, value});
    }
    record.last = token;
    if (!record.counts.empty()) ++record.counts[static_cast<std::size_t>(token)];
    if (finishes(record, token, next)) {
        record.finished = true;
        out.result.flags |= DSV4_RESULT_FINISHED;
    }
    run.emit(row, std::move(out));
}

} // namespace

Runner mask(Builder& b) {
    b.arity(1, 0, 0, 1);
    b.attributes({});
    const ValueRef in = b.input(0, Element::f32), out = b.output(0, Element::f32, in.width);
    if (!in.logits_rows || !out.logits_rows) b.refuse("it takes and gives M rows");
    if (b.executable().mask_vocabulary != 0) b.refuse("a Program has one mask op at most");
    b.executable().mask_vocabulary = in.width;
    return [=](Run& run) {
        const RowsIn from = run.in(in);
        const RowsOut to = run.out(out);
        std::copy_n(from.data, from.count * from.width, to.data);
        for (std::size_t j = 0; j < to.count; ++j) {
            const std::uint32_t* words = run.mask(j, in.width);
            if (!words) continue;
            for (std::size_t v = 0; v < in.width; ++v)
                if (((words[v / 32] >> (v % 32)) & 1u) == 0) to[j][v] = -std::numeric_limits<float>::infinity();
        }
    };
}

Runner sample(Builder& b) {
    b.arity(1, 0, 1, 2);
    b.attributes({});
    const ValueRef logits = b.input(0, Element::f32), token = b.output(0, Element::i32, 1),
                   logprob = b.output(1, Element::f32, 1);
    if (!logits.logits_rows) b.refuse("it takes M rows");
    b.state(0, {DSV4_STATE_TOKEN_COUNTS}, logits.width);
    const ValueRef raw = b.unmasked(0);
    return [=](Run& run) {
        const RowsIn in = run.in(logits), unmasked = run.in(raw);
        const auto tokens = run.integers_out(token);
        const RowsOut logprobs = run.out(logprob);
        std::fill(tokens.begin(), tokens.end(), -1);
        std::fill(logprobs.all().begin(), logprobs.all().end(), std::numeric_limits<float>::quiet_NaN());
        const auto row_of = [&](std::size_t j) -> const ActiveRow& { return run.rows()[run.logits_rows()[j]]; };
        // Records do not change while tokens are drawn: what a row takes from its record is that of the work's
        // beginning.
        std::vector<std::string> errors(in.count);
        run.parallel().run(in.count, [&](std::size_t j) {
            const ActiveRow& row = row_of(j);
            if ((row.flags & DSV4_ROW_VERIFY) != 0) return;
            const Record& record = run.record(row);
            try {
                const Distribution p = row_distribution(record, in[j], row.position + 1, record.counts);
                tokens[j] = draw(p, record.sampling.parameters.seed, row.position + 1, Stream::resample);
                logprobs[j][0] = log_probabilities(unmasked[j], tokens[j], 0).token;
            } catch (const Failure& f) {
                errors[j] = f.what();
            }
        });
        for (std::size_t j = 0; j < in.count; ++j) {
            const ActiveRow& row = row_of(j);
            if (!errors[j].empty()) run.fail(row.batch_row, "sample/1", errors[j]);
            if (tokens[j] < 0 || run.failed(row)) continue;
            emit_token(run, row, tokens[j], row.position + 1, 0, unmasked[j]);
        }
    };
}

namespace {

struct Judged {
    std::size_t accepted = 0;
    std::int32_t next = -1; // emitted after the accepted drafts
};

// Rows j .. j+n-1 of the logits are the anchor and n-1 drafts of one slot.
Judged judge(Run& run, RowsIn logits, std::size_t j, std::size_t n) {
    const auto row_of = [&](std::size_t i) -> const ActiveRow& { return run.rows()[run.logits_rows()[j + i]]; };
    const Record& record = run.record(row_of(0));
    const std::uint64_t seed = record.sampling.parameters.seed;
    std::vector<TokenCount> counts = record.counts;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t next = row_of(i).position + 1;
        const Distribution p = row_distribution(record, logits[j + i], next, counts);
        if (i + 1 == n) return {i, draw(p, seed, next, Stream::resample)};
        const Draft& d = record.drafts[i];
        if (d.distribution.ids.empty()) {
            const std::int32_t y = draw(p, seed, next, Stream::resample);
            if (y != d.token) return {i, y};
        } else {
            const double u = uniform(seed, next, Stream::accept, 0);
            if (!(u * d.distribution.of(d.token) < p.of(d.token)))
                return {i, draw(residual(p, d.distribution), seed, next, Stream::resample)};
        }
        if (!counts.empty()) ++counts[static_cast<std::size_t>(d.token)];
    }
    return {};
}

} // namespace

Runner verify(Builder& b) {
    b.arity(1, 0, 1, 2);
    b.attributes({});
    const ValueRef logits = b.input(0, Element::f32), token = b.output(0, Element::i32, 1),
                   accepted = b.output(1, Element::i32, 1);
    if (!logits.logits_rows) b.refuse("it takes M rows");
    b.state(0, {DSV4_STATE_TOKEN_COUNTS}, logits.width);
    const ValueRef raw = b.unmasked(0);
    return [=](Run& run) {
        const RowsIn in = run.in(logits), unmasked = run.in(raw);
        const auto tokens = run.integers_out(token), accepts = run.integers_out(accepted);
        std::fill(tokens.begin(), tokens.end(), -1);
        std::fill(accepts.begin(), accepts.end(), 0);
        const auto row_of = [&](std::size_t j) -> const ActiveRow& { return run.rows()[run.logits_rows()[j]]; };
        const auto verifies = [&](std::size_t j) { return (row_of(j).flags & DSV4_ROW_VERIFY) != 0; };
        for (std::size_t j = 0, n = 1; j < in.count; j += n) {
            const ActiveRow& anchor = row_of(j);
            n = 1;
            if (!verifies(j) || run.failed(anchor)) continue;
            while (j + n < in.count && row_of(j + n).slot == anchor.slot && verifies(j + n)) ++n;
            Record& record = run.record(anchor);
            const std::int64_t first = anchor.position + 1;
            std::vector<std::int32_t> emitted;
            std::size_t drafts = 0; // emitted ones
            try {
                if (n - 1 > record.drafts.size())
                    throw Failure(Code::invalid, "its slot has " + std::to_string(record.drafts.size()) +
                                                     " drafts and " + std::to_string(n - 1) + " rows to judge them");
                const Judged judged = judge(run, in, j, n);
                for (std::size_t i = 0; i <= judged.accepted; ++i) {
                    const bool draft = i < judged.accepted;
                    emitted.push_back(draft ? record.drafts[i].token : judged.next);
                    drafts += draft;
                    if (finishes(record, emitted.back(), first + static_cast<std::int64_t>(i))) break;
                }
            } catch (const Failure& f) {
                run.fail(anchor.batch_row, "verify/1", f.what());
                continue;
            }
            for (std::size_t i = 0; i < n; ++i) accepts[j + i] = static_cast<std::int32_t>(drafts);
            for (std::size_t i = 0; i < emitted.size(); ++i) {
                tokens[j + i] = emitted[i];
                emit_token(run, row_of(j + i), emitted[i], first + static_cast<std::int64_t>(i),
                           static_cast<std::int32_t>(drafts), unmasked[j + i]);
            }
            record.committed = anchor.position + static_cast<std::int64_t>(emitted.size());
            record.drafts.clear();
        }
    };
}

Runner markov_step(Builder& b) {
    b.arity(2, {2, 3}, 0, 2);
    b.attributes({"greedy"});
    const ValueRef logits = b.input(0, Element::f32), x = b.input(1, Element::act),
                   draft = b.output(0, Element::i32, 1), confidence = b.output(1, Element::f32, 1);
    if (!logits.logits_rows || x.logits_rows) b.refuse("it takes logits of M rows and activations of N rows");
    const Matrix w1 = b.matrix(0, logits.width), w2 = b.matrix(1, logits.width, w1.cols);
    std::span<const float> judge_weight;
    const bool judged = b.weights() == 3;
    if (judged) judge_weight = b.vector(2, x.width + w1.cols);
    const bool greedy = b.flag("greedy");
    return [=](Run& run) {
        const RowsIn in = run.in(logits), hidden = run.in(x);
        const auto drafts = run.integers_out(draft);
        const RowsOut conf = run.out(confidence);
        const Numerics& numerics = run.numerics();
        std::vector<float> e(w1.cols), bias(logits.width), joined(x.width + w1.cols);
        std::size_t last_slot = std::numeric_limits<std::size_t>::max(), k = 0;
        for (std::size_t j = 0; j < in.count; ++j) {
            const std::size_t i = run.logits_rows()[j];
            const ActiveRow& row = run.rows()[i];
            Record& record = run.record(row);
            if (row.slot != last_slot) {
                last_slot = row.slot;
                k = 0;
                record.drafts.clear();
            }
            drafts[j] = -1;
            conf[j][0] = 0;
            if (run.failed(row)) continue;
            const std::int32_t previous = k == 0 ? record.last : record.drafts.back().token;
            if (previous < 0 || static_cast<std::size_t>(previous) >= w1.rows) {
                run.fail(row.batch_row, "markov_step/1", "the token before its draft does not exist");
                continue;
            }
            std::vector<float> scratch(w1.cols);
            const float* embedded = dequantise_row(w1, static_cast<std::size_t>(previous), scratch.data());
            std::copy_n(embedded, w1.cols, e.begin());
            cpu::linear({e.data(), 1, w1.cols}, w2, {bias.data(), 1, bias.size()}, {Quantiser::none, false}, numerics,
                        run.parallel());
            for (std::size_t v = 0; v < bias.size(); ++v) bias[v] = in[j][v] + bias[v];
            ++k;
            try {
                SamplingParameters at_temperature;
                at_temperature.temperature = greedy ? 0.0f : record.sampling.parameters.temperature;
                Draft d;
                Distribution q = distribution(bias, at_temperature);
                d.token = draw(q, record.sampling.parameters.seed, record.committed + static_cast<std::int64_t>(k),
                               Stream::draft);
                if (at_temperature.temperature > 0) d.distribution = std::move(q);
                drafts[j] = d.token;
                record.drafts.push_back(std::move(d));
            } catch (const Failure& f) {
                run.fail(row.batch_row, "markov_step/1", f.what());
                continue;
            }
            if (judged) {
                std::copy(hidden[i].begin(), hidden[i].end(), joined.begin());
                std::copy(e.begin(), e.end(), joined.begin() + static_cast<std::ptrdiff_t>(x.width));
                with_accumulator(numerics, [&]<class Acc>() {
                    conf[j][0] = dot<Acc>(joined.data(), judge_weight.data(), joined.size());
                });
            }
        }
    };
}

} // namespace dsv4::cpu::ops
