// Runs cases through a backend: weights once, then for each case fresh state, poisoned outputs and guard bytes.
#pragma once

#include "core/conformance/cases.hpp"
#include "core/runtime/backend_session.hpp"

#include <cstdint>
#include <initializer_list>
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

// A session of one backend with the weights of one geometry.
class Bench {
  public:
    // Announces the weights; deliver_random brings them.
    Bench(runtime::BackendHandle backend, const std::vector<lower::TableEntry>& entries);

    // Throws Failure with a sentence that says what the backend did wrong.
    CaseOutput run(const Case& check);

    runtime::BackendSession& session() noexcept { return session_; }

  private:
    // Steps [begin, end) as the works of one ticket.
    std::vector<StepOutput> run_ticket(const Case& check, std::size_t begin, std::size_t end,
                                       const std::vector<dsv4_executable*>& executables,
                                       const std::vector<std::vector<dsv4_page_table>>& tables);
    runtime::BackendSession session_;
};

// Makes each weight once and delivers it to all benches. The same seed gives the same model.
void deliver_random(std::initializer_list<Bench*> benches, const std::vector<lower::TableEntry>& entries,
                    std::int64_t experts, std::uint64_t seed);

} // namespace dsv4::conformance
