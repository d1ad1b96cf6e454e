// Submits, takes events in turn, cancels; registered so that a shutdown reaches it.
#include "exchange.hpp"

#include "dsv4/sdk/error.hpp"

#include <chrono>

namespace dsv4::openai {

void ExchangeList::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

void ExchangeList::cancel_all() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    for (Exchange* exchange : running_) exchange->cancel_handles();
}

bool ExchangeList::wait_empty(std::uint64_t timeout_us) {
    std::unique_lock lock(mutex_);
    return empty_.wait_for(lock, std::chrono::microseconds(timeout_us), [&] { return running_.empty(); });
}

Exchange::Exchange(ExchangeList& list, const dsv4_host* host, std::unique_ptr<Call> call, std::function<void()> notify)
    : list_(list), host_(host), service_(*host->generate), call_(std::move(call)), notify_(std::move(notify)) {
    {
        const std::lock_guard lock(list_.mutex_);
        if (list_.closed_) throw Failure(Code::environment, "the server is shutting down");
        list_.running_.insert(this);
    }
    handles_.reserve(call_->requests.size());
    if (DSV4_HAS(host_, span_begin))
        span_ = host_->span_begin(host_->ctx, sdk::str("http.request"), sdk::str(call_->request_id),
                                  sdk::str(call_->traceparent));
}

Exchange::~Exchange() {
    std::vector<dsv4_request_handle*> handles;
    {
        const std::lock_guard lock(list_.mutex_); // no cancel_all touches them any more
        handles.swap(handles_);
    }
    for (dsv4_request_handle* handle : handles) service_.release(host_->ctx, handle);
    if (span_) host_->span_end(host_->ctx, span_);
    const std::lock_guard lock(list_.mutex_);
    list_.running_.erase(this);
    list_.empty_.notify_all();
}

void Exchange::submit() {
    for (const dsv4_generate_request& request : call_->requests) {
        dsv4_request_handle* handle = nullptr;
        sdk::check(service_.submit(host_->ctx, &request, &handle));
        service_.on_events(host_->ctx, handle, &Exchange::wake, this);
        const std::lock_guard lock(list_.mutex_);
        handles_.push_back(handle);
        if (list_.cancelled_) service_.cancel(host_->ctx, handle);
    }
}

void Exchange::wake(void* self) noexcept {
    auto* exchange = static_cast<Exchange*>(self);
    if (!exchange->woken_.exchange(true, std::memory_order_acq_rel)) exchange->notify_();
}

const dsv4_event* Exchange::next(std::uint32_t& prompt) {
    for (std::size_t tried = 0; tried < handles_.size(); ++tried) {
        prompt = std::uint32_t((turn_ + tried) % handles_.size());
        const dsv4_event* event = nullptr;
        sdk::check(service_.next(host_->ctx, handles_[prompt], 0, &event));
        if (!event) continue;
        turn_ = prompt;
        return event;
    }
    return nullptr;
}

void Exchange::cancel_handles() {
    for (dsv4_request_handle* handle : handles_) service_.cancel(host_->ctx, handle);
}

} // namespace dsv4::openai
