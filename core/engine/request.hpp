// A request inside the engine: its completions and its event queue; and the way there from the C struct.
#pragma once

#include "core/engine/config.hpp"
#include "core/engine/events.hpp"
#include "core/engine/grammar.hpp"
#include "core/engine/output.hpp"
#include "core/engine/sequence.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dsv4::engine {

struct Request;

// One of the n answers. Belongs to the engine thread once submitted.
struct Completion {
    Completion(Request& owner, std::uint32_t number, Sequence::Prompt prompt, sampling::Sampling parameters,
               std::string_view salt)
        : request(owner), index(number), sequence(std::move(prompt), std::move(parameters), salt) {}

    Request& request;
    const std::uint32_t index;
    Sequence sequence;
    std::unique_ptr<Output> output;
    std::unique_ptr<TokenMask> mask; // null: everything is allowed
    bool ended = false;              // its final event is out
    bool retired = false;            // the scheduler is done with it
    std::uint64_t admitted_us = 0, first_token_us = 0, last_token_us = 0;
};

struct Request {
    std::string id;
    std::string prompt_note; // why this prompt cannot continue the previous turn's, or empty
    std::int64_t prompt_tokens = 0;
    std::int64_t max_tokens = 0;
    std::int64_t max_reasoning_tokens = -1;
    std::uint64_t deadline_us = 0; // 0: none
    std::uint64_t submitted_us = 0;
    bool echo = false;
    bool chat = false;
    bool accepted = false;
    bool ended = false; // every final event is out
    bool paused = false;
    std::unique_ptr<EventQueue> events;
    std::vector<std::unique_ptr<Completion>> completions;
};

// A chat request as segments became ids.
struct EncodedPrompt {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> stop_ids, banned_ids;
    bool thinking = false, tools_enabled = false;
    std::string tools, grammar, note;
};

// What building a request needs; immutable, any thread.
struct RequestContext {
    const EngineConfig& config;
    const tokenizer::Tokenizer& tokenizer;
    ParserHandle parser;
    GrammarHandle grammar;
    std::int64_t context_tokens; // prompt and answer together
};

// Throws Failure: the client's mistakes are Code::invalid.
EncodedPrompt encode_chat(const RequestContext& context, const dsv4_chat_request& chat);
// Everything but the event queue.
std::shared_ptr<Request> make_request(const RequestContext& context, const dsv4_generate_request& in,
                                      std::uint64_t random_seed);

} // namespace dsv4::engine
