// Cuts, rejected rows and transfers of whole Programs.
#include "core/conformance/whole_program.hpp"

#include "core/conformance/transfer.hpp"
#include "core/lower/deepseek_v4.hpp"

#include <algorithm>

namespace dsv4::conformance {
namespace {

// One sequence through a whole Program of three layers, as a case that can be cut in any way.
struct WholeSequence {
    program::Program program;
    std::vector<std::int32_t> tokens;
    bool large = false; // each pass over the weights takes seconds, each row of logits as long as a layer
};

WholeSequence whole_sequence(const model::Geometry& geometry, const lower::WeightTable& weights,
                             dsv4_precision precision, std::uint64_t seed) {
    constexpr std::int64_t length = 150, large_vocabulary = 16384;
    lower::Options options;
    options.precision = precision;
    options.sample = false;
    options.logits_output = options.streams_output = options.picks_output = true;
    WholeSequence whole{lower::lower(geometry, weights, options), {}, geometry.vocab_size > large_vocabulary};
    Random random(seed_of("whole", seed));
    for (std::int64_t i = 0; i < length; ++i)
        whole.tokens.push_back(std::int32_t(random.below(std::uint32_t(geometry.vocab_size))));
    return whole;
}

struct Cut {
    std::vector<std::uint32_t> pieces; // rows a batch, repeated
    std::uint32_t rejected = 0;        // rows between the pieces that must leave no trace
    std::uint32_t flags = 0;           // of those
    bool joined = false;               // pairs of batches share a ticket
};

Case cut_sequence(const WholeSequence& whole, const Cut& cut) {
    const std::size_t logits_every = whole.large ? 16 : 1;
    Case c;
    c.op = c.what = "program";
    c.programs = {whole.program};
    c.positions = std::int64_t(whole.tokens.size()) + cut.rejected;
    std::size_t at = 0;
    for (std::size_t piece = 0; at < whole.tokens.size(); ++piece) {
        Step step;
        // Where rows were rejected, the backend's own record says where the sequence goes on.
        const bool relative = cut.rejected > 0 && at > 0;
        if (at == 0) step.resets[0] = {};
        step.joined = cut.joined && piece % 2 == 1;
        const std::size_t count =
            std::min<std::size_t>(cut.pieces[piece % cut.pieces.size()], whole.tokens.size() - at);
        for (std::size_t i = 0; i < count; ++i, ++at)
            step.rows.push_back({0, std::int64_t(relative ? i : at), whole.tokens[at],
                                 (at % logits_every == 0 ? DSV4_ROW_LOGITS : 0u) | (relative ? DSV4_ROW_RELATIVE : 0u),
                                 DSV4_INPUT_GIVEN});
        c.steps.push_back(std::move(step));
        if (!cut.rejected || at >= whole.tokens.size()) continue;
        // They write wrong state at positions that come again, or would commit them.
        Step wrong;
        wrong.compared = false;
        for (std::uint32_t i = 0; i < cut.rejected; ++i)
            wrong.rows.push_back({0, std::int64_t(i), whole.tokens[(at * 7 + i) % whole.tokens.size()],
                                  DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE | cut.flags, DSV4_INPUT_GIVEN});
        c.steps.push_back(std::move(wrong));
    }
    return c;
}

// Each output over the compared steps, joined: rows in sequence order, however they were cut.
std::map<std::string, Bytes> joined(const Case& c, const CaseOutput& out) {
    std::map<std::string, Bytes> all;
    for (std::size_t s = 0; s < c.steps.size(); ++s)
        if (c.steps[s].compared)
            for (const auto& [name, bytes] : out.steps[s].values)
                all[name].insert(all[name].end(), bytes.begin(), bytes.end());
    return all;
}

} // namespace

void check_cuts(Bench& bench, const model::Geometry& geometry, const lower::WeightTable& weights,
                dsv4_precision precision, std::uint64_t seed, Lines& lines) {
    const WholeSequence whole = whole_sequence(geometry, weights, precision, seed);
    std::map<std::string, Bytes> single;
    auto run = [&](const std::string& line, const std::string& what, const Cut& cut) {
        try {
            lines.of(line).cases += 1;
            const Case c = cut_sequence(whole, cut);
            const CaseOutput out = bench.run(c);
            lines.of(line).seconds += out.seconds;
            const auto outputs = joined(c, out);
            if (single.empty()) single = outputs;
            for (const auto& [name, bytes] : single)
                if (outputs.at(name) != bytes) {
                    lines.fail(line, what + ": '" + name + "' has other bits than in one pass");
                    break;
                }
        } catch (...) {
            lines.fail(line, what + ": " + current_error().message);
        }
    };
    const auto length = std::uint32_t(whole.tokens.size());
    run("program, cut", "one pass", {{length}});
    if (single.empty()) return;
    // Small pieces all along, or, of a large model, around position 127: behind a first piece that ends before it.
    auto small = [&](std::uint32_t rows) {
        if (!whole.large) return std::vector<std::uint32_t>{rows};
        std::vector<std::uint32_t> pieces{120};
        pieces.insert(pieces.end(), (length - 120) / rows, rows);
        return pieces;
    };
    run("program, cut", "token by token", {small(1)});
    for (const auto& pieces : {small(3), {7, 64}, {127, 2, 1}})
        run("program, cut", "pieces from " + std::to_string(pieces[0]) + " rows", {pieces});
    run("program, two works a ticket", "pieces of 64, 1, 3, 4 rows", {{64, 1, 3, 4}, 0, 0, true});
    for (std::uint32_t rejected : {1u, 3u, 5u, 8u})
        run("program, rejected rows", std::to_string(rejected) + " rows that no verify accepts",
            {{64, 1, 2}, rejected, DSV4_ROW_VERIFY});
    run("program, draft rows", "5 draft rows between the pieces", {{64, 1, 2}, 5, DSV4_ROW_DRAFT});
}

void check_transfer(Bench& bench, const model::Geometry& geometry, const lower::WeightTable& weights,
                    dsv4_precision precision, std::uint64_t seed, Lines& lines) {
    const std::string name = "state, export and import";
    const auto& backend = bench.session().backend();
    if (!DSV4_HAS(backend.table, state_export) || !DSV4_HAS(backend.table, state_import)) {
        lines.of(name).outcome = Outcome::skipped;
        lines.of(name).detail = "the backend offers no transfers";
        return;
    }
    lower::Options options;
    options.precision = precision;
    options.sample = false;
    options.logits_output = true;
    const program::Program program = lower::lower(geometry, weights, options);
    constexpr std::int64_t half = 132, total = 150; // beside window edges of 4, 64 and 128
    Random random(seed_of("transfer", seed));
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < total; ++i)
        tokens.push_back(std::int32_t(random.below(std::uint32_t(geometry.vocab_size))));
    try {
        lines.of(name).cases = 1;
        const TransferResult r = run_transfer(bench.session(), program, tokens, half);
        if (r.straight != r.imported) lines.fail(name, "logits after the import differ from those without it");
        if (!r.refuses_other_checkpoint) lines.fail(name, "a blob of another checkpoint was accepted");
        if (!r.refuses_damage) lines.fail(name, "a blob with a damaged header was accepted");
    } catch (...) {
        lines.fail(name, current_error().message);
    }
}

} // namespace dsv4::conformance
