// Shared request fields: model, streaming, limits, sampling, stops, and what constrains the text.
#include "request_fields.hpp"

#include "api_error.hpp"
#include "json_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace dsv4::openai {
namespace {

constexpr std::size_t max_schema_bytes = 256 * 1024;
constexpr std::size_t max_stop_strings = 16;
constexpr std::size_t max_list = 4096; // ids and biases of one request

// Sorted. Fields that are read, and those of other servers and clients that are accepted without effect.
constexpr auto known_fields = std::to_array<std::string_view>({
    "add_generation_prompt",
    "add_special_tokens",
    "allowed_token_ids",
    "bad_words",
    "best_of",
    "cache_prompt",
    "cache_salt",
    "chat_template",
    "chat_template_kwargs",
    "continue_final_message",
    "ebnf",
    "echo",
    "enable_thinking",
    "frequency_penalty",
    "function_call",
    "functions",
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "id_slot",
    "ignore_eos",
    "include_reasoning",
    "include_stop_str_in_output",
    "json_schema",
    "length_penalty",
    "logit_bias",
    "logprob_token_ids",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "min_p",
    "min_tokens",
    "modalities",
    "model",
    "n",
    "output_config",
    "parallel_tool_calls",
    "parse_special",
    "prediction",
    "presence_penalty",
    "priority",
    "prompt",
    "prompt_cache_key",
    "prompt_logprobs",
    "reasoning",
    "reasoning_budget",
    "reasoning_effort",
    "reasoning_format",
    "regex",
    "repeat_penalty",
    "repetition_penalty",
    "response_format",
    "return_token_ids",
    "return_tokens_as_token_ids",
    "safety_identifier",
    "seed",
    "separate_reasoning",
    "service_tier",
    "session_id",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stop",
    "stop_token_ids",
    "store",
    "stream",
    "stream_interval",
    "stream_options",
    "structural_tag",
    "structured_outputs",
    "suffix",
    "temperature",
    "think",
    "thinking",
    "thinking_token_budget",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "truncate_prompt_tokens",
    "use_beam_search",
    "user",
    "verbosity",
});
static_assert(std::is_sorted(known_fields.begin(), known_fields.end()));

template <class T, class V>
void take(const std::optional<V>& value, T& out, std::uint64_t said, dsv4_generate_request& request) {
    if (!value) return;
    out = static_cast<T>(*value);
    request.sampling_said |= said;
}

void read_sampling(const Fields& fields, const TranslateContext& context, dsv4_generate_request& request) {
    dsv4_sampling& s = request.sampling;
    take(fields.number("temperature", 0, 2), s.temperature, DSV4_SAID_TEMPERATURE, request);
    auto top_p_value = fields.number("top_p", 0, 1);
    if (top_p_value && *top_p_value == 0) refuse("top_p", "must be above 0");
    if (!top_p_value && context.settings.agent_top_p && fields.raw("tools").size() > 2)
        top_p_value = context.settings.agent_top_p;
    take(top_p_value, s.top_p, DSV4_SAID_TOP_P, request);
    auto top_k_value = fields.integer("top_k", -1);
    if (top_k_value) top_k_value = std::clamp<std::int64_t>(*top_k_value, 0, std::numeric_limits<std::int32_t>::max());
    take(top_k_value, s.top_k, DSV4_SAID_TOP_K, request);
    take(fields.number("min_p", 0, 1), s.min_p, DSV4_SAID_MIN_P, request);
    take(fields.number("presence_penalty", -2, 2), s.presence_penalty, DSV4_SAID_PRESENCE_PENALTY, request);
    take(fields.number("frequency_penalty", -2, 2), s.frequency_penalty, DSV4_SAID_FREQUENCY_PENALTY, request);
    for (const char* name : {"repeat_penalty", "repetition_penalty"}) {
        const auto value = fields.number(name);
        if (value && !(*value > 0 && *value <= 100)) refuse(name, "must be above 0 and at most 100");
        take(value, s.repetition_penalty, DSV4_SAID_REPETITION_PENALTY, request);
    }
    take(fields.integer("seed", std::numeric_limits<std::int64_t>::min()), s.seed, DSV4_SAID_SEED, request);
}

void read_bias(const Fields& fields, std::uint32_t vocab_size, Call& call, dsv4_generate_request& request) {
    const auto map = fields.object("logit_bias");
    if (!map) return;
    for (const std::string& key : map->others({})) {
        std::int32_t id = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
        if (error != std::errc{} || end != key.data() + key.size() || id < 0 ||
            (vocab_size > 0 && std::uint32_t(id) >= vocab_size))
            refuse("logit_bias", "has a key that is not a token id of this model");
        const auto value = map->number(key, -100, 100);
        if (value) call.bias.push_back({id, float(*value)});
    }
    if (call.bias.size() > max_list) refuse("logit_bias", "may name at most " + std::to_string(max_list) + " tokens");
    std::sort(call.bias.begin(), call.bias.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
    request.sampling.bias = call.bias.data();
    request.sampling.bias_count = std::uint32_t(call.bias.size());
}

void read_stops(const Fields& fields, std::uint32_t vocab_size, Call& call, dsv4_generate_request& request) {
    std::vector<std::string> stops;
    if (const std::string_view value = fields.raw("stop"); !value.empty()) {
        if (value.front() == '"')
            stops.push_back(read_text(value, "stop"));
        else if (value.front() == '[')
            stops = *fields.texts("stop", max_stop_strings);
        else
            refuse("stop", "must be a string or an array of strings");
    }
    for (std::string& stop : stops)
        if (!stop.empty()) call.stop_strings.push_back(call.keep(std::move(stop)));
    request.stop_strings = call.stop_strings.data();
    request.stop_string_count = std::uint32_t(call.stop_strings.size());
    request.include_stop_string = fields.flag("include_stop_str_in_output", false);

    call.stop_ids = fields.token_ids("stop_token_ids", vocab_size).value_or(std::vector<std::int32_t>{});
    if (call.stop_ids.size() > max_list)
        refuse("stop_token_ids", "may name at most " + std::to_string(max_list) + " tokens");
    request.sampling.stop_ids = call.stop_ids.data();
    request.sampling.stop_count = std::uint32_t(call.stop_ids.size());

    if (auto allowed = fields.token_ids("allowed_token_ids", vocab_size)) {
        if (allowed->empty()) refuse("allowed_token_ids", "must name at least one token");
        call.allowed_ids = std::move(*allowed);
    }
    request.allowed_ids = call.allowed_ids.data();
    request.allowed_id_count = std::uint32_t(call.allowed_ids.size());
    request.ignore_eos = fields.flag("ignore_eos", false);
}

void read_limits(const Fields& fields, const TranslateContext& context, Call& call, dsv4_generate_request& request) {
    const std::int64_t max_n = std::min<std::int64_t>(context.settings.max_n, 128);
    request.n = std::uint32_t(fields.integer("n", 1, max_n).value_or(1));
    if (const auto best_of = fields.integer("best_of", 1); best_of && *best_of != request.n)
        refuse_unsupported("best_of", "must equal n: this server returns every completion that it makes");

    auto max_tokens = fields.integer("max_completion_tokens", 1);
    if (!max_tokens) max_tokens = fields.integer("max_tokens", 1);
    const std::int64_t silent = call.kind == CallKind::completion ? 16 : context.settings.default_max_tokens;
    request.limits.max_tokens = max_tokens.value_or(silent > 0 ? silent : -1);
    request.limits.min_tokens = fields.integer("min_tokens", 0).value_or(0);
    if (request.limits.max_tokens > 0 && request.limits.min_tokens > request.limits.max_tokens)
        refuse("min_tokens", "must not be above max_tokens");
    request.truncate_prompt_tokens = fields.integer("truncate_prompt_tokens", -1).value_or(0);
    // Here a lower number is served sooner; the service runs higher ones first.
    const auto priority = fields.integer("priority", -1'000'000'000, 1'000'000'000);
    request.priority = std::int32_t(-priority.value_or(0));
}

void read_salt(const Fields& fields, Call& call) {
    for (const char* name : {"cache_salt", "session_id", "prompt_cache_key"})
        if (const auto value = fields.text(name)) {
            if (value->size() > 1024) refuse(name, "may be at most 1024 bytes long");
            if (!call.cache_salt.empty()) call.cache_salt += '\n';
            call.cache_salt += *value;
        }
}

void refuse_unoffered(const Fields& fields) {
    if (fields.flag("use_beam_search", false)) refuse_unsupported("use_beam_search", "is not offered");
    if (const auto penalty = fields.number("length_penalty"); penalty && *penalty != 1)
        refuse_unsupported("length_penalty", "belongs to beam search, which is not offered");
    for (const char* name : {"bad_words", "logprob_token_ids"})
        if (fields.raw(name).size() > 2) refuse_unsupported(name, "is not offered");
    if (const auto modalities = fields.texts("modalities", 16))
        for (const std::string& one : *modalities)
            if (one != "text") refuse_unsupported("modalities", "may name text only");
}

// The schema of {"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}.
std::string schema_of(const Fields& format) {
    const auto named = format.object("json_schema");
    const std::string_view schema = named ? named->raw("schema") : std::string_view{};
    if (schema.empty() || schema.front() != '{') refuse("response_format.json_schema.schema", "must be an object");
    return std::string(schema);
}

std::string quoted_ebnf(std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            out += "\\x";
            out += hex[byte >> 4];
            out += hex[byte & 15];
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string alternatives(const Fields& fields, std::string_view name) {
    const auto choices = fields.texts(name, 1024);
    if (choices->empty()) refuse(fields.path(name), "must hold at least one choice");
    std::string out = "root ::= ";
    for (std::size_t i = 0; i < choices->size(); ++i) out += (i ? " | " : "") + quoted_ebnf((*choices)[i]);
    return out;
}

std::string schema_text(const Fields& fields, std::string_view name) {
    const std::string_view value = fields.raw(name);
    if (value.front() == '{') return std::string(value);
    // Some clients send the schema as a text.
    std::string text = value.front() == '"' ? read_text(value, fields.path(name)) : std::string();
    try {
        (void)object_members(text, name);
    } catch (const Failure&) {
        refuse(fields.path(name), "must be a JSON schema");
    }
    return text;
}

} // namespace

void read_model(const Fields& fields, const TranslateContext& context, Call& call) {
    const auto name = fields.text("model");
    if (!name) return;
    call.model = *name;
    if (context.models.empty() || context.settings.ignore_model) return;
    std::string_view asked = *name;
    // Clients add a note such as "[1m]" to a name they know.
    if (asked.ends_with(']')) asked = asked.substr(0, asked.rfind('['));
    for (const std::string& served : context.models)
        if (served == *name || served == asked) return;
    throw Refusal{unknown_model(*name)};
}

void read_unknown(const Fields& fields, const TranslateContext& context, Call& call) {
    call.unknown_fields = fields.others(known_fields);
    if (context.settings.strict_params && !call.unknown_fields.empty())
        refuse_unsupported(call.unknown_fields.front().substr(0, 100), "is not a parameter of this server");
}

void read_common(const Fields& fields, const TranslateContext& context, Call& call, dsv4_generate_request& request) {
    read_model(fields, context, call);
    read_unknown(fields, context, call);
    refuse_unoffered(fields);
    call.stream = fields.flag("stream", false);
    if (const auto options = fields.object("stream_options")) {
        call.include_usage = call.stream && options->flag("include_usage", false);
        call.continuous_usage = call.stream && options->flag("continuous_usage_stats", false);
    }
    call.include_usage = call.include_usage || context.settings.always_include_usage;
    (void)fields.integer("stream_interval", 1);
    read_limits(fields, context, call, request);
    read_sampling(fields, context, request);
    read_bias(fields, context.vocab_size(), call, request);
    read_stops(fields, context.vocab_size(), call, request);
    read_salt(fields, call);
    call.return_token_ids = fields.flag("return_token_ids", false);
    call.tokens_as_ids = fields.flag("return_tokens_as_token_ids", false);
    if (fields.integer("prompt_logprobs", 0, 20))
        refuse_unsupported("prompt_logprobs", "is not offered; use echo with logprobs on /v1/completions");
}

Constraint read_constraint(const Fields& fields) {
    Constraint out;
    const auto set = [&](Constraint::Kind kind, std::string field, std::string text) {
        if (out.kind != Constraint::Kind::none)
            refuse(field, "cannot be combined with " + out.field + ": one constraint a request");
        out = {kind, std::move(field), std::move(text)};
    };
    using enum Constraint::Kind;
    if (const auto format = fields.object("response_format")) {
        const auto type = format->text("type");
        if (!type) refuse("response_format.type", "must be text, json_object or json_schema");
        if (*type == "json_object")
            set(any_object, "response_format", R"({"type":"object"})");
        else if (*type == "json_schema")
            set(schema, "response_format", schema_of(*format));
        else if (*type != "text")
            refuse("response_format.type", "must be text, json_object or json_schema");
    }
    const auto read_group = [&](const Fields& from, std::string_view json, std::string_view choice,
                                std::string_view ebnf, std::initializer_list<std::string_view> unoffered) {
        if (!json.empty() && from.has(json)) set(schema, from.path(json), schema_text(from, json));
        if (!choice.empty() && from.has(choice)) set(grammar, from.path(choice), alternatives(from, choice));
        if (from.has(ebnf)) set(grammar, from.path(ebnf), *from.text(ebnf));
        for (const std::string_view name : unoffered)
            if (from.has(name)) refuse_unsupported(from.path(name), "is not offered; use a JSON schema or a grammar");
    };
    read_group(fields, "guided_json", "guided_choice", "guided_grammar", {"guided_regex", "regex", "structural_tag"});
    read_group(fields, "json_schema", {}, "grammar", {});
    read_group(fields, {}, {}, "ebnf", {});
    if (const auto nested = fields.object("structured_outputs"))
        read_group(*nested, "json", "choice", "grammar", {"regex", "structural_tag"});
    if (out.text.size() > max_schema_bytes) {
        ApiError error = bad_request(out.field + " is larger than " + std::to_string(max_schema_bytes) + " bytes",
                                     out.field, "invalid_json_schema");
        throw Refusal{std::move(error)};
    }
    return out;
}

dsv4_str Call::keep(std::string text) {
    const std::string& kept = texts.emplace_back(std::move(text));
    return {kept.data(), kept.size()};
}

void Call::set_context(std::string_view id, std::string_view trace, std::string_view salt) {
    request_id = id;
    traceparent = trace;
    if (!salt.empty()) cache_salt = std::string(salt) + '\n' + cache_salt;
    for (dsv4_generate_request& request : requests) {
        request.cache_salt = {cache_salt.data(), cache_salt.size()};
        request.request_id = {request_id.data(), request_id.size()};
        request.traceparent = {traceparent.data(), traceparent.size()};
    }
}

} // namespace dsv4::openai
