// Loading of plugins, and the collector of events.
#include "tests/engine/harness.hpp"

#include "dsv4/plugin.h"
#include "dsv4/sdk/generate.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <random>
#include <variant>

struct dsv4_options {
    std::map<std::string, std::variant<std::string, std::int64_t, bool>> values;
};

namespace dsv4::test {
namespace {

dsv4_instance load(const std::string& name, std::int32_t kind, const dsv4_options& options) {
    static const dsv4_host host = [] {
        dsv4_host h{};
        h.struct_size = sizeof h;
        h.abi_major = DSV4_ABI_MAJOR;
        h.abi_minor = DSV4_ABI_MINOR;
        h.option_string = [](const dsv4_options* o, dsv4_str key, dsv4_str* out) -> dsv4_error* {
            *out = sdk::str(std::get<std::string>(o->values.at(std::string(sdk::view(key)))));
            return nullptr;
        };
        h.option_int = [](const dsv4_options* o, dsv4_str key, std::int64_t* out) -> dsv4_error* {
            *out = std::get<std::int64_t>(o->values.at(std::string(sdk::view(key))));
            return nullptr;
        };
        h.option_bool = [](const dsv4_options* o, dsv4_str key, std::int32_t* out) -> dsv4_error* {
            *out = std::get<bool>(o->values.at(std::string(sdk::view(key))));
            return nullptr;
        };
        h.log = [](void*, std::int32_t, dsv4_str) {};
        h.monotonic_us = [](void*) -> std::uint64_t { return 0; };
        h.thread_count = [](void*) -> std::uint32_t { return 1; };
        h.parallel_for = [](void*, std::uint32_t count, void (*body)(void*, std::uint32_t), void* arg) {
            for (std::uint32_t i = 0; i < count; ++i) body(arg, i);
        };
        return h;
    }();
    const std::string path = std::string(DSV4_PLUGIN_DIR) + "/" + name + ".so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Failure(Code::not_found, path + " cannot be loaded");
    const auto entry = reinterpret_cast<dsv4_plugin_entry_fn>(dlsym(library, DSV4_PLUGIN_ENTRY_SYMBOL));
    dsv4_instance instance{};
    instance.struct_size = sizeof instance;
    sdk::check(entry(DSV4_ABI_MAJOR, DSV4_ABI_MINOR)->create(&host, kind, &options, &instance));
    return instance; // lives as long as the process
}

} // namespace

const tokenizer::Tokenizer& tiny_tokenizer() {
    static const tokenizer::Tokenizer t =
        tokenizer::Tokenizer::load(std::filesystem::path(DSV4_SOURCE_DIR) / "models/dsv4-tiny/tokenizer.json",
                                   {.model_vocab_size = 2048})
            .value();
    return t;
}

engine::ParserHandle loaded_parser() {
    static const dsv4_instance instance = load("parser-deepseek-v4", DSV4_KIND_PARSER,
                                               {{{"encoding", std::string("v4-0731")},
                                                 {"strict_reasoning", false},
                                                 {"response_format_in_prompt", false},
                                                 {"buffer_limit_bytes", std::int64_t(1) << 24}}});
    return {static_cast<const dsv4_parser_table*>(instance.table), instance.self};
}

std::optional<runtime::BackendHandle> loaded_cpu_backend() {
    if (!std::filesystem::exists(std::string(DSV4_PLUGIN_DIR) + "/backend-cpu.so")) return std::nullopt;
    static const dsv4_instance instance =
        load("backend-cpu", DSV4_KIND_BACKEND, {{{"accumulate", std::string("f32")}}});
    return runtime::BackendHandle{static_cast<const dsv4_backend_table*>(instance.table), instance.self};
}

void CountingMetrics::update(engine::Metric metric, double value, std::string_view label) {
    const std::lock_guard lock(mutex_);
    auto& [sum, count] = values_[{metric, std::string(label)}];
    sum = engine::info(metric).kind == DSV4_METRIC_GAUGE ? value : sum + value;
    ++count;
}

double CountingMetrics::value(engine::Metric metric, const std::string& label) const {
    const std::lock_guard lock(mutex_);
    const auto it = values_.find({metric, label});
    return it == values_.end() ? 0 : it->second.first;
}

std::size_t CountingMetrics::updates(engine::Metric metric) const {
    const std::lock_guard lock(mutex_);
    std::size_t n = 0;
    for (const auto& [key, value] : values_)
        if (key.first == metric) n += value.second;
    return n;
}

Pending::Pending(engine::Engine& engine, const Ask& ask) : engine_(engine), n_(ask.n) {
    dsv4_generate_request r = sdk::default_request();
    dsv4_chat_request chat{};
    chat.struct_size = sizeof chat;
    chat.thinking = ask.thinking;
    chat.continue_final_message = chat.default_thinking = DSV4_UNSAID;
    chat.messages = sdk::str(ask.messages);
    chat.tools = sdk::str(ask.tools);
    if (!ask.messages.empty())
        r.chat = &chat;
    else if (!ask.text.empty())
        r.prompt_text = sdk::str(ask.text);
    else {
        r.prompt_ids = ask.prompt.data();
        r.prompt_id_count = ask.prompt.size();
    }
    r.n = ask.n;
    r.sampling_said = DSV4_SAID_TEMPERATURE | DSV4_SAID_SEED | DSV4_SAID_PRESENCE_PENALTY;
    r.sampling.temperature = ask.temperature;
    r.sampling.seed = ask.seed;
    r.sampling.presence_penalty = ask.presence;
    r.sampling.logprobs = ask.logprobs;
    r.sampling.bias = ask.bias.data();
    r.sampling.bias_count = std::uint32_t(ask.bias.size());
    r.sampling.stop_ids = ask.stop_ids.data();
    r.sampling.stop_count = std::uint32_t(ask.stop_ids.size());
    r.limits = {ask.max_tokens, ask.min_tokens, ask.max_reasoning, ask.deadline_us};
    std::vector<dsv4_str> stops;
    for (const std::string& s : ask.stops) stops.push_back(sdk::str(s));
    r.stop_strings = stops.data();
    r.stop_string_count = std::uint32_t(stops.size());
    r.include_stop_string = ask.include_stop;
    r.priority = ask.priority;
    r.echo = ask.echo;
    r.cache_salt = sdk::str(ask.salt);
    r.grammar = sdk::str(ask.grammar);
    r.grammar_syntax = DSV4_GRAMMAR_EBNF;
    r.allowed_ids = ask.allowed.data();
    r.allowed_id_count = std::uint32_t(ask.allowed.size());
    r.ignore_eos = ask.ignore_eos;
    r.truncate_prompt_tokens = ask.truncate;
    answer_.completions.resize(n_);
    sdk::check(engine::Engine::service().submit(&engine_, &r, &handle_));
}

Pending::~Pending() { engine::Engine::service().release(&engine_, handle_); }

void Pending::cancel() { engine::Engine::service().cancel(&engine_, handle_); }

bool Pending::step(std::uint64_t timeout_us) {
    const dsv4_event* e = nullptr;
    sdk::check(engine::Engine::service().next(&engine_, handle_, timeout_us, &e));
    if (!e) return false;
    if (answer_.done) {
        ++answer_.errors; // nothing may follow the last final event
        return true;
    }
    if (e->kind == DSV4_EVENT_ACCEPTED) {
        ++answer_.accepted;
        answer_.cached = e->cached_tokens;
        answer_.prompt_tokens = e->prompt_tokens;
        answer_.miss = sdk::view(e->miss_reason);
        answer_.id = sdk::view(e->request_id);
        return true;
    }
    if (e->kind == DSV4_EVENT_ERROR) {
        ++answer_.errors;
        answer_.code = e->code;
        answer_.message = sdk::view(e->message);
        answer_.done = true;
        return true;
    }
    Completed& c = answer_.completions.at(e->index);
    if (e->kind == DSV4_EVENT_FINISHED) {
        c.reason = e->reason;
        c.stop = sdk::view(e->stop);
        c.usage = e->usage;
        c.timings = e->timings;
        ++c.finals;
        answer_.done = std::all_of(answer_.completions.begin(), answer_.completions.end(),
                                   [](const Completed& x) { return x.finals > 0; });
        return true;
    }
    for (std::uint32_t i = 0; i < e->token_count; ++i) {
        c.tokens.push_back(e->tokens[i].id);
        c.logprobs.push_back(e->tokens[i].logprob);
        c.tops.emplace_back(e->tokens[i].top, e->tokens[i].top + e->tokens[i].top_count);
    }
    for (std::uint32_t i = 0; i < e->delta_count; ++i) {
        const dsv4_delta& d = e->deltas[i];
        const std::string text(sdk::view(d.text));
        switch (d.kind) {
        case DSV4_DELTA_REASONING: c.reasoning += text; break;
        case DSV4_DELTA_CONTENT: c.content += text; break;
        case DSV4_DELTA_TOOL_BEGIN: c.calls += "[" + text + "]"; break;
        default: c.calls += text;
        }
    }
    return true;
}

const Answer& Pending::finish(std::uint64_t timeout_us) {
    while (!answer_.done)
        if (!step(timeout_us)) throw Failure(Code::deadline, "the events of a request stopped coming");
    return answer_;
}

engine::EngineConfig Rig::default_config() {
    engine::EngineConfig c;
    c.model_name = "fake";
    c.vocab_size = 2048;
    c.sliding_window = 128;
    c.max_model_len = 4096;
    c.stop_ids = {1};
    c.max_sequences = 8;
    c.max_batched_tokens = 256;
    c.cache_bytes = 64 << 20;
    return c;
}

Rig::Rig(engine::EngineConfig config, FakeOptions fake, engine::GrammarHandle grammar) : backend(std::move(fake)) {
    dsv4_session_config session_config{};
    session_config.struct_size = sizeof session_config;
    session_config.group.world = 1;
    session_config.deterministic = 1;
    session = std::make_unique<runtime::BackendSession>(
        runtime::BackendHandle{&sdk::Backend::table(), static_cast<sdk::Backend*>(&backend)}, session_config);
    engine = std::make_unique<engine::Engine>(engine::EngineParts{.session = *session,
                                                                  .program = fake_program(),
                                                                  .tokenizer = tiny_tokenizer(),
                                                                  .parser = loaded_parser(),
                                                                  .grammar = grammar,
                                                                  .metrics = &metrics,
                                                                  .log = {},
                                                                  .clock_us = {}},
                                              std::move(config));
}

Rig::~Rig() {
    engine.reset();
    session.reset();
    if (check_at_end) CHECK(backend.violations() == std::vector<std::string>{});
}

std::vector<std::int32_t> random_prompt(std::uint64_t seed, std::size_t length) {
    std::mt19937_64 random(seed);
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < length; ++i) tokens.push_back(std::int32_t(20 + random() % 2000));
    return tokens;
}

} // namespace dsv4::test
