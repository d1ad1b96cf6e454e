// NaN-safe comparison of outputs.
#include "core/conformance/compare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace dsv4::conformance {
namespace {

float element_at(const Bytes& b, dsv4_element e, std::size_t i) {
    if (e == DSV4_BF16) {
        std::uint16_t h = 0;
        std::memcpy(&h, b.data() + 2 * i, 2);
        return std::bit_cast<float>(std::uint32_t(h) << 16);
    }
    float v = 0;
    std::memcpy(&v, b.data() + 4 * i, 4);
    return v;
}

std::int32_t integer_at(const Bytes& b, std::size_t i) {
    std::int32_t v = 0;
    std::memcpy(&v, b.data() + 4 * i, 4);
    return v;
}

double quantile(std::vector<double> v, double q) {
    if (v.empty()) return 0;
    const auto at = std::size_t(q * double(v.size() - 1) + 0.5);
    std::nth_element(v.begin(), v.begin() + std::ptrdiff_t(at), v.end());
    return v[at];
}

const Tolerance& tolerance_of(const Case& check, const std::string& output) {
    auto it = check.tolerances.find(output);
    if (it == check.tolerances.end()) it = check.tolerances.find("");
    if (it == check.tolerances.end())
        throw Failure(Code::internal, "case " + check.op + " has no tolerance for output '" + output + "'");
    return it->second;
}

std::string verdict(const Distance& d, const Tolerance& t, bool integers) {
    if (integers)
        return !(d.unequal <= 1 - t.equal + 1e-9) ? fmt::format("{:.1f} % of the elements differ, {:.1f} % allowed",
                                                                100 * d.unequal, 100 * (1 - t.equal))
                                                  : "";
    if (!(d.median <= t.median))
        return fmt::format("the median row differs by {:.2g} (relative rms), {:.2g} allowed", d.median, t.median);
    if (!(d.p90 <= t.p90))
        return fmt::format("the 90th percentile of the rows differs by {:.2g}, {:.2g} allowed", d.p90, t.p90);
    if (t.largest > 0 && !(d.largest <= t.largest))
        return fmt::format("an element differs by {:.2g} of its row's maximum, {:.2g} allowed", d.largest, t.largest);
    return "";
}

// The kinds of rows that row `i` of a step belongs to.
std::vector<std::string> edges_of(const Case& check, const std::vector<Row>& rows, std::size_t i) {
    std::vector<std::string> edges;
    if (!check.slot_names.empty()) edges.push_back("rows with " + check.slot_names[std::size_t(rows[i].slot)]);
    if (i == 0) edges.push_back("the first row of a batch");
    if (i + 1 == rows.size()) edges.push_back("the last row of a batch");
    const bool begins = i == 0 || rows[i - 1].slot != rows[i].slot;
    const bool ends = i + 1 == rows.size() || rows[i + 1].slot != rows[i].slot;
    if (begins && ends) edges.push_back("rows that are alone in their slot");
    if (rows[i].flags & DSV4_ROW_RELATIVE) return edges; // the position is the backend's to know
    if (rows[i].position == 0) edges.push_back("rows at position 0");
    if (rows[i].position % 4 == 3) edges.push_back("rows that end a window of 4");
    if (rows[i].position % 128 == 127) edges.push_back("rows that end a window of 128");
    return edges;
}

// The rows of one output so far.
struct Tally {
    std::vector<double> rows; // floats: rms(difference) / rms(reference); integers: share of unequal elements
    std::map<std::string, std::vector<double>> edges;
    double largest = 0;
    std::size_t elements = 0, unequal = 0;
    std::size_t broken = 0;     // rows that are not finite where the reference is, or the reverse
    std::size_t worst_step = 0; // where the largest row difference was
    double worst_row = -1;

    void add(std::size_t step, double row, const std::vector<std::string>& row_edges) {
        if (row > worst_row) worst_row = row, worst_step = step;
        rows.push_back(row);
        for (const auto& edge : row_edges) edges[edge].push_back(row);
    }
    Distance distance() const {
        return {quantile(rows, 0.5), quantile(rows, 0.9), largest, elements ? double(unequal) / double(elements) : 0};
    }
};

std::size_t unequal_in(const std::int32_t* got, const std::int32_t* wanted, std::size_t width, bool as_sets) {
    std::vector<std::int32_t> a(got, got + width), b(wanted, wanted + width);
    if (!as_sets) {
        std::size_t unequal = 0;
        for (std::size_t i = 0; i < width; ++i) unequal += a[i] != b[i];
        return unequal;
    }
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::vector<std::int32_t> only_b;
    std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only_b));
    return only_b.size();
}

