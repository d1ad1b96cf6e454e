// Events of one request: a queue between the engine thread and one reader, bounded in tokens.
#pragma once

#include "core/tokenizer/tokenizer.hpp"
#include "dsv4/generate.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace dsv4::engine {

struct TokenOut {
    std::int32_t id = 0;
    std::int32_t part = 0; // dsv4_delta_kind it belongs to; 0: markup or control
    float logprob = 0;
    std::vector<dsv4_top_logprob> top;
};

struct DeltaOut {
    dsv4_delta_kind kind = DSV4_DELTA_CONTENT;
    std::uint32_t index = 0;
    std::string text;
};

struct Event {
    dsv4_event_kind kind = DSV4_EVENT_TOKENS;
    std::uint32_t index = 0;
    std::int64_t prompt_tokens = 0, cached_tokens = 0;
    std::string miss_reason, request_id;
    std::vector<TokenOut> tokens;
    std::vector<DeltaOut> deltas;
    dsv4_finish_reason reason{};
    std::string stop;
    dsv4_usage usage{};
    dsv4_timings timings{};
    Code code = Code::ok;
    bool retryable = false;
    std::string message;
};

// push: the engine thread. next: one reader. The others: any thread.
class EventQueue {
  public:
    // `completions` final events end it, or one error. `room` is called, from the reader's thread, when a queue that
    // was full has room again.
    EventQueue(tokenizer::Tokenizer tokenizer, std::size_t capacity_tokens, std::size_t completions,
               std::function<void()> room);

    // Adds an event; each token is one of its own. True: the queue is full, so its completions must
    // pause until `room` is called. Events after close are dropped.
    bool push(Event event);
    // The next event, or nullptr: after timeout_us, or at once behind the last one. Lives until the next call.
    const dsv4_event* next(std::uint64_t timeout_us);
    void set_wake(void (*wake)(void*), void* arg);
    // The reader is gone: no more events, no more wake-ups.
    void close();

  private:
    void build_view();

    const tokenizer::Tokenizer tokenizer_;
    const std::size_t capacity_tokens_;
    const std::function<void()> room_;
    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<Event> events_;
    std::size_t tokens_ = 0;
    std::size_t finals_left_;
    bool stalled_ = false;
    bool closed_ = false;
    std::mutex wake_mutex_; // held during the call, so that close() waits for it
    void (*wake_)(void*) = nullptr;
    void* wake_arg_ = nullptr;
    // The reader's.
    Event current_;
    dsv4_event view_{};
    std::vector<dsv4_token> token_views_;
    std::vector<dsv4_delta> delta_views_;
};

} // namespace dsv4::engine
