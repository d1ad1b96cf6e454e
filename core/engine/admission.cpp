// Admission: who gets a slot and pages, where its prompt starts, and the completions that share it.
#include "core/engine/scheduler.hpp"

#include <algorithm>

namespace dsv4::engine {

bool Scheduler::admit(Plan& plan) {
    if (preempted_now_ || rows_left(plan) == 0) return false;
    const auto head = std::find_if(waiting_.begin(), waiting_.end(), [](const Sequence* s) { return !s->paused; });
    if (head == waiting_.end()) return false;
    Sequence& s = **head;
    if (running_.empty() || !options_.chunked_prefill || refused_ != s.order || refused_at_ != freed_) {
        if (!free_slots_.empty() && admit_sequence(plan, s)) return true;
        refused_ = s.order;
        refused_at_ = freed_;
    }
    if (pages_on_their_way()) return false;
    // A paused sequence must not keep others out, nor a less important one.
    Sequence* worst = worst_running();
    if (worst && (worst->paused || worst->priority < s.priority)) preempt(*worst);
    return false;
}

bool Scheduler::admit_sequence(Plan& plan, Sequence& s) {
    s.begin_tokens();
    const std::span<const std::int32_t> tokens(s.tokens);
    s.pages = std::make_unique<state::SequencePages>(pools_);
    prefix::Match match;
    if (s.use_cache)
        match = cache_.match(s.keys, tokens);
    else
        match.miss = prefix::Miss::disabled;
    const auto end = std::int64_t(tokens.size());
    // Others that run must be able to grow by a page each before anyone is preempted.
    const std::uint32_t spare = std::uint32_t(running_.size());
    auto reserve = [&] {
        if (!s.pages->reserve_growing(std::min(end + 1, s.sampling.max_length))) return false;
        return std::all_of(pools_.begin(), pools_.end(), [&](const state::PagePool& p) {
            return !p.rule().grows() || p.free_pages() >= std::min(spare, p.size() / 4);
        });
    };
    auto start_at = [&](const prefix::Match& from) {
        s.pages->clear();
        cache_.attach(from, s.keys, tokens, *s.pages);
        s.planned = from.tokens;
        s.prefill_end = end;
        if (!reserve_with_eviction(reserve, true)) return std::int64_t(0);
        return fit_chunk(s, chunk_end(plan, s) - s.planned);
    };
    std::int64_t rows = start_at(match);
    if (rows <= 0 && match.tokens > 0 && running_.empty()) {
        // The shared pages themselves are in the way: give the hit up rather than wait for ever.
        match = {0, prefix::Miss::pages_exhausted, 0};
        rows = start_at(match);
    }
    if (rows <= 0) {
        s.pages.reset();
        if (running_.empty() && chunk_end(plan, s) > s.planned) {
            waiting_.erase(&s);
            fail(s, {Code::exhausted,
                     "a request of " + std::to_string(end) + " tokens needs more state than the cache holds",
                     "raise kv.cache_bytes or lower context.max_model_len"});
            s.state = Sequence::State::retired;
            retired_.push_back(&s);
            return true;
        }
        return false;
    }
    waiting_.erase(&s);
    s.state = Sequence::State::running;
    s.slot = free_slots_.back();
    free_slots_.pop_back();
    s.computed = s.planned;
    s.needs_reset = true;
    s.sampling_overridden = false;
    s.boundary.reset();
    if (!s.admitted) {
        s.prefix = match;
        admitted_.push_back(&s);
    }
    s.admitted = true;
    running_.insert(&s);
    plan_prefill(plan, s);
    return true;
}

// Evicts what the copies of begun pages lack.
bool Scheduler::fork_pages(Sequence& f, const Sequence& parent, std::vector<dsv4_page_copy>& copies) {
    while (!f.pages->fork(*parent.pages, parent.planned, copies)) {
        const bool growing = std::any_of(pools_.begin(), pools_.end(), [](const state::PagePool& p) {
            return p.rule().grows() && p.free_pages() == 0;
        });
        if (!(growing ? cache_.evict_block() : cache_.evict_boundary_state())) return false;
    }
    return true;
}

// Starts the completions that share this prompt, each behind all but its last token.
void Scheduler::plan_forks(Plan& plan, Sequence& parent) {
    const std::int64_t at = parent.planned;
    std::vector<Sequence*> left;
    for (Sequence* f : std::exchange(parent.forks, {})) {
        bool started = false;
        if (!free_slots_.empty() && rows_left(plan) >= 2 && !f->paused) { // the parent's own row needs one
            f->pages = std::make_unique<state::SequencePages>(pools_);
            std::vector<dsv4_page_copy> copies;
            started = fork_pages(*f, parent, copies) &&
                      reserve_with_eviction([&] { return f->pages->reserve_growing(f->prompt_length + 1); }, true) &&
                      reserve_with_eviction([&] { return f->pages->reserve_sliding(f->prompt_length); }, false);
            if (started)
                for (const dsv4_page_copy& c : copies) plan.batch.copy(c);
        }
        --forking_;
        f->fork_of = nullptr;
        if (!started) {
            f->pages.reset();
            f->state = Sequence::State::waiting;
            waiting_.insert(f);
            continue;
        }
        f->slot = free_slots_.back();
        free_slots_.pop_back();
        f->begin_tokens();
        f->state = Sequence::State::running;
        f->computed = f->planned = at;
        f->prefill_end = f->prompt_length;
        f->needs_reset = true;
        f->prefix = parent.prefix;
        if (!f->admitted) admitted_.push_back(f);
        f->admitted = true;
        running_.insert(f);
        if (may_emit(*f, f->prefill_end)) prefill_rows(plan, *f, f->prefill_end);
    }
}

} // namespace dsv4::engine