double float_row(Tally& tally, dsv4_element element, std::size_t begin, std::size_t width, const Bytes& got,
                 const Bytes& wanted) {
    constexpr double tiny = std::numeric_limits<float>::min();
    double difference = 0, reference = 0, largest = 0, top = 0;
    for (std::size_t i = begin; i < begin + width; ++i) {
        const double a = element_at(got, element, i), b = element_at(wanted, element, i);
        if (!std::isfinite(a) || !std::isfinite(b)) {
            if (a == b) continue; // equal infinities
            ++tally.broken;
            tally.largest = INFINITY;
            return INFINITY;
        }
        difference += (a - b) * (a - b);
        reference += b * b;
        largest = std::max(largest, std::fabs(a - b));
        top = std::max(top, std::fabs(b));
    }
    tally.largest = std::max(tally.largest, largest / std::max(top, tiny));
    return std::sqrt(difference / std::max(reference, tiny));
}

void add_tokens(Tally& tally, const std::vector<runtime::TicketResult::Token>& a,
                const std::vector<runtime::TicketResult::Token>& b) {
    tally.elements += std::max(a.size(), b.size());
    if (a.size() != b.size()) {
        tally.unequal += std::max(a.size(), b.size());
        return;
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        const dsv4_result &x = a[i].result, &y = b[i].result;
        tally.unequal += x.token != y.token || x.slot != y.slot || x.position != y.position || x.flags != y.flags ||
                         x.accepted != y.accepted || x.row != y.row || a[i].top.size() != b[i].top.size();
    }
}

// Adds the rows that one step gave for one output.
void add_rows(Tally& tally, const Case& check, const Step& step, std::size_t number, const program::Value& value,
              const Bytes& got, const Bytes& wanted, bool as_sets) {
    std::size_t width = 1;
    for (std::size_t i = 1; i < value.dims.size(); ++i) width *= std::size_t(value.dims[i]);
    std::size_t r = 0;
    for (std::size_t i = 0; i < step.rows.size(); ++i) {
        if (value.dims[0] == program::logit_rows && !(step.rows[i].flags & DSV4_ROW_LOGITS)) continue;
        if (step.rows[i].idle) {
            ++r;
            continue;
        }
        double distance = 0;
        if (value.element == DSV4_I32) {
            std::vector<std::int32_t> a(width), b(width);
            for (std::size_t k = 0; k < width; ++k) {
                a[k] = integer_at(got, r * width + k);
                b[k] = integer_at(wanted, r * width + k);
            }
            const std::size_t unequal = unequal_in(a.data(), b.data(), width, as_sets);
            tally.unequal += unequal;
            tally.elements += width;
            distance = double(unequal) / double(width);
        } else
            distance = float_row(tally, value.element, r * width, width, got, wanted);
        tally.add(number, distance, edges_of(check, step.rows, i));
        ++r;
    }
}

} // namespace

std::map<std::string, OutputComparison> compare(const Case& check, const CaseOutput& got, const CaseOutput& wanted) {
    std::map<std::string, Tally> tallies;
    std::map<std::string, bool> integers;
    for (std::size_t s = 0; s < check.steps.size(); ++s) {
        if (!check.steps[s].compared) continue;
        const program::Program& program = check.programs[check.steps[s].program];
        for (const auto& [name, bytes] : wanted.steps[s].values) {
            const program::Value& value = program.values[program.find_value(name)];
            integers[name] = value.element == DSV4_I32;
            add_rows(tallies[name], check, check.steps[s], s, value, got.steps[s].values.at(name), bytes,
                     tolerance_of(check, name).as_sets);
        }
        if (!got.steps[s].tokens.empty() || !wanted.steps[s].tokens.empty()) {
            add_tokens(tallies["tokens"], got.steps[s].tokens, wanted.steps[s].tokens);
            integers["tokens"] = true;
        }
    }
    std::map<std::string, OutputComparison> results;
    for (auto& [name, tally] : tallies) {
        OutputComparison& result = results[name];
        const Tolerance& tolerance = tolerance_of(check, name);
        result.distance = tally.distance();
        std::string why = verdict(result.distance, tolerance, integers[name]);
        if (tally.broken > 0)
            why = fmt::format("{} rows are NaN or infinite where the reference is not, or the reverse", tally.broken);
        if (!why.empty()) result.failure = fmt::format("{}: {} (worst in step {})", name, why, tally.worst_step);
        // A row of integers has no small difference: an edge is off when its rows differ in more than a tenth.
        const double unit = integers[name] ? 0.1 : tolerance.p90;
        for (auto& [edge, rows] : tally.edges)
            for (double row : rows) result.edges[edge].push_back(row == 0 ? 0 : row / unit);
    }
    return results;
}

std::string judge_edge(const std::string& edge, std::vector<double> distances) {
    constexpr std::size_t enough = 3; // fewer rows may all have crossed a rounding tie
    if (distances.size() < enough) return "";
    const double median = quantile(std::move(distances), 0.5);
    if (median <= 1) return "";
    return fmt::format("{}: the median of them differs {:.2g} times as much as the 90th percentile of all rows may",
                       edge, median);
}

} // namespace dsv4::conformance
