// Tries a plugin out: loads it and makes one instance of each kind, in a process of its own, so that a plugin that
// crashes, hangs or exits gives a report and the caller lives on.
#pragma once

#include "core/plan/serving_plan.hpp"
#include "core/plugin/candidate.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace dsv4::plugin {

enum class StepResult { passed, failed, skipped };
std::string_view to_string(StepResult r) noexcept;

struct CheckStep {
    std::string name; // "file", "load", "create backend", "devices", "destroy backend"
    StepResult result = StepResult::passed;
    std::string detail; // the error, why it was skipped, or what was seen
    std::string fix;
};

struct CheckReport {
    Candidate candidate;
    std::vector<CheckStep> steps; // in order; the last one failed when any did
    bool passed() const noexcept;
};

struct CheckOptions {
    plan::Options options;            // for create; the manifest's defaults fill the rest
    std::chrono::seconds timeout{60}; // of the child process as a whole
};

// Forks, so call it from a process that has no other threads (a command line program before it starts any).
CheckReport check(const Candidate& candidate, const CheckOptions& options = {});

} // namespace dsv4::plugin
