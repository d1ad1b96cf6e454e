// Error answers, and what the generation service's errors mean to a client.
#include "api_error.hpp"

#include "json_text.hpp"

#include <charconv>

namespace dsv4::openai {
namespace {

constexpr std::string_view context_sentence = "This model's maximum context length is ";

// The number behind `lead` in `text`.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view lead) {
    const std::size_t at = text.find(lead);
    if (at == std::string_view::npos) return std::nullopt;
    std::int64_t value = 0;
    const char* first = text.data() + at + lead.size();
    if (std::from_chars(first, text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
    return value;
}

// "messages" of "messages[2].content: must be ...".
std::string_view leading_field(std::string_view message) {
    const std::size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    const bool is_path = end != 0 && end != std::string_view::npos &&
                         (message[end] == '.' || message[end] == '[' || message[end] == ':');
    return is_path ? message.substr(0, end) : std::string_view{};
}

std::string sentence(const Error& error) {
    return error.fix.empty() ? error.message : error.message + " (" + error.fix + ")";
}

void append_member(std::string& out, std::string_view key, std::string_view text) {
    out += ',';
    append_quoted(out, key);
    out += ':';
    if (text.empty())
        out += "null";
    else
        append_quoted(out, text);
}

} // namespace

ApiError bad_request(std::string message, std::string param, std::string code) {
    ApiError e;
    e.status = 400;
    e.type = "invalid_request_error";
    e.code = std::move(code);
    e.param = std::move(param);
    e.message = std::move(message);
    return e;
}

void refuse(std::string_view field, std::string_view problem) {
    std::string message(field);
    message += ' ';
    message += problem;
    throw Refusal{bad_request(std::move(message), std::string(leading_field(std::string(field) + ':')))};
}

void refuse_unsupported(std::string_view field, std::string_view problem) {
    std::string message(field);
    message += ' ';
    message += problem;
    throw Refusal{bad_request(std::move(message), std::string(field), "unsupported_parameter")};
}

ApiError unknown_path(std::string_view path) {
    ApiError e =
        bad_request("there is no " + std::string(path.substr(0, 200)) + " here; GET /v1/models lists the models");
    e.status = 404;
    return e;
}

ApiError wrong_method(std::string_view method, std::string_view path) {
    ApiError e = bad_request(std::string(path.substr(0, 200)) + " does not answer " + std::string(method));
    e.status = 405;
    return e;
}

ApiError unauthorized() {
    ApiError e = bad_request("a valid API key is needed: send `Authorization: Bearer KEY`", {}, "invalid_api_key");
    e.status = 401;
    return e;
}

ApiError unknown_model(std::string_view model) {
    ApiError e = bad_request("the model `" + std::string(model.substr(0, 200)) +
                                 "` is not served here; GET /v1/models lists the models",
                             "model", "model_not_found");
    e.status = 404;
    return e;
}

ApiError too_large(std::uint64_t limit_bytes) {
    ApiError e = bad_request("the request body is larger than " + std::to_string(limit_bytes) + " bytes", {},
                             "request_too_large");
    e.status = 413;
    return e;
}

ApiError unavailable(std::string message) {
    ApiError e;
    e.status = 503;
    e.code = "service_unavailable";
    e.message = std::move(message);
    e.retry_after_s = 1;
    return e;
}

ApiError internal() {
    ApiError e;
    e.code = "internal_error";
    e.message = "the server failed to complete this request; the server's log says why";
    return e;
}

ApiError from_service(const Error& error, bool retryable) {
    switch (error.code) {
    case Code::invalid:
    case Code::not_found: {
        ApiError e = bad_request(sentence(error), std::string(leading_field(error.message)));
        if (error.message.find(context_sentence) != std::string::npos) {
            e.code = "context_length_exceeded";
            e.context_tokens = number_behind(error.message, context_sentence);
            e.prompt_tokens = number_behind(error.message, "your prompt has ");
        }
        return e;
    }
    case Code::unsupported:
        return bad_request(sentence(error), std::string(leading_field(error.message)), "unsupported_parameter");
    case Code::exhausted: {
        ApiError e;
        e.status = 429;
        e.type = "rate_limit_error";
        e.code = "rate_limit_exceeded";
        e.message = sentence(error);
        e.retry_after_s = 1;
        return e;
    }
    case Code::environment:
    case Code::cancelled: return unavailable(sentence(error));
    case Code::deadline: return unavailable(sentence(error));
    default: return retryable ? unavailable("the engine failed; the request may be sent again") : internal();
    }
}

std::string to_json(const ApiError& error) {
    std::string out = "{\"error\":{\"message\":";
    append_quoted(out, error.message);
    append_member(out, "type", error.type);
    append_member(out, "param", error.param);
    append_member(out, "code", error.code);
    out += ",\"status\":";
    append_number(out, std::int64_t{error.status});
    if (error.prompt_tokens) {
        out += ",\"n_prompt_tokens\":";
        append_number(out, *error.prompt_tokens);
    }
    if (error.context_tokens) {
        out += ",\"n_ctx\":";
        append_number(out, *error.context_tokens);
    }
    out += "}}";
    return out;
}

} // namespace dsv4::openai
