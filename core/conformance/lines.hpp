// The report under construction: outcomes collected by the line that they belong to.
#pragma once

#include "core/conformance/check.hpp"

#include <map>
#include <string>

namespace dsv4::conformance {

// Lines of one geometry and precision, in order of their first mention.
class Lines {
  public:
    Lines(Report& report, std::string geometry, std::string precision)
        : report_(report), geometry_(std::move(geometry)), precision_(std::move(precision)) {}

    // Valid until the next call.
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

    // Keeps the first reason.
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

} // namespace dsv4::conformance
