// The table and the JSON of a backend check.
#include "core/conformance/check.hpp"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dsv4::conformance {
namespace {

const char* name_of(Outcome o) {
    switch (o) {
    case Outcome::passed: return "ok";
    case Outcome::failed: return "FAILED";
    case Outcome::skipped: return "skipped";
    }
    return "?";
}

} // namespace

std::string report_text(const Report& report) {
    std::string s = fmt::format("{:8} {:6} {:28} {:8} {:>5} {:>9} {:>9} {:>8} {:>9}  {}\n", "geometry", "prec.", "op",
                                "outcome", "cases", "median", "p90", "unequal", "seconds", "kernel");
    std::size_t failed = 0;
    for (const Line& l : report.lines) {
        s += fmt::format("{:8} {:6} {:28} {:8} {:5} {:9.2g} {:9.2g} {:8.2g} {:9.3f}  {}\n", l.geometry, l.precision,
                         l.op, name_of(l.outcome), l.cases, l.median, l.p90, l.unequal, l.seconds, l.kernels);
        if (!l.detail.empty()) s += "         " + l.detail + "\n";
        failed += l.outcome == Outcome::failed;
    }
    for (const auto& u : report.unverified) s += "not verified: " + u + "\n";
    s += fmt::format("{} lines, {} failed\n", report.lines.size(), failed);
    return s;
}

std::string report_json(const Report& report) {
    nlohmann::ordered_json lines = nlohmann::ordered_json::array();
    auto finite = [](double v) {
        return nlohmann::ordered_json(std::isfinite(v) ? nlohmann::ordered_json(v) : nullptr);
    };
    for (const Line& l : report.lines)
        lines.push_back({{"geometry", l.geometry},
                         {"precision", l.precision},
                         {"op", l.op},
                         {"outcome", name_of(l.outcome)},
                         {"cases", l.cases},
                         {"kernels", l.kernels},
                         {"median", finite(l.median)},
                         {"p90", finite(l.p90)},
                         {"unequal", l.unequal},
                         {"seconds", l.seconds},
                         {"detail", l.detail}});
    return nlohmann::ordered_json{{"passed", report.passed()}, {"lines", lines}, {"unverified", report.unverified}}
               .dump(2) +
           "\n";
}

} // namespace dsv4::conformance
