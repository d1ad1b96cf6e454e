// The engine thread: inbox, planning, waiting, landing, events.
#include "core/engine/engine.hpp"

#include "dsv4/sdk/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <random>

namespace dsv4::engine {
namespace {

constexpr std::size_t steps_in_flight = 2;

std::uint64_t steady_us() {
    return std::uint64_t(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
}

SchedulerOptions scheduler_options(const EngineConfig& config, const PoolSizes& sizes) {
    SchedulerOptions o;
    o.slots = config.max_sequences;
    o.max_rows = config.max_batched_tokens;
    o.chunked_prefill = config.chunked_prefill;
    o.prefix = {config.prefix_caching, sizes.boundary_states, config.boundary_every_blocks};
    return o;
}

} // namespace

Engine::Engine(EngineParts parts, EngineConfig config)
    : session_(parts.session),
      tokenizer_(std::move(parts.tokenizer)),
      parser_(parts.parser),
      grammar_(parts.grammar),
      metrics_(parts.metrics),
      log_(std::move(parts.log)),
      clock_us_(parts.clock_us ? std::move(parts.clock_us) : std::function<std::uint64_t()>(steady_us)),
      config_(std::move(config)),
      sizes_(size_pools(session_.backend().state_layouts(parts.program), config_)),
      seed_state_(std::random_device{}() | std::uint64_t(std::random_device{}()) << 32),
      scheduler_(scheduler_options(config_, sizes_), sizes_.rules, sizes_.pages),
      context_tokens_(std::min(config_.max_model_len, scheduler_.capacity_positions())) {
    if (context_tokens_ < 2)
        throw Failure(Code::invalid,
                      "a context of " + std::to_string(context_tokens_) + " tokens cannot hold a prompt and an answer");
    if (parser_.table) {
        const dsv4_str* names = nullptr;
        std::uint32_t count = 0;
        sdk::check(parser_.table->control_names(parser_.self, &names, &count));
        for (std::uint32_t i = 0; i < count; ++i)
            if (!tokenizer_.control_id(sdk::view(names[i])))
                throw Failure(Code::invalid,
                              "the parser needs the control token " + std::string(sdk::view(names[i])) +
                                  ", which the checkpoint's tokenizer does not have",
                              "use the parser that belongs to the checkpoint");
    }
    std::vector<dsv4_state_pool> pools;
    for (std::size_t i = 0; i < sizes_.rules.size(); ++i) pools.push_back({sizes_.rules[i].kind, sizes_.pages[i]});
    session_.allocate(parts.program, pools, config_.max_sequences);
    executable_ = session_.compile(parts.program, config_.max_batched_tokens, config_.max_sequences);
    if (context_tokens_ < config_.max_model_len)
        log(DSV4_LOG_WARNING,
            "the context is " + std::to_string(context_tokens_) + " tokens, because the cache holds no more");
    thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
    {
        const std::lock_guard lock(mutex_);
        inbox_.stop = true;
    }
    attention_.notify_all();
    thread_.join();
    session_.backend().table->executable_release(session_.raw(), executable_);
}

RequestContext Engine::request_context() const { return {config_, tokenizer_, parser_, grammar_, context_tokens_}; }

// ---------------------------------------------------------------- any thread

std::shared_ptr<Request> Engine::submit(const dsv4_generate_request& in) {
    std::uint64_t seed = 0;
    {
        const std::lock_guard lock(seed_mutex_);
        std::uint64_t z = seed_state_ += 0x9E3779B97F4A7C15u; // splitmix64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        seed = z ^ (z >> 31);
    }
    std::shared_ptr<Request> request = make_request(request_context(), in, seed);
    if (request->id.empty()) request->id = "req-" + std::to_string(next_id_.fetch_add(1));
    request->submitted_us = now_us();
    const std::weak_ptr<Request> weak = request;
    const auto room = [this, weak] {
        if (auto r = weak.lock()) {
            {
                const std::lock_guard lock(mutex_);
                inbox_.resumed.push_back(std::move(r));
            }
            attention_.notify_one();
        }
    };
    request->events = std::make_unique<EventQueue>(tokenizer_, config_.queue_tokens, request->completions.size(), room);
    {
        const std::lock_guard lock(mutex_);
        if (dead_) throw Failure(Code::environment, "the backend has failed, so the server takes no requests");
        if (draining_ || inbox_.stop)
            throw Failure(Code::environment, "the server is shutting down and takes no new requests");
        if (open_completions_ + request->completions.size() > config_.max_sequences + config_.max_waiting)
            throw Failure(Code::exhausted,
                          "the queue is full: " + std::to_string(open_completions_) + " completions run or wait",
                          "try again later");
        ++open_requests_;
        open_completions_ += request->completions.size();
        inbox_.submitted.push_back(request);
    }
    attention_.notify_one();
    return request;
}

void Engine::cancel(const std::shared_ptr<Request>& request) {
    {
        const std::lock_guard lock(mutex_);
        inbox_.cancelled.push_back(request);
    }
    attention_.notify_one();
}

std::vector<std::int32_t> Engine::tokenize(const dsv4_chat_request& chat) const {
    return encode_chat(request_context(), chat).ids;
}

SchedulerLoad Engine::load() const {
    const std::lock_guard lock(mutex_);
    return load_;
}

std::string Engine::describe() const {
    const SchedulerLoad l = load();
    bool draining = false;
    {
        const std::lock_guard lock(mutex_);
        draining = draining_;
    }
    return nlohmann::json{{"model", config_.model_name},
                          {"max_model_len", context_tokens_},
                          {"parallel", config_.max_sequences},
                          {"running", l.running},
                          {"waiting", l.waiting},
                          {"ready", healthy() && !draining}}
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool Engine::drain(std::uint64_t deadline_us) {
    std::unique_lock lock(mutex_);
    draining_ = true;
    auto done = [&] { return open_requests_ == 0; };
    if (deadline_us == 0) {
        settled_.wait(lock, done);
        return true;
    }
    const std::uint64_t now = now_us();
    const bool clean = settled_.wait_for(
        lock,
        std::chrono::microseconds(deadline_us > now ? std::min<std::uint64_t>(deadline_us - now, 86'400'000'000) : 0),
        done);
    if (clean) return true;
    inbox_.stop = true;
    attention_.notify_all();
    settled_.wait(lock, done);
    return false;
}

// ---------------------------------------------------------------- the engine thread

void Engine::run() {
    try {
        loop();
    } catch (...) {
        const Error error = current_error();
        log(DSV4_LOG_ERROR, "the engine stops: " + error.message);
        fail_all(error);
    }
}

void Engine::loop() {
    for (;;) {
        const bool idle = flights_.empty() && !scheduler_.changed();
        if (!take_inbox(idle)) return;
        check_deadlines();
        submit_steps();
        accept_admitted();
        collect_retired();
        publish_load();
        if (!flights_.empty()) land_oldest();
        collect_retired();
    }
}

// Takes what arrived; sleeps first when nothing runs. False: stopped, and everything has ended.
bool Engine::take_inbox(bool may_sleep) {
    Inbox taken;
    {
        std::unique_lock lock(mutex_);
        if (may_sleep && inbox_.empty()) {
            std::uint64_t wake = 0;
            for (const auto& [key, r] : live_)
                if (!r->ended && r->deadline_us && (!wake || r->deadline_us < wake)) wake = r->deadline_us;
            auto something = [&] { return !inbox_.empty(); };
            const std::uint64_t now = now_us();
            if (!wake)
                attention_.wait(lock, something);
            else if (wake > now)
                attention_.wait_for(lock, std::chrono::microseconds(std::min<std::uint64_t>(wake - now, 3'600'000'000)),
                                    something);
        }
        taken = std::exchange(inbox_, {});
        inbox_.stop = taken.stop;
    }
    for (auto& request : taken.submitted) {
        Request& r = *request;
        live_.emplace(&r, std::move(request));
        for (auto& c : r.completions) scheduler_.add(c->sequence);
        count(Metric::request_n, double(r.completions.size()));
        count(Metric::request_max_tokens, double(r.max_tokens));
    }
    for (auto& request : taken.resumed) {
        request->paused = false;
        for (auto& c : request->completions) c->sequence.paused = false;
    }
    for (auto& request : taken.cancelled) stop_request(*request, DSV4_REASON_CANCELLED);
    if (taken.stop)
        for (auto& [key, r] : live_) stop_request(*r, DSV4_REASON_CANCELLED);
    collect_retired();
    return !(taken.stop && live_.empty() && flights_.empty());
}

void Engine::check_deadlines() {
    std::uint64_t now = 0;
    for (auto& [key, r] : live_) {
        if (!r->deadline_us || r->ended) continue;
        if (!now) now = now_us();
        if (now >= r->deadline_us) stop_request(*r, DSV4_REASON_DEADLINE);
    }
}

void Engine::submit_steps() {
    while (flights_.size() < steps_in_flight) {
        auto plan = std::make_unique<Plan>();
        if (!scheduler_.plan(*plan)) return;
        count(Metric::iteration_tokens, double(plan->batch.rows()));
        Flight flight;
        flight.ticket = session_.submit(executable_, plan->batch.view());
        flight.plan = std::move(plan);
        flights_.push_back(std::move(flight));
    }
}

// Masks depend on the tokens of every step before.
void Engine::supply_masks(Flight& flight) {
    if (flight.supplied || flight.plan->masked.empty()) return;
    mask_words_.clear();
    for (const Sequence* s : flight.plan->masked) {
        auto& c = *static_cast<Completion*>(s->owner);
        const auto next = std::int64_t(s->tokens.size());
        if (c.ended || s->closing) // its row is padding, or its token is dropped
            mask_words_.resize(mask_words_.size() + c.mask->words(), ~std::uint32_t(0));
        else
            c.mask->append(mask_words_, !c.output->reasoning(), s->forced_index == next ? s->forced_token : -1);
    }
    session_.supply(flight.ticket, mask_words_);
    flight.supplied = true;
}

void Engine::land_oldest() {
    supply_masks(flights_.front());
    const Flight flight = std::move(flights_.front());
    flights_.pop_front();
    const runtime::TicketResult result = session_.wait(flight.ticket);
    landed_.clear();
    scheduler_.landed(*flight.plan, result, landed_);
    const std::uint64_t now = now_us();
    count(Metric::generation_tokens, double(landed_.size()));
    for (const Landed& l : landed_) take_token(l, now);
    if (!flights_.empty()) supply_masks(flights_.front()); // its device waits
}

void Engine::fail_all(const Error& error) {
    {
        const std::lock_guard lock(mutex_);
        dead_ = true;
        for (auto& r : inbox_.submitted) live_.emplace(r.get(), r);
        inbox_.submitted.clear();
    }
    for (auto& [key, r] : live_) {
        bool any = false;
        for (auto& c : r->completions) {
            any = any || !c->ended;
            c->ended = true;
        }
        if (!any) continue;
        Event event;
        event.kind = DSV4_EVENT_ERROR;
        event.code = error.code;
        event.retryable = true;
        event.message = "the backend failed: " + error.message;
        r->ended = true;
        r->events->push(std::move(event));
    }
    scheduler_.abandon();
    const std::lock_guard lock(mutex_);
    open_requests_ = open_completions_ = 0;
    settled_.notify_all();
}

void Engine::collect_retired() {
    for (Sequence* s : scheduler_.take_retired()) {
        auto& c = *static_cast<Completion*>(s->owner);
        if (s->failure && !c.ended) fail(c.request, *s->failure);
        c.retired = true;
    }
    std::size_t ended = 0, completions = 0;
    for (auto it = live_.begin(); it != live_.end();) {
        Request& r = *it->second;
        auto all = [&](bool Completion::*flag) {
            return std::all_of(r.completions.begin(), r.completions.end(), [&](const auto& c) { return (*c).*flag; });
        };
        if (!r.ended && all(&Completion::ended)) {
            r.ended = true;
            ++ended;
            completions += r.completions.size();
        }
        it = r.ended && all(&Completion::retired) ? live_.erase(it) : std::next(it);
    }
    if (ended == 0) return;
    const std::lock_guard lock(mutex_);
    open_requests_ -= ended;
    open_completions_ -= completions;
    settled_.notify_all();
}

void Engine::publish_load() {
    SchedulerLoad l = scheduler_.load();
    count(Metric::requests_running, double(l.running));
    count(Metric::requests_waiting, double(l.waiting));
    const std::uint64_t now = now_us();
    if (now >= usage_due_us_ || flights_.empty()) {
        usage_due_us_ = now + 500'000;
        count(Metric::cache_usage, scheduler_.pages_used());
    }
    count(Metric::prefix_blocks, double(l.prefix.blocks));
    count(Metric::prefix_boundary_states, double(l.prefix.boundary_states));
    if (l.preemptions > counted_preemptions_) {
        count(Metric::preemptions, double(l.preemptions - counted_preemptions_));
        counted_preemptions_ = l.preemptions;
    }
    const std::lock_guard lock(mutex_);
    load_ = l;
}

void Engine::count(Metric metric, double value, std::string_view label) const {
    if (metrics_) metrics_->update(metric, value, label);
}

void Engine::log(dsv4_log_level level, std::string_view message) const {
    if (log_) log_(level, message);
}

} // namespace dsv4::engine
