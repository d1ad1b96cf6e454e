// The queue, and the C view of the event its reader holds.
#include "core/engine/events.hpp"

#include "dsv4/sdk/error.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace dsv4::engine {
EventQueue::EventQueue(tokenizer::Tokenizer tokenizer, std::size_t capacity_tokens, std::size_t completions,
                       std::function<void()> room)
    : tokenizer_(std::move(tokenizer)),
      capacity_tokens_(capacity_tokens),
      room_(std::move(room)),
      finals_left_(completions) {}

bool EventQueue::push(Event event) {
    bool full = false;
    {
        const std::lock_guard lock(mutex_);
        if (closed_) return false;
        tokens_ += event.tokens.size();
        if (event.kind == DSV4_EVENT_ERROR) finals_left_ = 0;
        if (event.kind == DSV4_EVENT_FINISHED && finals_left_ > 0) --finals_left_;
        events_.push_back(std::move(event));
        full = tokens_ >= capacity_tokens_;
        stalled_ = stalled_ || full;
    }
    filled_.notify_one();
    const std::lock_guard lock(wake_mutex_);
    if (wake_) wake_(wake_arg_);
    return full;
}

const dsv4_event* EventQueue::next(std::uint64_t timeout_us) {
    bool room = false;
    {
        std::unique_lock lock(mutex_);
        auto ready = [&] { return !events_.empty() || finals_left_ == 0 || closed_; };
        if (timeout_us == UINT64_MAX)
            filled_.wait(lock, ready);
        else if (timeout_us > 0)
            filled_.wait_for(lock, std::chrono::microseconds(std::min<std::uint64_t>(timeout_us, 86'400'000'000)),
                             ready);
        if (events_.empty()) return nullptr;
        current_ = std::move(events_.front());
        events_.pop_front();
        tokens_ -= current_.tokens.size();
        if (stalled_ && tokens_ * 2 <= capacity_tokens_) {
            stalled_ = false;
            room = true;
        }
    }
    if (room) room_();
    build_view();
    return &view_;
}

void EventQueue::set_wake(void (*wake)(void*), void* arg) {
    {
        const std::lock_guard lock(wake_mutex_);
        wake_ = wake;
        wake_arg_ = arg;
    }
    bool waiting = false;
    {
        const std::lock_guard lock(mutex_);
        waiting = !events_.empty();
    }
    if (waiting && wake) wake(arg);
}

void EventQueue::close() {
    {
        const std::lock_guard lock(wake_mutex_);
        wake_ = nullptr;
    }
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        events_.clear();
        tokens_ = 0;
    }
    filled_.notify_all();
}

void EventQueue::build_view() {
    token_views_.clear();
    delta_views_.clear();
    for (const TokenOut& t : current_.tokens) {
        dsv4_token v{};
        v.id = t.id;
        v.is_control = tokenizer_.is_control(t.id);
        v.bytes = sdk::str(tokenizer_.bytes(t.id));
        v.logprob = t.logprob;
        v.top_count = std::uint32_t(t.top.size());
        v.top = t.top.data();
        v.part = t.part;
        token_views_.push_back(v);
    }
    for (const DeltaOut& d : current_.deltas) delta_views_.push_back({d.kind, d.index, sdk::str(d.text)});
    view_ = {};
    view_.struct_size = sizeof view_;
    view_.kind = current_.kind;
    view_.index = current_.index;
    view_.prompt_tokens = current_.prompt_tokens;
    view_.cached_tokens = current_.cached_tokens;
    view_.miss_reason = sdk::str(current_.miss_reason);
    view_.request_id = sdk::str(current_.request_id);
    view_.tokens = token_views_.data();
    view_.token_count = std::uint32_t(token_views_.size());
    view_.deltas = delta_views_.data();
    view_.delta_count = std::uint32_t(delta_views_.size());
    view_.reason = current_.reason;
    view_.stop = sdk::str(current_.stop);
    view_.usage = current_.usage;
    view_.timings = current_.timings;
    view_.code = std::int32_t(current_.code);
    view_.retryable = current_.retryable;
    view_.message = sdk::str(current_.message);
}

} // namespace dsv4::engine
