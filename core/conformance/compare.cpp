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

void merge(Distance& worst, const Distance& d) {
    worst.median = std::max(worst.median, d.median);
    worst.p90 = std::max(worst.p90, d.p90);
    worst.largest = std::max(worst.largest, d.largest);
    worst.unequal = std::max(worst.unequal, d.unequal);
    worst.rows += d.rows;
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

} // namespace

Distance distance(const program::Value& value, const Bytes& got, const Bytes& wanted, bool as_sets) {
    Distance d;
    std::size_t width = 1;
    for (std::size_t i = 1; i < value.dims.size(); ++i) width *= std::size_t(value.dims[i]);
    const std::size_t element_bytes = program::element_bytes(value.element);
    const std::size_t rows = wanted.size() / (width * element_bytes);
    d.rows = rows;
    if (got.size() != wanted.size()) return {INFINITY, INFINITY, INFINITY, 1, rows};
    if (value.element == DSV4_I32) {
        std::size_t unequal = 0;
        for (std::size_t r = 0; r < rows; ++r) {
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
                unequal += only_b.size();
            } else
                for (std::size_t i = 0; i < width; ++i) unequal += a[i] != b[i];
        }
        d.unequal = rows ? double(unequal) / double(rows * width) : 0;
        return d;
    }
    std::vector<double> by_row;
    for (std::size_t r = 0; r < rows; ++r) {
        double difference = 0, reference = 0, largest = 0, top = 0;
        bool broken = false;
        for (std::size_t i = r * width; i < (r + 1) * width; ++i) {
            const double a = element_at(got, value.element, i), b = element_at(wanted, value.element, i);
            if (a == b) { // equal infinities too
                reference += std::isfinite(b) ? b * b : 0;
                if (std::isfinite(b)) top = std::max(top, std::fabs(b));
                continue;
            }
            if (!std::isfinite(a) || !std::isfinite(b)) {
                broken = true;
                break;
            }
            difference += (a - b) * (a - b);
            reference += b * b;
            largest = std::max(largest, std::fabs(a - b));
            top = std::max(top, std::fabs(b));
        }
        const double tiny = std::numeric_limits<float>::min();
        by_row.push_back(broken ? INFINITY : std::sqrt(difference / std::max(reference, tiny)));
        d.largest = std::max(d.largest, broken ? INFINITY : largest / std::max(top, tiny));
    }
    d.median = quantile(by_row, 0.5);
    d.p90 = quantile(by_row, 0.9);
    return d;
}

Comparison compare(const Case& check, const CaseOutput& got, const CaseOutput& wanted) {
    Comparison result;
    auto fail = [&](std::size_t step, const std::string& output, const std::string& why) {
        if (result.failure.empty()) result.failure = "step " + std::to_string(step) + ", " + output + ": " + why;
    };
    for (std::size_t s = 0; s < check.steps.size(); ++s) {
        if (!check.steps[s].compared) continue;
        const program::Program& program = check.programs[check.steps[s].program];
        for (const auto& [name, bytes] : wanted.steps[s].values) {
            const program::Value& value = program.values[program.find_value(name)];
            const Tolerance& t = tolerance_of(check, name);
            const Distance d = distance(value, got.steps[s].values.at(name), bytes, t.as_sets);
            merge(result.worst, d);
            if (const std::string why = verdict(d, t, value.element == DSV4_I32); !why.empty()) fail(s, name, why);
        }
        const auto& a = got.steps[s].tokens;
        const auto& b = wanted.steps[s].tokens;
        if (a.empty() && b.empty()) continue;
        std::size_t unequal = a.size() == b.size() ? 0 : std::max(a.size(), b.size());
        if (a.size() == b.size())
            for (std::size_t i = 0; i < a.size(); ++i)
                unequal += a[i].result.token != b[i].result.token || a[i].result.slot != b[i].result.slot ||
                           a[i].result.position != b[i].result.position || a[i].result.flags != b[i].result.flags ||
                           a[i].result.accepted != b[i].result.accepted || a[i].top.size() != b[i].top.size();
        Distance d;
        d.unequal = double(unequal) / double(std::max(a.size(), b.size()));
        merge(result.worst, d);
        if (const std::string why = verdict(d, tolerance_of(check, "tokens"), true); !why.empty())
            fail(s, "emitted tokens", why);
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
