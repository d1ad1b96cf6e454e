// The JSON of answers. What comes from a server is untrusted: every member is checked before it is read.
#include "bench/answer.hpp"

#include "dsv4/sdk/result.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace dsv4::bench {

namespace {

using nlohmann::json;

constexpr std::size_t message_limit_bytes = 300;

// Parsers of hostile input: no deeper than an answer ever is, so that neither parsing nor freeing it recurses far.
json parse(std::string_view text) {
    constexpr int depth_limit = 64;
    const auto callback = [](int depth, json::parse_event_t, json&) {
        if (depth > depth_limit) throw Failure(Code::corrupt, "the answer is nested deeper than 64 levels");
        return true;
    };
    return json::parse(text, callback, true);
}

const json* member(const json& object, const char* name) {
    if (!object.is_object()) return nullptr;
    const auto at = object.find(name);
    return at == object.end() ? nullptr : &*at;
}

bool has_text(const json* value) {
    return value && value->is_string() && !value->get_ref<const std::string&>().empty();
}

bool has_output(const json& choice) {
    if (has_text(member(choice, "text"))) return true;
    const json* delta = member(choice, "delta");
    if (!delta) return false;
    for (const char* name : {"content", "reasoning_content", "reasoning", "refusal"})
        if (has_text(member(*delta, name))) return true;
    const json* calls = member(*delta, "tool_calls");
    return calls && calls->is_array() && !calls->empty();
}

std::optional<Usage> usage_of(const json& answer) {
    const json* usage = member(answer, "usage");
    if (!usage || usage->is_null()) return {};
    const json* prompt = member(*usage, "prompt_tokens");
    const json* completion = member(*usage, "completion_tokens");
    if (!prompt || !completion || !prompt->is_number_unsigned() || !completion->is_number_unsigned())
        throw Failure(Code::corrupt, "the usage of the answer has no prompt_tokens and completion_tokens");
    return Usage{prompt->get<std::uint64_t>(), completion->get<std::uint64_t>()};
}

std::string shorten(std::string text) {
    if (text.size() > message_limit_bytes) text.replace(message_limit_bytes - 3, text.npos, "...");
    return text;
}

// The text of an error member: {"error": {"message": ...}} or {"error": "..."}.
std::string text_of_error(const json& error) {
    const json* message = member(error, "message");
    if (has_text(message)) return message->get<std::string>();
    return error.is_string() ? error.get<std::string>() : error.dump(-1, ' ', false, json::error_handler_t::replace);
}

const json& choices_of(const json& answer) {
    const json* choices = member(answer, "choices");
    if (!choices || !choices->is_array()) throw Failure(Code::corrupt, "the answer has no array 'choices'");
    return *choices;
}

} // namespace

const char* outcome_name(Outcome outcome) {
    switch (outcome) {
    case Outcome::ok: return "ok";
    case Outcome::http_status: return "http_status";
    case Outcome::connection: return "connection";
    case Outcome::timeout: return "timeout";
    case Outcome::malformed: return "malformed";
    case Outcome::stream_error: return "stream_error";
    case Outcome::interrupted: return "interrupted";
    }
    return "unknown";
}

void StreamReader::end(Outcome outcome, std::string message, std::int64_t now_us) {
    ended_ = true;
    sample_.outcome = outcome;
    sample_.message = shorten(std::move(message));
    sample_.end_us = now_us;
}

void StreamReader::event(const SseEvent& event, std::int64_t now_us) {
    if (event.data == "[DONE]") return end(Outcome::ok, {}, now_us);
    if (event.type == "error") return end(Outcome::stream_error, error_message(event.data), now_us);
    const json chunk = parse(event.data);
    const json* error = member(chunk, "error");
    if (error && !error->is_null()) return end(Outcome::stream_error, text_of_error(*error), now_us);
    bool output = false;
    for (const json& choice : choices_of(chunk)) output = output || has_output(choice);
    if (output) sample_.outputs_us.push_back(now_us);
    if (const auto usage = usage_of(chunk)) sample_.usage = usage;
}

void StreamReader::feed(std::string_view bytes, std::int64_t now_us) {
    if (ended_) return;
    try {
        for (const SseEvent& e : parser_.feed(bytes)) {
            event(e, now_us);
            if (ended_) return;
        }
    } catch (const json::exception& e) {
        end(Outcome::malformed, "an event is no JSON: " + std::string(e.what()), now_us);
    } catch (const Failure& e) {
        end(Outcome::malformed, e.error().message, now_us);
    }
}

void StreamReader::finish(std::int64_t now_us) {
    if (!ended_) end(Outcome::malformed, "the stream ended without [DONE]", now_us);
}

void read_whole_answer(std::string_view body, Sample& sample) {
    try {
        const json answer = parse(body);
        const json* error = member(answer, "error");
        if (error && !error->is_null())
            throw Failure(Code::corrupt, "an error with status 200: " + text_of_error(*error));
        if (choices_of(answer).empty()) throw Failure(Code::corrupt, "the answer has no choice");
        sample.usage = usage_of(answer);
        sample.outcome = Outcome::ok;
    } catch (const json::exception& e) {
        sample.outcome = Outcome::malformed;
        sample.message = shorten("the answer is no JSON: " + std::string(e.what()));
    } catch (const Failure& e) {
        sample.outcome = Outcome::malformed;
        sample.message = shorten(e.error().message);
    }
}

std::string error_message(std::string_view body) {
    try {
        const json answer = parse(body);
        const json* error = member(answer, "error");
        if (error && !error->is_null()) return shorten(text_of_error(*error));
        const json* message = member(answer, "message");
        if (has_text(message)) return shorten(message->get<std::string>());
    } catch (const json::exception&) { // not JSON: the text itself is the message
    } catch (const Failure&) {}
    return shorten(std::string(body.substr(0, message_limit_bytes + 1)));
}

std::string first_model(std::string_view body) {
    try {
        const json answer = parse(body);
        const json* data = member(answer, "data");
        if (data && data->is_array() && !data->empty()) {
            const json* id = member(data->front(), "id");
            if (has_text(id)) return id->get<std::string>();
        }
    } catch (const json::exception&) { // answered below
    }
    throw Failure(Code::corrupt, "the server's /v1/models names no model", "name one with --model");
}

} // namespace dsv4::bench
