// `dsv4 plugins check` of a backend: every op, whole layers and paged state, against a reference backend.
#pragma once

#include "core/runtime/backend_session.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dsv4::conformance {

struct CheckOptions {
    std::vector<std::string> geometries = {"tiny", "golden"};
    std::vector<std::uint32_t> row_counts = {0, 1, 2, 3, 6, 17, 64, 300};
    std::uint64_t seed = 1;
    // Called before each case with its name; for progress.
    std::function<void(const std::string&)> progress;
};

enum class Outcome { passed, failed, skipped };

// One line of the table: an op (or check) in one precision and geometry, over all its cases.
struct Line {
    std::string geometry, precision, op;
    Outcome outcome = Outcome::passed;
    std::string kernels; // as the backend names them
    std::size_t cases = 0;
    double median = 0, p90 = 0, unequal = 0; // worst over the cases
    double seconds = 0;                      // of the checked backend
    std::string detail;                      // first failure, or why it was skipped
};

struct Report {
    std::vector<Line> lines;
    std::vector<std::string> unverified; // geometries and ops that count as not verified, with reasons
    bool passed() const;
};

// `claimed_ops`: "name/version" of the manifest's targets; one that no case ran fails the check.
Report check_backend(const runtime::BackendHandle& checked, const runtime::BackendHandle& reference,
                     const std::vector<std::string>& claimed_ops, const CheckOptions& options);

std::string report_text(const Report& report);
std::string report_json(const Report& report);

} // namespace dsv4::conformance
