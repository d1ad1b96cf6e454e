// Plays scripts: an event is due at its time, and a thread of its own wakes the reader then.
#include "tests/api_openai/fake_service.hpp"

#include "dsv4/sdk/error.hpp"

#include <chrono>
#include <cmath>

namespace dsv4::test {

namespace {

std::uint64_t now_us() {
    return std::uint64_t(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
}

std::string copy(dsv4_str s) { return std::string(sdk::view(s)); }

} // namespace

struct FakeService::Request {
    Script script;
    std::uint32_t n = 1;
    std::uint64_t start_us = 0;
    std::size_t step = 0;
    std::uint64_t repeated = 0, given = 0;
    std::uint32_t finals = 0;
    bool failed = false;
    std::atomic<bool> cancelled{false};
    void (*wake)(void*) = nullptr;
    void* wake_arg = nullptr;
    // The event being read.
    dsv4_event event{};
    std::vector<dsv4_token> tokens;
    std::vector<dsv4_delta> deltas;

    bool over() const { return failed || finals >= n; }
};

FakeService::FakeService(Play play) : play_(std::move(play)), waker_([this] { wake_loop(); }) {}

FakeService::~FakeService() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    waker_.join();
    for (Request* request : requests_) delete request;
}

void FakeService::set_play(Play play) {
    const std::lock_guard lock(mutex_);
    play_ = std::move(play);
}
std::vector<SeenRequest> FakeService::seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
}
std::size_t FakeService::running() const {
    const std::lock_guard lock(mutex_);
    return requests_.size();
}
bool FakeService::wait_idle() const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(2), [&] { return requests_.empty(); });
}

// The wake-up is called with the lock held, so that none runs after release returned.
void FakeService::wake_loop() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
        if (due_.empty()) {
            changed_.wait(lock);
            continue;
        }
        const std::uint64_t now = now_us();
        const auto first = due_.begin();
        if (first->first > now) {
            changed_.wait_for(lock, std::chrono::microseconds(first->first - now));
            continue;
        }
        Request* request = first->second;
        due_.erase(first);
        if (request->wake) request->wake(request->wake_arg);
    }
}

void FakeService::schedule(Request* request, std::uint64_t due_us) {
    const bool first = due_.empty() || due_us < due_.begin()->first;
    due_.emplace(due_us, request);
    if (first) changed_.notify_all();
}

dsv4_error* FakeService::submit(const dsv4_generate_request* r, dsv4_request_handle** out) {
    SeenRequest seen;
    seen.request = *r;
    if (r->chat) {
        seen.messages = copy(r->chat->messages);
        seen.tools = copy(r->chat->tools);
        seen.tool_choice = copy(r->chat->tool_choice);
        seen.response_format = copy(r->chat->response_format);
        seen.effort = copy(r->chat->effort);
        seen.template_kwargs = copy(r->chat->template_kwargs);
        seen.thinking = r->chat->thinking;
    }
    seen.prompt_text = copy(r->prompt_text);
    seen.prompt_ids.assign(r->prompt_ids, r->prompt_ids + r->prompt_id_count);
    seen.cache_salt = copy(r->cache_salt);
    seen.request_id = copy(r->request_id);
    seen.traceparent = copy(r->traceparent);
    seen.grammar = copy(r->grammar);

    Play play;
    {
        const std::lock_guard lock(mutex_);
        seen_.push_back(std::move(seen));
        play = play_;
    }
    Script script = play(*r);
    if (script.refuse_code) return sdk::make_error({Code(script.refuse_code), script.refuse_message, {}});
    auto request = std::make_unique<Request>();
    request->script = std::move(script);
    request->n = r->n;
    request->start_us = now_us() + request->script.first_us;
    const std::lock_guard lock(mutex_);
    requests_.insert(request.get());
    schedule(request.get(), request->start_us);
    *out = reinterpret_cast<dsv4_request_handle*>(request.release());
    return nullptr;
}

const dsv4_event* FakeService::next(Request& r) {
    if (r.over()) return nullptr;
    dsv4_event& e = r.event;
    e = {};
    e.struct_size = sizeof e;
    if (r.cancelled) {
        e.kind = DSV4_EVENT_FINISHED;
        e.index = r.finals++;
        e.reason = DSV4_REASON_CANCELLED;
        e.usage = {10, 8, std::int64_t(r.given), 0, 0, 0};
        return &e;
    }
    if (r.step == r.script.events.size()) return nullptr; // never_ends
    const std::uint64_t due = r.start_us + r.given * r.script.gap_us;
    if (due > now_us()) {
        const std::lock_guard lock(mutex_);
        schedule(&r, due);
        return nullptr;
    }
    const FakeEvent& from = r.script.events[r.step];
    if (++r.repeated == from.repeat) {
        r.repeated = 0;
        ++r.step;
    }
    ++r.given;
    ++taken_;
    e.kind = from.kind;
    e.index = from.index;
    e.prompt_tokens = from.prompt_tokens;
    e.cached_tokens = from.cached_tokens;
    e.reason = from.reason;
    e.stop = sdk::str(from.stop);
    e.usage = from.usage;
    e.timings = from.timings;
    e.code = from.code;
    e.retryable = from.retryable;
    e.message = sdk::str(from.message);
    r.tokens.clear();
    r.deltas.clear();
    for (const FakeToken& t : from.tokens) {
        dsv4_token token{};
        token.id = t.id;
        token.is_control = t.is_control;
        token.bytes = sdk::str(t.bytes);
        token.logprob = t.logprob;
        token.part = t.part;
        token.top = t.top.data();
        token.top_count = std::uint32_t(t.top.size());
        r.tokens.push_back(token);
    }
    for (const FakeDelta& d : from.deltas) r.deltas.push_back({d.kind, d.index, sdk::str(d.text)});
    e.tokens = r.tokens.data();
    e.token_count = std::uint32_t(r.tokens.size());
    e.deltas = r.deltas.data();
    e.delta_count = std::uint32_t(r.deltas.size());
    if (e.kind == DSV4_EVENT_FINISHED) ++r.finals;
    if (e.kind == DSV4_EVENT_ERROR) r.failed = true;
    return &e;
}

