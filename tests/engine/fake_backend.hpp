// A backend that computes hashes instead of a model and checks its caller.
//
// Each position's row is a hash of its token and of every row a real model would read: the window, the compressed rows,
// built from partial rows as their windows close. Rows live in pages. A wrong page, a stale row, a page written while
// shared or a lost update therefore changes the tokens from there on, and most mistakes are named as well.
#pragma once

#include "dsv4/sdk/backend.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace dsv4::test {

struct FakeOptions {
    std::int64_t vocab = 2048;
    std::int64_t window = 128;
    std::uint64_t stop_every = 0; // about one token in so many is the end token; 0: never
    std::int32_t stop_token = 1;
    // Tokens from position `script_origin` on, whatever the state says.
    std::vector<std::int32_t> script;
    std::int64_t script_origin = 0;
    std::uint64_t ticket_us = 0; // time a step takes
};

class FakeSession;

class FakeBackend final : public sdk::Backend {
  public:
    explicit FakeBackend(FakeOptions options = {}) : options_(std::move(options)) {}
    std::span<const dsv4_device_info> devices() override;
    void supports(const program::Program&) override {}
    std::vector<dsv4_state_layout> state_layouts(const program::Program&) override;
    std::unique_ptr<sdk::Session> open(const dsv4_session_config&) override;

    FakeOptions& options() { return options_; } // before the engine starts
    // What the caller did wrong, each once.
    std::vector<std::string> violations() const;
    void report(const std::string& what);
    // The first row of this ticket fails.
    void fail_row_in(dsv4_ticket ticket) { failing_row_ = ticket; }
    // This ticket fails as a whole.
    void fail_ticket(dsv4_ticket ticket) { failing_ticket_ = ticket; }
    dsv4_ticket failing_row() const { return failing_row_; }
    dsv4_ticket failing_ticket() const { return failing_ticket_; }

  private:
    FakeOptions options_;
    dsv4_ticket failing_row_ = 0, failing_ticket_ = 0;
    mutable std::mutex mutex_;
    std::set<std::string> violations_;
};

// A Program for it; its content does not matter.
program::Program fake_program();

} // namespace dsv4::test
