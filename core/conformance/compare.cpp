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

// The rows of one output so far.
struct Tally {
    std::vector<double> rows; // rms(difference) / rms(reference)
    double largest = 0;
    std::size_t elements = 0, unequal = 0;
    std::size_t worst_step = 0; // where the largest row difference was

    Distance distance() const {
        return {quantile(rows, 0.5), quantile(rows, 0.9), largest, elements ? double(unequal) / double(elements) : 0};
    }
};

void add_integers(Tally& tally, std::size_t width, const Bytes& got, const Bytes& wanted, bool as_sets) {
    for (std::size_t r = 0; r < wanted.size() / (width * 4); ++r) {
        std::vector<std::int32_t> a(width), b(width);
        for (std::size_t i = 0; i < width; ++i) {
            a[i] = integer_at(got, r * width + i);
            b[i] = integer_at(wanted, r * width + i);
        }
        if (as_sets) {
            std::sort(a.begin(), a.end());
            std::sort(b.begin(), b.end());
            std::vector<std::int32_t> only_b;
            std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only_b));
            tally.unequal += only_b.size();
        } else
            for (std::size_t i = 0; i < width; ++i) tally.unequal += a[i] != b[i];
        tally.elements += width;
    }
}

void add_floats(Tally& tally, std::size_t step, dsv4_element element, std::size_t width, const Bytes& got,
                const Bytes& wanted) {
    constexpr double tiny = std::numeric_limits<float>::min();
    for (std::size_t r = 0; r < wanted.size() / (width * program::element_bytes(element)); ++r) {
        double difference = 0, reference = 0, largest = 0, top = 0;
        bool broken = false;
        for (std::size_t i = r * width; i < (r + 1) * width && !broken; ++i) {
            const double a = element_at(got, element, i), b = element_at(wanted, element, i);
            const bool both_finite = std::isfinite(a) && std::isfinite(b);
            broken = !both_finite && !(a == b); // equal infinities are equal
            if (!both_finite) continue;
            difference += (a - b) * (a - b);
            reference += b * b;
            largest = std::max(largest, std::fabs(a - b));
            top = std::max(top, std::fabs(b));
        }
        const double row = broken ? INFINITY : std::sqrt(difference / std::max(reference, tiny));
        if (tally.rows.empty() || row > *std::max_element(tally.rows.begin(), tally.rows.end()))
            tally.worst_step = step;
        tally.rows.push_back(row);
        tally.largest = std::max(tally.largest, broken ? INFINITY : largest / std::max(top, tiny));
    }
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

} // namespace

Comparison compare(const Case& check, const CaseOutput& got, const CaseOutput& wanted) {
    std::map<std::string, Tally> tallies;
    std::map<std::string, bool> integers;
    Comparison result;
    for (std::size_t s = 0; s < check.steps.size(); ++s) {
        if (!check.steps[s].compared) continue;
        const program::Program& program = check.programs[check.steps[s].program];
        for (const auto& [name, bytes] : wanted.steps[s].values) {
            const program::Value& value = program.values[program.find_value(name)];
            std::size_t width = 1;
            for (std::size_t i = 1; i < value.dims.size(); ++i) width *= std::size_t(value.dims[i]);
            integers[name] = value.element == DSV4_I32;
            if (integers[name])
                add_integers(tallies[name], width, got.steps[s].values.at(name), bytes,
                             tolerance_of(check, name).as_sets);
            else
                add_floats(tallies[name], s, value.element, width, got.steps[s].values.at(name), bytes);
        }
        if (!got.steps[s].tokens.empty() || !wanted.steps[s].tokens.empty()) {
            add_tokens(tallies["tokens"], got.steps[s].tokens, wanted.steps[s].tokens);
            integers["tokens"] = true;
        }
    }
    for (const auto& [name, tally] : tallies) {
        const Distance d = tally.distance();
        result.worst.median = std::max(result.worst.median, d.median);
        result.worst.p90 = std::max(result.worst.p90, d.p90);
        result.worst.largest = std::max(result.worst.largest, d.largest);
        result.worst.unequal = std::max(result.worst.unequal, d.unequal);
        const std::string why = verdict(d, tolerance_of(check, name), integers[name]);
        if (!why.empty() && result.failure.empty())
            result.failure = name + ": " + why + " (worst in step " + std::to_string(tally.worst_step) + ")";
    }
    return result;
}

std::string first_difference(const CaseOutput& a, const CaseOutput& b) {
    for (std::size_t s = 0; s < std::min(a.steps.size(), b.steps.size()); ++s)
        for (const auto& [name, bytes] : a.steps[s].values)
            if (auto it = b.steps[s].values.find(name); it != b.steps[s].values.end() && it->second != bytes)
                return "step " + std::to_string(s) + ", output '" + name + "'";
    return "";
}

} // namespace dsv4::conformance
