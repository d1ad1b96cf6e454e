// What requests hear from the engine: acceptance, tokens, the final event, and the metrics that go with them.
#include "core/engine/engine.hpp"
#include "dsv4/sdk/error.hpp"

#include <limits>

namespace dsv4::engine {
namespace {

double seconds(std::uint64_t from_us, std::uint64_t to_us) {
    return to_us > from_us ? double(to_us - from_us) * 1e-6 : 0;
}

std::string_view reason_label(dsv4_finish_reason reason) {
    switch (reason) {
    case DSV4_REASON_STOP:
    case DSV4_REASON_TOOL_CALLS: return "stop";
    case DSV4_REASON_LENGTH: return "length";
    case DSV4_REASON_CANCELLED:
    case DSV4_REASON_DEADLINE: return "abort";
    }
    return "abort";
}

} // namespace

void Engine::accept_admitted() {
    const std::uint64_t now = now_us();
    for (Sequence* s : scheduler_.take_admitted()) {
        auto& c = *static_cast<Completion*>(s->owner);
        Request& r = c.request;
        c.admitted_us = now;
        count(Metric::queue_time, seconds(r.submitted_us, now));
        if (r.accepted || c.ended) continue;
        r.accepted = true;
        count(Metric::prompt_tokens, double(r.prompt_tokens));
        count(Metric::request_prompt_tokens, double(r.prompt_tokens));
        count(Metric::prompt_tokens_cached, double(s->prefix.tokens));
        if (s->prefix.miss != prefix::Miss::disabled) {
            count(Metric::prefix_queries, double(r.prompt_tokens));
            count(Metric::prefix_hits, double(s->prefix.tokens));
        }
        if (s->prefix.miss != prefix::Miss::none) count(Metric::prefix_misses, 1, prefix::name(s->prefix.miss));
        Event event;
        event.kind = DSV4_EVENT_ACCEPTED;
        event.prompt_tokens = r.prompt_tokens;
        event.cached_tokens = s->prefix.tokens;
        event.miss_reason = s->prefix.reason();
        if (!event.miss_reason.empty() && !r.prompt_note.empty()) event.miss_reason += ": " + r.prompt_note;
        event.request_id = r.id;
        log(DSV4_LOG_DEBUG, "request " + r.id + ": " + std::to_string(r.prompt_tokens) + " prompt tokens, " +
                                std::to_string(s->prefix.tokens) + " cached" +
                                (event.miss_reason.empty() ? "" : ", " + event.miss_reason));
        push(r, std::move(event));
        if (!r.echo) continue;
        Event echo;
        for (std::int64_t i = 0; i < r.prompt_tokens; ++i)
            echo.tokens.push_back({s->tokens[std::size_t(i)], 0, std::numeric_limits<float>::quiet_NaN(), {}});
        if (!r.chat) {
            tokenizer::Utf8Stream text;
            std::string all;
            for (const TokenOut& t : echo.tokens)
                if (!tokenizer_.is_control(t.id)) text.feed(tokenizer_.bytes(t.id), all);
            all += text.flush();
            if (!all.empty()) echo.deltas.push_back({DSV4_DELTA_CONTENT, 0, std::move(all)});
        }
        for (auto& each : r.completions) {
            echo.index = each->index;
            push(r, echo);
        }
    }
}

void Engine::take_token(const Landed& landed, std::uint64_t now) {
    auto& c = *static_cast<Completion*>(landed.sequence->owner);
    if (c.ended) return;
    Request& r = c.request;
    if (c.first_token_us == 0) {
        c.first_token_us = now;
        count(Metric::time_to_first_token, seconds(r.submitted_us, now));
        count(Metric::prefill_time, seconds(c.admitted_us, now));
    } else
        count(Metric::inter_token_latency, seconds(c.last_token_us, now));
    c.last_token_us = now;

    const bool was_reasoning = c.output->reasoning();
    const bool stop_id = landed.finished && c.sequence.sampling.stops_at(landed.token);
    Event event;
    event.index = c.index;
    event.tokens.push_back({landed.token, 0, landed.logprob, landed.top});
    bool matched = false;
    try {
        matched = c.output->push(landed.token, stop_id, event.deltas);
        event.tokens.back().part = c.output->part();
        if (c.mask && !was_reasoning && !c.mask->advance(landed.token))
            throw Failure(Code::internal, "a sampled token violates the grammar of its request");
    } catch (...) {
        fail(r, current_error());
        return;
    }
    push(r, std::move(event));
    if (matched)
        end(c, DSV4_STOPPED_STOP, {});
    else if (stop_id)
        end(c, DSV4_STOPPED_EOS, {});
    else if (landed.finished)
        end(c, DSV4_STOPPED_LENGTH, {});
    else
        steer(c, was_reasoning);
}

// The reasoning budget: where it is used up the next token is the one that closes reasoning.
void Engine::steer(Completion& c, bool was_reasoning) {
    Sequence& s = c.sequence;
    if (s.hold_length == Sequence::unlimited) return;
    if (was_reasoning && !c.output->reasoning()) {
        s.hold_length = Sequence::unlimited;
        s.forced_index = -1;
    } else if (std::int64_t(s.tokens.size()) == s.hold_length) {
        s.forced_index = s.hold_length;
        std::string name = config_.reasoning_end;
        s.forced_token = *tokenizer_.control_id(name);
    }
}

// Sends the final event of a completion. `reason` overrides what the parser says.
void Engine::end(Completion& c, dsv4_stopped_by stopped_by, std::optional<dsv4_finish_reason> reason) {
    if (c.ended) return;
    Request& r = c.request;
    Event tail;
    tail.index = c.index;
    dsv4_finish_reason said = DSV4_REASON_STOP;
    try {
        said = c.output->finish(stopped_by, tail.deltas);
    } catch (...) {
        fail(r, current_error());
        return;
    }
    c.ended = true;
    scheduler_.finish(c.sequence);
    if (!tail.deltas.empty()) push(r, std::move(tail));

    const std::uint64_t now = now_us();
    Event final;
    final.kind = DSV4_EVENT_FINISHED;
    final.index = c.index;
    final.reason = reason.value_or(said);
    final.stop = c.output->matched_stop();
    final.usage.prompt_tokens = r.prompt_tokens;
    final.usage.cached_tokens = r.completions[0]->sequence.prefix.tokens;
    final.usage.completion_tokens = c.sequence.generated();
    final.usage.reasoning_tokens = c.output->reasoning_tokens();
    const std::uint64_t admitted = c.admitted_us ? c.admitted_us : now;
    const std::uint64_t first = c.first_token_us ? c.first_token_us : now;
    final.timings = {admitted - r.submitted_us, first - admitted, now - first};
    const std::string_view label = reason_label(final.reason);

    count(Metric::request_success, 1, label);
    count(Metric::e2e_latency, seconds(r.submitted_us, now));
    count(Metric::decode_time, seconds(first, now));
    count(Metric::inference_time, seconds(admitted, now));
    count(Metric::request_generation_tokens, double(c.sequence.generated()));
    count(Metric::request_prefill_computed_tokens, double(c.sequence.computed_prefill_tokens));
    if (c.sequence.generated() > 1)
        count(Metric::time_per_output_token, seconds(first, now) / double(c.sequence.generated() - 1));
    push(r, std::move(final));
}

// Ends a request with an error: its only final event.
void Engine::fail(Request& r, const Error& error) {
    if (r.ended) return;
    bool any = false;
    for (auto& c : r.completions) {
        any = any || !c->ended;
        c->ended = true;
        scheduler_.finish(c->sequence);
    }
    if (!any) return;
    Event event;
    event.kind = DSV4_EVENT_ERROR;
    event.code = error.code;
    event.retryable = error.code == Code::environment;
    event.message = error.message;
    count(Metric::request_success, 1, "error");
    log(DSV4_LOG_ERROR, "request " + r.id + " failed: " + error.message);
    push(r, std::move(event));
}

void Engine::stop_request(Request& r, dsv4_finish_reason reason) {
    if (live_.find(&r) == live_.end()) return;
    for (auto& c : r.completions)
        if (!c->ended) end(*c, DSV4_STOPPED_LENGTH, reason);
}

void Engine::push(Request& r, Event event) {
    if (!r.events->push(std::move(event)) || r.paused) return;
    r.paused = true;
    count(Metric::paused_readers, 1);
    for (auto& c : r.completions) c->sequence.paused = true;
}

} // namespace dsv4::engine
