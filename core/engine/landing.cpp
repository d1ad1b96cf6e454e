// Landing: applies results, publishes what is committed, frees what no later row can read.
#include "core/engine/scheduler.hpp"

#include <algorithm>

namespace dsv4::engine {

void Scheduler::landed(const Plan& plan, const runtime::TicketResult& result, std::vector<Landed>& out) {
    changed_ = true;
    std::vector<const runtime::TicketResult::Token*> tokens(plan.items.size(), nullptr);
    std::vector<const runtime::TicketResult::RowError*> errors(plan.items.size(), nullptr);
    auto item_of = [&](std::int32_t slot) {
        const auto it = std::find_if(plan.items.begin(), plan.items.end(),
                                     [&](const Plan::Item& item) { return item.slot == slot; });
        if (it == plan.items.end())
            throw Failure(Code::internal,
                          "the backend reports on slot " + std::to_string(slot) + ", which had no row in the step");
        return std::size_t(it - plan.items.begin());
    };
    for (const auto& e : result.errors) {
        auto& first = errors[item_of(e.slot)];
        if (!first) first = &e;
    }
    for (const auto& t : result.tokens) {
        auto& only = tokens[item_of(t.result.slot)];
        if (only) throw Failure(Code::internal, "the backend emitted two tokens for one sampled row");
        only = &t;
    }
    for (std::size_t i = 0; i < plan.items.size(); ++i) {
        const Plan::Item& item = plan.items[i];
        Sequence& s = *item.sequence;
        --s.in_flight;
        if (s.closing) continue;
        if (errors[i]) {
            fail(s, {Code::internal, "the step failed in " + errors[i]->op + ": " + errors[i]->message, {}});
            continue;
        }
        apply(s, item, tokens[i], out);
    }
}

void Scheduler::apply(Sequence& s, const Plan::Item& item, const runtime::TicketResult::Token* token,
                      std::vector<Landed>& out) {
    if (!item.emits) {
        advance(s, item.end);
        return;
    }
    if (!token || token->result.position != std::int64_t(s.tokens.size())) {
        fail(s, {Code::internal,
                 token ? "the backend emitted position " + std::to_string(token->result.position) + " where position " +
                             std::to_string(s.tokens.size()) + " was next"
                       : "the backend emitted no token for a sampled row",
                 {}});
        return;
    }
    const bool finished = (token->result.flags & DSV4_RESULT_FINISHED) != 0;
    s.tokens.push_back(token->result.token);
    out.push_back({&s, token->result.token, finished, token->result.logprob, token->top});
    advance(s, token->result.position);
    if (finished) {
        s.closing = true; // its record acts as finished: rows still in flight are padding
        free_forks(s);
    }
}

void Scheduler::advance(Sequence& s, std::int64_t committed) {
    const std::int64_t from = s.computed;
    s.computed = committed;
    if (cache_.options().enabled && s.use_cache) pass_boundaries(s, from, committed);
    if (s.pages->release_behind(committed)) ++freed_;
}

// Publishes the blocks that ended in (from, to] and keeps the boundary states that deserve it: the last one of the
// prompt, every n-th, and for the time being the last one of all, which the end of the turn will retain.
void Scheduler::pass_boundaries(Sequence& s, std::int64_t from, std::int64_t to) {
    const std::int64_t size = state::block_positions;
    const std::int64_t first = from / size + 1, last = to / size;
    if (first > last) return;
    cache_.publish(s.keys, s.tokens, std::size_t(last), *s.pages);
    const std::int64_t every = cache_.options().every_blocks;
    s.boundary.reset();
    for (std::int64_t block = first; block <= last; ++block) {
        const bool of_prompt = block == s.prompt_length / size || block == (s.prompt_length - 1) / size;
        const bool keep = of_prompt || (every > 0 && block % every == 0);
        if (!keep && block != last) continue;
        auto state = s.pages->capture(block * size);
        if (!state) continue;
        if (keep) {
            cache_.retain(s.keys, s.tokens, std::size_t(block), std::move(*state));
        } else {
            s.boundary = std::move(state);
            s.boundary_blocks = std::size_t(block);
        }
    }
}

} // namespace dsv4::engine
