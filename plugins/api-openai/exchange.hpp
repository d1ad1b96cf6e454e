// The running requests of one call: owns their handles and carries the service's wake-ups to the connection.
#pragma once

#include "call.hpp"

#include "dsv4/generate.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace dsv4::openai {

class Exchange;

// All running exchanges of a server, so that they can be cancelled together. Any thread.
class ExchangeList {
  public:
    // No further exchange begins.
    void close();
    // Cancels all that run, and those that are being submitted.
    void cancel_all();
    // True when none was left before the time was up.
    bool wait_empty(std::uint64_t timeout_us);

  private:
    friend class Exchange;
    std::mutex mutex_;
    std::condition_variable empty_;
    std::set<Exchange*> running_;
    bool closed_ = false, cancelled_ = false;
};

// Made on a worker thread, then used by its connection alone. Everything a call is answered from lives here.
class Exchange {
  public:
    // Failure(environment) when the list is closed. `notify` is called from the service's threads when events may be
    // waiting, and must not block.
    Exchange(ExchangeList& list, const dsv4_host* host, std::unique_ptr<Call> call, std::function<void()> notify);
    ~Exchange(); // cancels what still runs; no notify runs afterwards
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    const Call& call() const noexcept { return *call_; }

    // Hands all of the call's requests to the service. Throws what it refuses; then none runs.
    void submit();
    // The next waiting event and the number of its prompt, or null. Valid until the next call.
    const dsv4_event* next(std::uint32_t& prompt);
    void cancel() { cancel_handles(); }
    // Forgets wake-ups so far; true when there was one.
    bool take_wake() noexcept { return woken_.exchange(false, std::memory_order_acquire); }

  private:
    friend class ExchangeList;
    static void wake(void* self) noexcept;
    void cancel_handles();

    ExchangeList& list_;
    const dsv4_host* host_;
    const dsv4_generate_service& service_;
    std::unique_ptr<Call> call_;
    std::function<void()> notify_;
    std::atomic<bool> woken_{false};
    std::vector<dsv4_request_handle*> handles_; // by prompt
    std::size_t turn_ = 0;
    dsv4_span* span_ = nullptr;
};

} // namespace dsv4::openai
