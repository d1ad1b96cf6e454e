// A generation service that plays scripts instead of running a model: events at given times, pulled one by one.
#pragma once

#include "dsv4/generate.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace dsv4::test {

struct FakeToken {
    std::int32_t id = 0;
    std::string bytes;
    float logprob = 0;
    std::int32_t part = DSV4_DELTA_CONTENT;
    bool is_control = false;
    std::vector<dsv4_top_logprob> top;
};

struct FakeDelta {
    std::int32_t kind = DSV4_DELTA_CONTENT;
    std::uint32_t index = 0;
    std::string text;
};

// One event, given `repeat` times.
struct FakeEvent {
    std::int32_t kind = DSV4_EVENT_TOKENS;
    std::uint32_t index = 0;
    std::vector<FakeToken> tokens;
    std::vector<FakeDelta> deltas;
    std::int64_t prompt_tokens = 10, cached_tokens = 8;
    std::int32_t reason = DSV4_REASON_STOP;
    std::string stop;
    dsv4_usage usage{10, 8, 3, 1, 2, 5};
    dsv4_timings timings{1500, 20000, 300000};
    std::int32_t code = 0, retryable = 0;
    std::string message;
    std::uint64_t repeat = 1;
};

struct Script {
    std::vector<FakeEvent> events;
    std::uint64_t gap_us = 0;     // between two events
    std::uint64_t first_us = 0;   // before the first
    bool never_ends = false;      // nothing comes behind the last event until it is cancelled
    std::int32_t refuse_code = 0; // submit fails with this
    std::string refuse_message;
};

// What submit was given, copied.
struct SeenRequest {
    std::string messages, tools, tool_choice, response_format, effort, template_kwargs, prompt_text, cache_salt,
        request_id, traceparent, grammar;
    std::vector<std::int32_t> prompt_ids;
    std::int32_t thinking = -1;
    dsv4_generate_request request{}; // its pointers are dead
};

class FakeHost;
class FakeService;

// What the host's ctx points to.
struct FakeContext {
    FakeService* service = nullptr;
    FakeHost* host = nullptr;
};

class FakeService {
  public:
    using Play = std::function<Script(const dsv4_generate_request&)>;

    explicit FakeService(Play play);
    ~FakeService();
    FakeService(const FakeService&) = delete;
    FakeService& operator=(const FakeService&) = delete;

    // Its functions take a FakeContext.
    static const dsv4_generate_service& table();
    void set_play(Play play);
    std::vector<SeenRequest> seen() const;
    std::size_t running() const;                           // handles that were not released
    std::uint64_t taken() const { return taken_; }         // events handed out
    std::uint64_t cancelled() const { return cancelled_; } // cancel calls, and releases of what still ran
    std::atomic<bool> ready{true};
    // Waits until no handle is left; false after two seconds.
    bool wait_idle() const;

  private:
    friend struct ServiceFunctions;
    struct Request;
    dsv4_error* submit(const dsv4_generate_request* request, dsv4_request_handle** out);
    const dsv4_event* next(Request& request);
    void release(Request* request);
    void schedule(Request* request, std::uint64_t due_us); // with mutex_ held
    void wake_loop();

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    Play play_;
    std::vector<SeenRequest> seen_;
    std::set<Request*> requests_;
    std::multimap<std::uint64_t, Request*> due_;
    std::atomic<std::uint64_t> taken_{0}, cancelled_{0};
    bool stop_ = false;
    std::thread waker_;
};

// Script parts.
FakeEvent accepted(std::int64_t prompt_tokens = 10, std::int64_t cached_tokens = 8);
FakeEvent text(std::string bytes, std::int32_t kind = DSV4_DELTA_CONTENT, std::uint32_t index = 0);
FakeEvent tool_begin(std::uint32_t call, std::string name);
FakeEvent tool_arguments(std::uint32_t call, std::string piece);
FakeEvent finished(std::int32_t reason = DSV4_REASON_STOP, std::uint32_t index = 0);
FakeEvent failed(std::int32_t code, std::string message);
FakeEvent times(FakeEvent event, std::uint64_t repeat);

} // namespace dsv4::test
