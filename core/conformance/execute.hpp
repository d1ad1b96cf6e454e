// Runs cases through a backend: weights once, then for each case fresh state, poisoned outputs and guard bytes.
#pragma once

#include "core/conformance/cases.hpp"
#include "core/runtime/backend_session.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dsv4::conformance {

// What one step gave.
struct StepOutput {
    std::map<std::string, Bytes> values; // by output name
    std::vector<runtime::TicketResult::Token> tokens;
};

struct CaseOutput {
    std::vector<StepOutput> steps;
    double seconds = 0;
    std::string kernels; // of the case's op, comma separated, where the backend says
};

// A session with the random weights of one geometry.
class Bench {
  public:
    // `seed` fixes the weights; equal seeds on two backends mean equal models.
    Bench(runtime::BackendHandle backend, const lower::WeightTable& weights, const std::vector<lower::TableEntry>& more,
          std::int64_t experts, std::uint64_t seed);

    // Throws Failure with a sentence that says what the backend did wrong.
    CaseOutput run(const Case& check);

    runtime::BackendSession& session() noexcept { return session_; }

  private:
    StepOutput run_step(const Case& check, const Step& step, dsv4_executable* executable,
                        std::vector<std::vector<dsv4_page_table>>& tables);
    runtime::BackendSession session_;
};

} // namespace dsv4::conformance
