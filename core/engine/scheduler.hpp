// The scheduler: decides which rows run in the next step and applies what came back. A pure state machine: no threads,
// no clock, no device. The engine drives it, tests drive it with random schedules.
//
//     while (work) {
//         while (in flight < 2 && scheduler.plan(plan)) submit(plan.batch)
//         scheduler.landed(oldest plan, its result, tokens)      then finish(...) whom the tokens end
//     }
//
// Invariants. Everything that frees, hashes or publishes uses landed positions; planning only reserves, for the
// largest outcome. Pages and slots of a sequence that leaves are reused after the last step that names it has landed.
#pragma once

#include "core/engine/sequence.hpp"
#include "core/prefix/prefix_cache.hpp"
#include "core/runtime/backend_session.hpp"
#include "core/runtime/batch.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <span>
#include <vector>

namespace dsv4::engine {

struct SchedulerOptions {
    std::uint32_t slots = 1;     // sequences that run together
    std::uint32_t max_rows = 1;  // of one step
    bool chunked_prefill = true; // false: a prompt runs in one step, alone if it must
    prefix::Options prefix;
};

// One step. Lives until it has landed; the batch is valid until submit.
struct Plan {
    struct Item {
        Sequence* sequence = nullptr;
        std::int32_t slot = -1;
        std::int64_t begin = 0; // first position; of relative rows what it is when everything before commits
        std::int64_t end = 0;
        bool emits = false; // its last row samples
        bool prefill = false;
    };
    runtime::Batch batch;
    std::vector<Item> items;
    std::vector<Sequence*> masked; // of rows that wait for a late mask, in row order
    std::deque<sampling::Sampling> forced;
    std::deque<dsv4_sampling> sampling; // what the batch points to
};

// A token that landed.
struct Landed {
    Sequence* sequence = nullptr;
    std::int32_t token = -1;
    bool finished = false; // the record ended: a stop id or the length
    float logprob = 0;
    std::vector<dsv4_top_logprob> top;
};

// How full things are; counters since the start.
struct SchedulerLoad {
    std::size_t running = 0, waiting = 0;
    std::uint64_t preemptions = 0;
    prefix::Statistics prefix;
};

class Scheduler {
  public:
    // `pages[i]` is the size of the pool of rules[i]. Throws Failure when one sequence could never run.
    Scheduler(SchedulerOptions options, std::vector<state::KindRule> rules, std::vector<std::uint32_t> pages);
    ~Scheduler() { abandon(); }

    // Positions that the growing pools can hold for one sequence.
    std::int64_t capacity_positions() const noexcept;

    // The sequence is the caller's and must live until it is retired.
    void add(Sequence& sequence);
    // Ends it: results still in flight are dropped. Idempotent.
    void finish(Sequence& sequence);
    // Builds the next step. False: there is nothing to run now.
    bool plan(Plan& plan);
    // Applies the results of the oldest plan that has not landed.
    void landed(const Plan& plan, const runtime::TicketResult& result, std::vector<Landed>& out);
    // Sequences that ended and that nothing names any more, since the last call. Those that failed have `failure` set.
    std::vector<Sequence*> take_retired();
    // First admissions since the last call.
    std::vector<Sequence*> take_admitted();

    // Forgets every sequence, whatever is in flight: for when the backend is lost.
    void abandon();
    // True when something landed or left since the last plan, so that another plan may find more to run.
    bool changed() const noexcept { return changed_; }
    bool idle() const noexcept { return running_.empty() && waiting_.empty() && forking_ == 0; }
    SchedulerLoad load() const;
    // Part of the fullest growing pool that running sequences hold; what only the cache keeps counts as free. Looks at
    // every cached block, so not for every step.
    double pages_used() const;
    prefix::PrefixCache& cache() noexcept { return cache_; }
    std::span<const state::PagePool> pools() const noexcept { return pools_; }

  private:
    struct Rank {
        bool operator()(const Sequence* a, const Sequence* b) const noexcept {
            return a->priority != b->priority ? a->priority > b->priority : a->order < b->order;
        }
    };
    using Queue = std::set<Sequence*, Rank>; // best first

    void settle();
    void release(Sequence& s);
    void leave_running(Sequence& s);
    void fail(Sequence& s, Error error);
    void preempt(Sequence& s);
    void free_forks(Sequence& s);
    bool pages_on_their_way() const;
    Sequence* worst_running() const;

    bool reserve_with_eviction(const std::function<bool()>& reserve, bool growing);
    // Makes room for a running sequence, by preemption if it must be. False: not in this step.
    bool make_room(Sequence& s, const std::function<bool()>& reserve, bool growing);

    bool wants_decode(const Sequence& s) const;
    bool wants_prefill(const Sequence& s) const;
    bool may_emit(const Sequence& s, std::int64_t index) const;
    void plan_decode(Plan& plan, Sequence& s);
    void plan_prefill(Plan& plan, Sequence& s);
    void plan_forks(Plan& plan, Sequence& s);
    bool fork_pages(Sequence& f, const Sequence& parent, std::vector<dsv4_page_copy>& copies);
    bool admit(Plan& plan);
    bool admit_sequence(Plan& plan, Sequence& s);
    std::int64_t fit_chunk(Sequence& s, std::int64_t rows);
    std::int64_t chunk_end(const Plan& plan, const Sequence& s) const;
    dsv4_batch_slot& begin_slot(Plan& plan, Sequence& s, std::int64_t emitted_index);
    void prefill_rows(Plan& plan, Sequence& s, std::int64_t end);
    std::uint32_t rows_left(const Plan& plan) const { return options_.max_rows - plan.batch.rows(); }

    void apply(Sequence& s, const Plan::Item& item, const runtime::TicketResult::Token* token,
               std::vector<Landed>& out);
    void advance(Sequence& s, std::int64_t committed);
    void pass_boundaries(Sequence& s, std::int64_t from, std::int64_t to);

    SchedulerOptions options_;
    std::vector<state::PagePool> pools_;
    prefix::PrefixCache cache_;
    std::vector<std::int32_t> free_slots_;
    Queue running_, waiting_;
    std::size_t forking_ = 0;
    std::uint64_t next_order_ = 0;
    std::uint64_t freed_ = 0; // grows whenever pages or slots came back
    // The look-up of a long prompt is not repeated in every step: who was refused last, and at which freed_.
    std::uint64_t refused_ = 0; // its order
    std::uint64_t refused_at_ = 0;
    std::uint64_t preemptions_ = 0;
    bool changed_ = false;
    bool preempted_now_ = false; // in the step being planned: nothing new is admitted into it
    std::vector<Sequence*> retired_, admitted_;
};

} // namespace dsv4::engine
