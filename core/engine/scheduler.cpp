// Arrival, departure and planning: decode rows first, then prompt chunks, then admissions.
#include "core/engine/scheduler.hpp"

#include <algorithm>

namespace dsv4::engine {
namespace {

std::vector<state::PagePool> make_pools(const std::vector<state::KindRule>& rules,
                                        const std::vector<std::uint32_t>& pages) {
    if (rules.size() != pages.size()) throw Failure(Code::internal, "there is not one pool size for each state kind");
    std::vector<state::PagePool> pools;
    pools.reserve(rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const std::int64_t least =
            rules[i].grows() ? 1 : rules[i].reach_positions / std::int64_t(rules[i].positions_per_page) + 3;
        if (std::int64_t(pages[i]) < least)
            throw Failure(Code::exhausted,
                          "the pool of state kind " + std::to_string(rules[i].kind) + " has " +
                              std::to_string(pages[i]) + " pages, but one sequence needs " + std::to_string(least),
                          "raise kv.cache_bytes");
        pools.emplace_back(rules[i], pages[i]);
    }
    return pools;
}

} // namespace

Scheduler::Scheduler(SchedulerOptions options, std::vector<state::KindRule> rules, std::vector<std::uint32_t> pages)
    : options_(options), pools_(make_pools(rules, pages)), cache_(options.prefix, pools_) {
    if (options_.slots == 0 || options_.max_rows == 0)
        throw Failure(Code::invalid, "a scheduler needs at least one slot and one row a step");
    for (std::uint32_t i = options_.slots; i > 0; --i) free_slots_.push_back(std::int32_t(i - 1));
}

void Scheduler::abandon() {
    for (Queue* queue : {&running_, &waiting_}) {
        for (Sequence* s : *queue) {
            s->boundary.reset();
            s->pages.reset(); // they refer to the pools
        }
        queue->clear();
    }
    forking_ = 0;
    retired_.clear();
    admitted_.clear();
}

std::int64_t Scheduler::capacity_positions() const noexcept {
    std::int64_t positions = Sequence::unlimited;
    for (const state::PagePool& pool : pools_)
        if (pool.rule().grows())
            positions = std::min(positions, std::int64_t(pool.size()) * std::int64_t(pool.rule().positions_per_page));
    return positions;
}

// ---------------------------------------------------------------- arrival and departure

void Scheduler::add(Sequence& s) {
    s.order = ++next_order_;
    s.state = Sequence::State::waiting;
    Sequence* parent = s.fork_of;
    // A prompt of one token leaves nothing to share, and a parent that is past its prompt cannot be forked any more.
    if (parent && s.prompt_length > 1 && !parent->closing && parent->state != Sequence::State::retired &&
        parent->generated() == 0 && parent->planned < parent->prompt_length) {
        s.state = Sequence::State::forking;
        parent->forks.push_back(&s);
        ++forking_;
        return;
    }
    s.fork_of = nullptr;
    waiting_.insert(&s);
}

void Scheduler::finish(Sequence& s) {
    if (s.closing || s.state == Sequence::State::retired) return;
    s.closing = true;
    changed_ = true;
    switch (s.state) {
    case Sequence::State::waiting: waiting_.erase(&s); break;
    case Sequence::State::forking:
        std::erase(s.fork_of->forks, &s);
        s.fork_of = nullptr;
        --forking_;
        break;
    case Sequence::State::running: free_forks(s); return; // settle() retires it
    case Sequence::State::retired: return;
    }
    free_forks(s);
    s.state = Sequence::State::retired;
    retired_.push_back(&s);
}

// Forks whose parent cannot serve them any more compute the prompt themselves.
void Scheduler::free_forks(Sequence& s) {
    for (Sequence* f : s.forks) {
        f->fork_of = nullptr;
        f->state = Sequence::State::waiting;
        waiting_.insert(f);
        --forking_;
    }
    s.forks.clear();
}

void Scheduler::fail(Sequence& s, Error error) {
    s.failure = std::move(error);
    s.boundary.reset(); // what it computed may be wrong
    s.closing = true;
    changed_ = true;
    free_forks(s);
}

void Scheduler::leave_running(Sequence& s) {
    running_.erase(&s);
    ++freed_;
    free_slots_.push_back(s.slot);
    s.slot = -1;
    s.pages.reset();
}

// Takes slot and pages from a sequence that nothing in flight names.
void Scheduler::release(Sequence& s) {
    if (s.boundary) cache_.retain(s.keys, s.tokens, s.boundary_blocks, std::move(*s.boundary));
    s.boundary.reset();
    changed_ = true;
    leave_running(s);
    if (s.closing) {
        s.state = Sequence::State::retired;
        retired_.push_back(&s);
    } else {
        s.state = Sequence::State::waiting;
        waiting_.insert(&s);
    }
    s.preempting = false;
}

void Scheduler::settle() {
    std::vector<Sequence*> leaving;
    for (Sequence* s : running_)
        if ((s->closing || s->preempting) && s->in_flight == 0) leaving.push_back(s);
    for (Sequence* s : leaving) release(*s);
}

std::vector<Sequence*> Scheduler::take_retired() {
    settle();
    return std::exchange(retired_, {});
}

std::vector<Sequence*> Scheduler::take_admitted() { return std::exchange(admitted_, {}); }

SchedulerLoad Scheduler::load() const {
    SchedulerLoad l;
    l.running = running_.size();
    l.waiting = waiting_.size() + forking_;
    l.preemptions = preemptions_;
    l.prefix = cache_.statistics();
    return l;
}

double Scheduler::pages_used() const {
    const double unshared = double(cache_.unshared_blocks());
    double used = 0;
    for (const state::PagePool& pool : pools_)
        if (pool.rule().grows() && pool.size() > 0)
            used = std::max(used, (double(pool.size() - pool.free_pages()) - unshared) / double(pool.size()));
    return used;
}

// ---------------------------------------------------------------- rows

bool Scheduler::may_emit(const Sequence& s, std::int64_t index) const {
    return index < s.sampling.max_length && (index < s.hold_length || index == s.forced_index);
}

bool Scheduler::wants_decode(const Sequence& s) const {
    return !s.closing && !s.preempting && !s.paused && s.planned >= s.prefill_end && may_emit(s, s.planned + 1);
}

bool Scheduler::wants_prefill(const Sequence& s) const {
    return !s.closing && !s.preempting && !s.paused && s.planned < s.prefill_end;
}

// `emitted_index`: of the token that the last row of this step samples, or -1.
dsv4_batch_slot& Scheduler::begin_slot(Plan& plan, Sequence& s, std::int64_t emitted_index) {
    dsv4_batch_slot& slot = plan.batch.slot(s.slot, s.pages->tables());
    const bool force = emitted_index >= 0 && emitted_index == s.forced_index;
    if (s.needs_reset || force || s.sampling_overridden) {
        const sampling::Sampling* chosen = &s.sampling;
        if (force) chosen = &plan.forced.emplace_back(s.sampling.forcing(s.forced_token));
        plan.sampling.push_back(chosen->view());
        slot.sampling = &plan.sampling.back();
        s.sampling_overridden = force;
    }
    if (s.needs_reset) {
        slot.flags = DSV4_SLOT_RESET;
        slot.committed = s.planned;
        if (s.sampling.penalised()) {
            slot.prompt_ids = s.tokens.data();
            slot.prompt_count = std::uint64_t(s.prompt_length);
            slot.generated_ids = s.tokens.data() + s.prompt_length;
            slot.generated_count = std::uint64_t(s.generated());
        }
        s.needs_reset = false;
    }
    if (emitted_index >= 0 && s.sampling.masked) plan.masked.push_back(&s);
    return slot;
}

void Scheduler::plan_decode(Plan& plan, Sequence& s) {
    const std::int64_t end = s.planned + 1;
    if (!make_room(
            s, [&] { return s.pages->reserve_growing(end); }, true))
        return;
    if (!make_room(
            s, [&] { return s.pages->reserve_sliding(end); }, false))
        return;
    begin_slot(plan, s, end);
    plan.batch.row(0, DSV4_INPUT_LAST, 0, DSV4_ROW_RELATIVE | DSV4_ROW_LOGITS);
    plan.items.push_back({&s, s.slot, s.planned, end, true, false});
    s.planned = end;
    ++s.in_flight;
}

// Where this step's chunk of a prompt may end at most.
std::int64_t Scheduler::chunk_end(const Plan& plan, const Sequence& s) const {
    std::int64_t end = s.prefill_end;
    if (!s.forks.empty() && s.planned < s.prompt_length - 1) end = std::min(end, s.prompt_length - 1);
    if (!options_.chunked_prefill && end - s.planned > std::int64_t(rows_left(plan)) && plan.batch.rows() > 0)
        return s.planned; // whole prompts: wait for a step of its own
    end = std::min(end, s.planned + std::int64_t(rows_left(plan)));
    // The last row samples; a held token is not asked for.
    if (end == s.prefill_end && !may_emit(s, end)) --end;
    return end;
}

void Scheduler::prefill_rows(Plan& plan, Sequence& s, std::int64_t end) {
    const bool emits = end == s.prefill_end;
    begin_slot(plan, s, emits ? end : -1);
    for (std::int64_t p = s.planned; p < end; ++p)
        plan.batch.row(p, DSV4_INPUT_GIVEN, s.tokens[std::size_t(p)],
                       emits && p + 1 == end ? std::uint32_t(DSV4_ROW_LOGITS) : 0u);
    plan.items.push_back({&s, s.slot, s.planned, end, emits, true});
    s.computed_prefill_tokens += end - s.planned;
    s.planned = end;
    ++s.in_flight;
}

void Scheduler::plan_prefill(Plan& plan, Sequence& s) {
    if (!s.forks.empty() && s.planned == s.prompt_length - 1) {
        if (s.computed < s.planned) return; // share only what has landed
        plan_forks(plan, s);
    }
    const std::int64_t want = chunk_end(plan, s) - s.planned;
    if (want <= 0) return;
    std::int64_t rows = fit_chunk(s, want);
    if (rows == 0) {
        if (!make_room(
                s, [&] { return s.pages->reserve_sliding(s.planned + 1); }, false))
            return;
        rows = 1;
    }
    prefill_rows(plan, s, s.planned + rows);
}

bool Scheduler::plan(Plan& plan) {
    settle();
    preempted_now_ = changed_ = false;
    const std::vector<Sequence*> order(running_.begin(), running_.end());
    for (Sequence* s : order)
        if (rows_left(plan) > 0 && s->state == Sequence::State::running && wants_decode(*s)) plan_decode(plan, *s);
    for (Sequence* s : order)
        if (rows_left(plan) > 0 && s->state == Sequence::State::running && wants_prefill(*s)) plan_prefill(plan, *s);
    while (admit(plan)) {}
    return plan.batch.rows() > 0 || plan.batch.copies() > 0;
}

} // namespace dsv4::engine
