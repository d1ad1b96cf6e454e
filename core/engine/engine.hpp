// The serving engine of one data-parallel rank: one thread that owns the state and keeps two steps in flight, and the
// generation service through which everyone else talks to it.
//
//     Engine engine({.session = session, .program = program, .tokenizer = tokenizer, .parser = parser}, config);
//     const dsv4_generate_service& service = engine.service();         // first argument of its functions: &engine
//     service.submit(&engine, &request, &handle) ... service.next(&engine, handle, ...) ... service.release(...)
//     engine.drain(deadline);
//
// Threads: everything but construction and destruction may be called from any thread. Handles must be released before
// the engine is destroyed. The session must be used by nobody else meanwhile.
#pragma once

#include "core/engine/capacity.hpp"
#include "core/engine/config.hpp"
#include "core/engine/metrics.hpp"
#include "core/engine/request.hpp"
#include "core/engine/scheduler.hpp"
#include "core/runtime/backend_session.hpp"
#include "dsv4/generate.h"
#include "dsv4/host.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace dsv4::engine {

struct EngineParts {
    runtime::BackendSession& session; // weights loaded; outlives the engine
    program::Program program;         // of the model, ending in sample
    tokenizer::Tokenizer tokenizer;
    ParserHandle parser;   // optional: without one only raw prompts are taken
    GrammarHandle grammar; // optional
    Metrics* metrics = nullptr;
    std::function<void(dsv4_log_level, std::string_view)> log; // optional; never gets prompt or answer text
    std::function<std::uint64_t()> clock_us; // monotonic; the clock of deadlines. Default: steady_clock
};

class Engine {
  public:
    // Allocates state, compiles the Program and starts the thread. Throws Failure.
    Engine(EngineParts parts, EngineConfig config);
    // Cancels what still runs.
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // The table for api plugins; its functions take this engine as `ctx`.
    static const dsv4_generate_service& service();

    // As the service's functions, in C++. Throw Failure.
    std::shared_ptr<Request> submit(const dsv4_generate_request& request);
    void cancel(const std::shared_ptr<Request>& request);
    std::vector<std::int32_t> tokenize(const dsv4_chat_request& chat) const;
    std::string describe() const;

    // Refuses new requests, waits for the running ones until the deadline (0: for ever), then cancels the rest. True:
    // nothing had to be cancelled.
    bool drain(std::uint64_t deadline_us);

    // Tokens of one sequence, prompt and answer.
    std::int64_t context_tokens() const noexcept { return context_tokens_; }
    // False once the backend failed as a whole: what was running got an error and nothing new is taken.
    bool healthy() const noexcept { return !dead_.load(); }
    SchedulerLoad load() const;
    const PoolSizes& pool_sizes() const noexcept { return sizes_; }
    std::uint64_t now_us() const { return clock_us_(); }

  private:
    // A submitted step.
    struct Flight {
        std::unique_ptr<Plan> plan;
        dsv4_ticket ticket = 0;
        bool supplied = false; // its masks, if it needs any
    };
    struct Inbox {
        std::vector<std::shared_ptr<Request>> submitted, cancelled, resumed;
        bool stop = false;
        bool empty() const noexcept { return submitted.empty() && cancelled.empty() && resumed.empty() && !stop; }
    };

    void run();
    void loop();
    bool take_inbox(bool may_sleep);
    void check_deadlines();
    void submit_steps();
    void supply_masks(Flight& flight);
    void land_oldest();
    void take_token(const Landed& landed, std::uint64_t now);
    void steer(Completion& c, bool was_reasoning);
    void end(Completion& c, dsv4_stopped_by stopped_by, std::optional<dsv4_finish_reason> reason);
    void fail(Request& request, const Error& error);
    void stop_request(Request& request, dsv4_finish_reason reason);
    void fail_all(const Error& error);
    void accept_admitted();
    void collect_retired();
    void push(Request& request, Event event);
    void publish_load();
    void count(Metric metric, double value, std::string_view label = {}) const;
    void log(dsv4_log_level level, std::string_view message) const;
    RequestContext request_context() const;

    runtime::BackendSession& session_;
    const tokenizer::Tokenizer tokenizer_;
    const ParserHandle parser_;
    const GrammarHandle grammar_;
    Metrics* const metrics_;
    const std::function<void(dsv4_log_level, std::string_view)> log_;
    const std::function<std::uint64_t()> clock_us_;
    const EngineConfig config_;
    const PoolSizes sizes_;
    std::uint64_t seed_state_;
    std::mutex seed_mutex_;

    // The engine thread's.
    Scheduler scheduler_;
    std::deque<Flight> flights_;
    std::unordered_map<const Request*, std::shared_ptr<Request>> live_;
    std::vector<std::uint32_t> mask_words_;
    std::vector<Landed> landed_;
    std::uint64_t counted_preemptions_ = 0;
    std::uint64_t usage_due_us_ = 0; // when the cache's usage is looked at again

    const std::int64_t context_tokens_;
    dsv4_executable* executable_ = nullptr;

    mutable std::mutex mutex_;
    std::condition_variable attention_; // inbox has something
    std::condition_variable settled_;   // live requests changed
    Inbox inbox_;
    SchedulerLoad load_;
    std::size_t open_requests_ = 0; // submitted and not ended
    std::size_t open_completions_ = 0;
    bool draining_ = false;
    std::atomic<bool> dead_ = false;
    std::atomic<std::uint64_t> next_id_ = 1;
    std::thread thread_;
};

} // namespace dsv4::engine
