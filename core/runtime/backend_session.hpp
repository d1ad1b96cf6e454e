// The host's side of a backend session: RAII and C++ errors over dsv4_backend_table, and the loading of weights.
#pragma once

#include "core/checkpoint/stream.hpp"
#include "core/lower/weight_table.hpp"
#include "dsv4/backend.h"
#include "dsv4/sdk/error.hpp"
#include "dsv4/sdk/program.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace dsv4::runtime {

// A backend instance as the core uses it. Does not own the instance.
struct BackendHandle {
    const dsv4_backend_table* table = nullptr;
    void* self = nullptr;

    // Refuses, naming them, when functions that are not optional are missing.
    void require_complete() const;
    std::vector<dsv4_device_info> devices() const;
    // Ok, or why the Program cannot run there.
    Status supports(const program::Program& program) const;
    std::vector<dsv4_state_layout> state_layouts(const program::Program& program) const;
};

// Results of one ticket, copied out of the backend.
struct TicketResult {
    struct Token {
        dsv4_result result{};
        std::vector<dsv4_top_logprob> top;
    };
    struct RowError {
        std::int32_t slot = 0, row = 0;
        std::string op, message;
    };
    std::vector<Token> tokens;
    std::vector<RowError> errors;
    std::uint64_t device_us = 0;
};

// Errors are Failure exceptions. Threads as in dsv4/backend.h.
class BackendSession {
  public:
    BackendSession(BackendHandle backend, const dsv4_session_config& config);
    ~BackendSession();
    BackendSession(const BackendSession&) = delete;
    BackendSession& operator=(const BackendSession&) = delete;

    const BackendHandle& backend() const noexcept { return backend_; }
    dsv4_session* raw() const noexcept { return session_; }

    // Announces the table and streams the checkpoint's weights into the backend. `progress` as in StreamOptions.
    void load(const checkpoint::Checkpoint& checkpoint, const lower::WeightTable& table,
              const std::function<bool(const checkpoint::Progress&)>& progress = {});
    // Announces without a checkpoint; for tests that deliver parts themselves.
    void announce(std::span<const lower::TableEntry> entries);
    void deliver(std::uint32_t index, std::uint32_t part, std::string_view data, std::string_view scale);
    void weights_done();

    void allocate(const program::Program& program, std::span<const dsv4_state_pool> pools, std::uint32_t slots);
    dsv4_executable* compile(const program::Program& program, std::uint32_t max_rows, std::uint32_t max_slots);
    dsv4_ticket submit(dsv4_executable* executable, const dsv4_batch& batch);
    // Late masks of the ticket's only work; see dsv4/backend.h.
    void supply(dsv4_ticket ticket, std::span<const std::uint32_t> words);
    // Waits, copies and releases. Throws for a ticket that failed as a whole.
    TicketResult wait(dsv4_ticket ticket);
    TicketResult run(dsv4_executable* executable, const dsv4_batch& batch) { return wait(submit(executable, batch)); }

  private:
    BackendHandle backend_;
    dsv4_session* session_ = nullptr;
};

} // namespace dsv4::runtime
