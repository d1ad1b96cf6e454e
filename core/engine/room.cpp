// Making room: what is free, what the prefix cache can give, and whom to preempt.
#include "core/engine/scheduler.hpp"

#include <algorithm>

namespace dsv4::engine {

bool Scheduler::pages_on_their_way() const {
    return std::any_of(running_.begin(), running_.end(), [](const Sequence* s) { return s->closing || s->preempting; });
}

// Whom to preempt: one that does not run anyway, then the last in rank.
Sequence* Scheduler::worst_running() const {
    Sequence* worst = nullptr;
    for (Sequence* s : running_) {
        if (s->closing || s->preempting) continue;
        if (!worst || s->paused || !worst->paused) worst = s;
    }
    return worst;
}

bool Scheduler::reserve_with_eviction(const std::function<bool()>& reserve, bool growing) {
    while (!reserve())
        if (!(growing ? cache_.evict_block() : cache_.evict_boundary_state())) return false;
    return true;
}

bool Scheduler::make_room(Sequence& s, const std::function<bool()>& reserve, bool growing) {
    for (;;) {
        if (reserve_with_eviction(reserve, growing)) return true;
        if (pages_on_their_way()) return false;
        Sequence* victim = worst_running();
        if (victim == &s && running_.size() == 1) {
            // Alone, with an empty cache: its own last boundary is all that is left to give.
            if (s.boundary) {
                s.boundary.reset();
                continue;
            }
            if (s.in_flight > 0) return false; // what lands may release pages behind it
            fail(s,
                 {Code::exhausted,
                  "the state of " + std::to_string(s.planned) + " tokens fills the cache, so the request cannot go on",
                  "raise kv.cache_bytes or lower context.max_model_len"});
            return false;
        }
        preempt(*victim);
        if (victim == &s || victim->state == Sequence::State::running) return false;
    }
}

void Scheduler::preempt(Sequence& s) {
    s.preempting = true;
    ++s.preemptions;
    ++preemptions_;
    preempted_now_ = true;
    if (s.in_flight == 0) release(s);
}

// Largest chunk, at most `rows`, whose sliding pages are free or can be evicted; 0: none.
std::int64_t Scheduler::fit_chunk(Sequence& s, std::int64_t rows) {
    while (rows > 0 && !reserve_with_eviction([&] { return s.pages->reserve_sliding(s.planned + rows); }, false))
        rows /= 2;
    return rows;
}

} // namespace dsv4::engine
