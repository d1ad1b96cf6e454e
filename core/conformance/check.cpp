// Orders the cases, runs them on both backends and judges; then the checks that need no reference.
#include "core/conformance/check.hpp"

#include "core/conformance/cases.hpp"
#include "core/conformance/compare.hpp"
#include "core/conformance/geometries.hpp"
#include "core/conformance/lines.hpp"
#include "core/conformance/select_rows.hpp"
#include "core/conformance/whole_program.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>

namespace dsv4::conformance {
namespace {

const char* precision_name(dsv4_precision p) { return p == DSV4_SCORE ? "score" : "serve"; }

// All cases of one geometry and precision, on both backends.
class Judge {
  public:
    Judge(Bench& checked, Bench& reference, Lines& lines) : checked_(checked), reference_(reference), lines_(lines) {}

    void run(const Case& c) {
        ++lines_.of(c.op).cases;
        try {
            for (const auto& p : c.programs) checked_.session().backend().supports(p).value();
        } catch (...) {
            lines_.fail(c.op, c.what + ": not supported: " + current_error().message);
            return;
        }
        try {
            c.row_counts.empty() ? run_whole(c) : run_row_counts(c);
        } catch (...) {
            lines_.fail(c.op, c.what + ": " + current_error().message);
        }
    }

    // Edges of all cases together; call once, at the end.
    void finish() {
        for (const auto& [key, distances] : edges_) {
            const auto& [op, output, edge] = key;
            const std::string why = judge_edge(edge, distances);
            if (!why.empty()) lines_.fail(op, output + ": " + why);
        }
    }

    const std::set<std::string>& ran() const { return ran_; }

  private:
    void run_whole(const Case& c) {
        const CaseOutput wanted = reference_.run(c);
        judge(c, c.what, checked_.run(c), wanted);
    }

    // The reference runs a sample of the rows once; each count is held against the part of the sample that it has.
    void run_row_counts(const Case& c) {
        const std::vector<std::size_t> sample = sample_rows(c.row_counts);
        lines_.of(c.op).cases += c.row_counts.size() - 1;
        const CaseOutput wanted = reference_.run(select_rows(c, sample));
        for (const std::uint32_t n : c.row_counts) {
            std::vector<std::size_t> first(n), kept;
            std::iota(first.begin(), first.end(), std::size_t{0});
            std::copy_if(sample.begin(), sample.end(), std::back_inserter(kept), [&](std::size_t r) { return r < n; });
            const std::string what = c.what + ", " + std::to_string(n) + " rows";
            CaseOutput got;
            try {
                got = checked_.run(select_rows(c, first));
            } catch (...) {
                throw Failure(Code::internal, std::to_string(n) + " rows: " + current_error().message);
            }
            judge(select_rows(c, kept), what, select_outputs(c, got, first, kept),
                  select_outputs(c, wanted, sample, kept));
        }
    }

    void judge(const Case& c, const std::string& what, const CaseOutput& got, const CaseOutput& wanted) {
        for (auto& [output, result] : compare(c, got, wanted)) {
            const auto other = c.lines.find(output);
            const std::string& op = other == c.lines.end() ? c.op : other->second;
            Line& line = lines_.of(op);
            line.cases += other != c.lines.end();
            line.median = std::max(line.median, result.distance.median);
            line.p90 = std::max(line.p90, result.distance.p90);
            line.unequal = std::max(line.unequal, result.distance.unequal);
            if (!result.failure.empty()) lines_.fail(op, what + ": " + result.failure);
            for (const auto& [edge, distances] : result.edges) {
                auto& all = edges_[{op, output, edge}];
                all.insert(all.end(), distances.begin(), distances.end());
            }
        }
        Line& line = lines_.of(c.op);
        line.seconds += got.seconds;
        if (line.kernels.empty()) line.kernels = got.kernels;
        for (const auto& p : c.programs)
            for (const auto& op : p.ops) ran_.insert(op.label());
    }

    Bench& checked_;
    Bench& reference_;
    Lines& lines_;
    std::map<std::tuple<std::string, std::string, std::string>, std::vector<double>> edges_; // op, output, edge
    std::set<std::string> ran_;
};

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
        std::vector<lower::TableEntry> entries = weights.entries();
        const auto drafts = draft_entries(g);
        entries.insert(entries.end(), drafts.begin(), drafts.end());
        try {
            Bench bench(checked, entries), wanted(reference, entries);
            if (options.progress) options.progress(name + ", weights");
            deliver_random({&bench, &wanted}, entries, g.n_routed_experts, options.seed);
            for (const dsv4_precision precision : {DSV4_SCORE, DSV4_SERVE}) {
                Lines lines(report, name, precision_name(precision));
                const Subject subject{g, weights, precision, options.seed, options.row_counts};
                Judge judge(bench, wanted, lines);
                for (auto* make : {row_cases, attention_cases, sampling_cases, layer_cases})
                    for (const Case& c : make(subject)) {
                        if (options.progress)
                            options.progress(name + ", " + precision_name(precision) + ", " + c.op + ", " + c.what);
                        judge.run(c);
                    }
                judge.finish();
                ran.insert(judge.ran().begin(), judge.ran().end());
                if (options.progress) options.progress(name + ", " + precision_name(precision) + ", whole Programs");
                check_cuts(bench, g, weights, precision, options.seed, lines);
                check_transfer(bench, g, weights, precision, options.seed, lines);
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