void FakeService::release(Request* request) {
    {
        const std::lock_guard lock(mutex_);
        if (!request->over() && !request->cancelled) ++cancelled_;
        for (auto it = due_.begin(); it != due_.end();) it = it->second == request ? due_.erase(it) : std::next(it);
        requests_.erase(request);
    }
    changed_.notify_all();
    delete request;
}

// The C functions; ctx is a FakeContext.
struct ServiceFunctions {
    static FakeService& self(void* ctx) { return *static_cast<FakeContext*>(ctx)->service; }
    static FakeService::Request& request(dsv4_request_handle* h) { return *reinterpret_cast<FakeService::Request*>(h); }
    static dsv4_error* submit(void* ctx, const dsv4_generate_request* r, dsv4_request_handle** out) {
        return self(ctx).submit(r, out);
    }
    static void on_events(void* ctx, dsv4_request_handle* h, void (*wake)(void*), void* arg) {
        FakeService& s = self(ctx);
        const std::lock_guard lock(s.mutex_);
        request(h).wake = wake;
        request(h).wake_arg = arg;
        s.schedule(&request(h), now_us());
    }
    static dsv4_error* next(void* ctx, dsv4_request_handle* h, std::uint64_t, const dsv4_event** out) {
        *out = self(ctx).next(request(h));
        return nullptr;
    }
    static void cancel(void* ctx, dsv4_request_handle* h) {
        FakeService& s = self(ctx);
        const std::lock_guard lock(s.mutex_);
        if (!request(h).cancelled.exchange(true)) ++s.cancelled_;
        s.schedule(&request(h), now_us());
    }
    static void release(void* ctx, dsv4_request_handle* h) { self(ctx).release(&request(h)); }
    // One token a byte of the messages.
    static dsv4_error* tokenize(void*, const dsv4_chat_request* chat, std::int32_t* ids, std::size_t capacity,
                                std::size_t* count) {
        *count = chat->messages.size;
        for (std::size_t i = 0; i < chat->messages.size && i < capacity; ++i)
            ids[i] = static_cast<unsigned char>(chat->messages.data[i]);
        return nullptr;
    }
    static void describe(void* ctx, void (*sink)(void*, dsv4_str), void* arg) {
        const std::string json = std::string(R"({"model":"tiny","max_model_len":4096,"parallel":8,"running":2,)") +
                                 R"("waiting":1,"ready":)" + (self(ctx).ready ? "true}" : "false}");
        sink(arg, sdk::str(json));
    }
};

const dsv4_generate_service& FakeService::table() {
    static const dsv4_generate_service service = [] {
        dsv4_generate_service s{};
        s.struct_size = sizeof s;
        s.submit = ServiceFunctions::submit;
        s.on_events = ServiceFunctions::on_events;
        s.next = ServiceFunctions::next;
        s.cancel = ServiceFunctions::cancel;
        s.release = ServiceFunctions::release;
        s.tokenize = ServiceFunctions::tokenize;
        s.describe = ServiceFunctions::describe;
        return s;
    }();
    return service;
}

FakeEvent accepted(std::int64_t prompt_tokens, std::int64_t cached_tokens) {
    FakeEvent e;
    e.kind = DSV4_EVENT_ACCEPTED;
    e.prompt_tokens = prompt_tokens;
    e.cached_tokens = cached_tokens;
    return e;
}
FakeEvent text(std::string bytes, std::int32_t kind, std::uint32_t index) {
    FakeEvent e;
    e.index = index;
    FakeToken token;
    token.id = 65;
    token.bytes = bytes;
    token.logprob = -0.5f;
    token.part = kind;
    token.top = {{65, -0.5f}, {66, -1.25f}};
    e.tokens.push_back(token);
    e.deltas.push_back({kind, 0, std::move(bytes)});
    return e;
}
FakeEvent tool_begin(std::uint32_t call, std::string name) {
    FakeEvent e;
    e.deltas.push_back({DSV4_DELTA_TOOL_BEGIN, call, std::move(name)});
    return e;
}
FakeEvent tool_arguments(std::uint32_t call, std::string piece) {
    FakeEvent e;
    e.deltas.push_back({DSV4_DELTA_TOOL_ARGUMENTS, call, std::move(piece)});
    return e;
}
FakeEvent finished(std::int32_t reason, std::uint32_t index) {
    FakeEvent e;
    e.kind = DSV4_EVENT_FINISHED;
    e.reason = reason;
    e.index = index;
    return e;
}
FakeEvent failed(std::int32_t code, std::string message) {
    FakeEvent e;
    e.kind = DSV4_EVENT_ERROR;
    e.code = code;
    e.message = std::move(message);
    return e;
}
FakeEvent times(FakeEvent event, std::uint64_t repeat) {
    event.repeat = repeat;
    return event;
}

} // namespace dsv4::test
