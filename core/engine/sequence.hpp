// One completion as the scheduler sees it: its tokens, how far they are computed, and where it stands in the queue.
#pragma once

#include "core/prefix/prefix_cache.hpp"
#include "core/sampling/sampling.hpp"
#include "core/state/pages.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dsv4::engine {

// Set by the owner before add(); afterwards everything is the scheduler's, except where a comment says otherwise.
struct Sequence {
    // The completions of one request share its prompt.
    using Prompt = std::shared_ptr<const std::vector<std::int32_t>>;
    Sequence(Prompt prompt_tokens, sampling::Sampling sampling_parameters, std::string_view salt)
        : prompt(std::move(prompt_tokens)),
          prompt_length(std::int64_t(prompt->size())),
          sampling(std::move(sampling_parameters)),
          keys(salt) {}
    Sequence(std::vector<std::int32_t> prompt_tokens, sampling::Sampling sampling_parameters, std::string_view salt)
        : Sequence(std::make_shared<const std::vector<std::int32_t>>(std::move(prompt_tokens)),
                   std::move(sampling_parameters), salt) {}

    static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

    const Prompt prompt;
    // Prompt, then every token whose result has landed. Empty before the first admission: a request may wait with many
    // completions of a long prompt.
    std::vector<std::int32_t> tokens;
    const std::int64_t prompt_length;
    sampling::Sampling sampling; // with its lengths set
    std::int32_t priority = 0;   // higher runs first
    Sequence* fork_of = nullptr; // wait for this one's prompt and share it
    bool use_cache = true;
    void* owner = nullptr; // the caller's

    // Steering, by the owner between steps.
    std::int64_t hold_length = unlimited; // no token at this index or later is asked for, except a forced one
    std::int64_t forced_index = -1;       // this token index becomes `forced_token`
    std::int32_t forced_token = -1;
    bool paused = false; // asks for no rows; may lose its pages

    // What the owner reads.
    prefix::Match prefix;  // of the first admission
    bool admitted = false; // at least once
    std::uint32_t preemptions = 0;
    std::int64_t computed_prefill_tokens = 0; // rows of prompt and recomputation actually run
    std::optional<Error> failure;

    std::int64_t generated() const noexcept { return tokens.empty() ? 0 : std::int64_t(tokens.size()) - prompt_length; }
    void begin_tokens() {
        if (tokens.empty()) tokens = *prompt;
    }

    // Internal to the scheduler.
    enum class State { waiting, forking, running, retired };
    State state = State::waiting;
    std::uint64_t order = 0; // of arrival
    std::int32_t slot = -1;  // device record
    std::unique_ptr<state::SequencePages> pages;
    prefix::BlockKeys keys;
    std::int64_t computed = 0;    // committed and landed positions
    std::int64_t planned = 0;     // positions in submitted steps, if all of them commit
    std::int64_t prefill_end = 0; // positions whose tokens were known at admission
    std::uint32_t in_flight = 0;  // submitted steps that name it
    bool needs_reset = true;
    bool sampling_overridden = false;             // the record holds a forcing sampler
    bool closing = false;                         // leaves as soon as nothing of it is in flight
    bool preempting = false;                      // the same, but to wait again
    std::vector<Sequence*> forks;                 // that wait for this prompt
    std::optional<state::BoundaryState> boundary; // behind the last block passed, until a rule keeps it or it ends
    std::size_t boundary_blocks = 0;
};

} // namespace dsv4::engine
