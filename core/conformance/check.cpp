// Orders the cases, runs them on both backends and judges; then the checks that need no reference.
#include "core/conformance/check.hpp"

#include "core/conformance/cases.hpp"
#include "core/conformance/compare.hpp"
#include "core/conformance/geometries.hpp"
#include "core/conformance/transfer.hpp"
#include "core/lower/deepseek_v4.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace dsv4::conformance {
namespace {

const char* precision_name(dsv4_precision p) { return p == DSV4_SCORE ? "score" : "serve"; }

// Adds a case's outcome to the line of its op.
class Lines {
  public:
    Lines(Report& report, std::string geometry, std::string precision)
        : report_(report), geometry_(std::move(geometry)), precision_(std::move(precision)) {}

    Line& of(const std::string& op) {
        auto [it, fresh] = index_.emplace(op, report_.lines.size());
        if (fresh) {
            report_.lines.emplace_back();
            report_.lines.back().geometry = geometry_;
            report_.lines.back().precision = precision_;
            report_.lines.back().op = op;
        }
        return report_.lines[it->second];
    }

    void fail(const std::string& op, const std::string& why) {
        Line& line = of(op);
        if (line.outcome != Outcome::failed) line.detail = why;
        line.outcome = Outcome::failed;
    }

  private:
    Report& report_;
    std::string geometry_, precision_;
    std::map<std::string, std::size_t> index_;
};

// One sequence through a whole Program of three layers, as a case that can be cut in any way.
struct WholeSequence {
    program::Program program;
    std::vector<std::int32_t> tokens;
};

Case cut_sequence(const WholeSequence& whole, const std::vector<std::uint32_t>& pieces, std::uint32_t rejected) {
    Case c;
    c.op = "program";
    c.programs = {whole.program};
    c.positions = std::int64_t(whole.tokens.size()) + rejected;
    std::size_t at = 0;
    for (std::size_t piece = 0; at < whole.tokens.size(); ++piece) {
        Step step;
        if (at == 0) step.resets[0] = {};
        const std::size_t count = std::min<std::size_t>(pieces[piece % pieces.size()], whole.tokens.size() - at);
        for (std::size_t i = 0; i < count; ++i, ++at)
            step.rows.push_back({0, std::int64_t(at), whole.tokens[at], DSV4_ROW_LOGITS, DSV4_INPUT_GIVEN});
        c.steps.push_back(std::move(step));
        if (!rejected || at >= whole.tokens.size()) continue;
        // Rows that no verify accepts: they write wrong state at positions that come again.
        Step wrong;
        wrong.compared = false;
        for (std::uint32_t i = 0; i < rejected; ++i)
            wrong.rows.push_back({0, std::int64_t(at + i), whole.tokens[(at * 7 + i) % whole.tokens.size()],
                                  DSV4_ROW_LOGITS | DSV4_ROW_VERIFY, DSV4_INPUT_GIVEN});
        c.steps.push_back(std::move(wrong));
    }
    return c;
}

// The logits of the compared steps, joined.
Bytes joined_logits(const Case& c, const CaseOutput& out) {
    Bytes all;
    for (std::size_t s = 0; s < c.steps.size(); ++s)
        if (c.steps[s].compared) {
            const Bytes& b = out.steps[s].values.at("logits");
            all.insert(all.end(), b.begin(), b.end());
        }
    return all;
}

void self_checks(Bench& bench, const model::Geometry& geometry, const lower::WeightTable& weights,
                 dsv4_precision precision, std::uint64_t seed, Lines& lines) {
    lower::Options options;
    options.precision = precision;
    options.sample = false;
    options.logits_output = true;
    WholeSequence whole{lower::lower(geometry, weights, options), {}};
    Random random(seed_of("whole", seed));
    for (int i = 0; i < 150; ++i)
        whole.tokens.push_back(std::int32_t(random.below(std::uint32_t(geometry.vocab_size))));

    const std::string cut_name = "program, cut", reject_name = "program, rejected rows";
    Bytes single;
    auto compare_cut = [&](const std::string& line, const std::vector<std::uint32_t>& pieces, std::uint32_t rejected) {
        const Case c = cut_sequence(whole, pieces, rejected);
        const CaseOutput out = bench.run(c);
        const Bytes logits = joined_logits(c, out);
        lines.of(line).cases += 1;
        lines.of(line).seconds += out.seconds;
        if (single.empty())
            single = logits;
        else if (logits != single)
            lines.fail(line, "pieces of " + std::to_string(pieces[0]) + (rejected ? " with rejected rows" : "") +
                                 " give other bits than one pass");
    };
    try {
        compare_cut(cut_name, {150}, 0);
        for (const auto& pieces : {std::vector<std::uint32_t>{1}, {3}, {7, 64}, {127, 2, 1}})
            compare_cut(cut_name, pieces, 0);
        for (std::uint32_t rejected : {1u, 3u, 5u, 8u}) compare_cut(reject_name, {64, 1, 2}, rejected);
    } catch (...) {
        lines.fail(single.empty() ? cut_name : reject_name, current_error().message);
    }
}

// Export after half of a sequence, import into other pages of a fresh state, go on: the same bits.
void transfer_check(Bench& bench, const model::Geometry& geometry, const lower::WeightTable& weights,
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

} // namespace

bool Report::passed() const {
    return !lines.empty() &&
           std::none_of(lines.begin(), lines.end(), [](const Line& l) { return l.outcome == Outcome::failed; });
}

Report check_backend(const runtime::BackendHandle& checked, const runtime::BackendHandle& reference,
                     const std::vector<std::string>& claimed_ops, const CheckOptions& options) {
    Report report;
    std::set<std::string> ran;
    for (const std::string& name : options.geometries) {
        const model::Geometry g = geometry(name);
        const lower::WeightTable weights(model::weights(g));
        const auto drafts = draft_entries(g);
        try {
            Bench bench(checked, weights, drafts, g.n_routed_experts, options.seed);
            Bench wanted(reference, weights, drafts, g.n_routed_experts, options.seed);
            for (const dsv4_precision precision : {DSV4_SCORE, DSV4_SERVE}) {
                Lines lines(report, name, precision_name(precision));
                const Subject subject{g, weights, precision, options.seed, options.row_counts};
                std::vector<Case> cases;
                for (auto* make : {row_cases, attention_cases, sampling_cases, layer_cases}) {
                    auto more = make(subject);
                    std::move(more.begin(), more.end(), std::back_inserter(cases));
                }
                for (const Case& c : cases) {
                    if (options.progress)
                        options.progress(name + ", " + precision_name(precision) + ", " + c.op + ", " + c.what);
                    Line& line = lines.of(c.op);
                    ++line.cases;
                    Status supported;
                    for (const auto& p : c.programs)
                        if (supported.ok()) supported = checked.supports(p);
                    if (!supported.ok()) {
                        lines.fail(c.op, c.what + ": not supported: " + supported.error().message);
                        continue;
                    }
                    try {
                        const CaseOutput expected = wanted.run(c);
                        const CaseOutput got = bench.run(c);
                        const Comparison comparison = compare(c, got, expected);
                        line.median = std::max(line.median, comparison.worst.median);
                        line.p90 = std::max(line.p90, comparison.worst.p90);
                        line.unequal = std::max(line.unequal, comparison.worst.unequal);
                        line.seconds += got.seconds;
                        if (line.kernels.empty()) line.kernels = got.kernels;
                        for (const auto& p : c.programs)
                            for (const auto& op : p.ops) ran.insert(op.label());
                        if (!comparison.failure.empty()) lines.fail(c.op, c.what + ": " + comparison.failure);
                    } catch (...) {
                        lines.fail(c.op, c.what + ": " + current_error().message);
                    }
                }
                if (options.progress) options.progress(name + ", " + precision_name(precision) + ", whole Programs");
                self_checks(bench, g, weights, precision, options.seed, lines);
                transfer_check(bench, g, weights, precision, options.seed, lines);
            }
        } catch (...) {
            report.lines.push_back({name, "", "geometry", Outcome::failed, "", 0, 0, 0, 0, 0, current_error().message});
        }
    }
    for (const std::string& op : claimed_ops)
        if (!ran.count(op))
            report.lines.push_back(
                {"", "", op, Outcome::failed, "", 0, 0, 0, 0, 0, "the manifest claims this op and no case ran it"});
    for (std::string_view name : geometry_names())
        if (std::find(options.geometries.begin(), options.geometries.end(), name) == options.geometries.end())
            report.unverified.push_back("geometry " + std::string(name) + ": not asked for");
    return report;
}

} // namespace dsv4::conformance
