// The error answers of the API: status, machine-readable code, and the body that clients read.
#pragma once

#include "dsv4/sdk/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dsv4::openai {

struct ApiError {
    int status = 500;
    std::string type = "server_error";
    std::string code;                                          // empty: null
    std::string param;                                         // the request field at fault; empty: null
    std::string message;                                       // what is wrong and, where known, what to do
    std::optional<std::int64_t> prompt_tokens, context_tokens; // of a prompt that is too long
    std::optional<int> retry_after_s;
};

// Thrown where a request is read; never leaves the plugin.
struct Refusal {
    ApiError error;
};

// 400. The two make one sentence: "temperature" "must be between 0 and 2".
[[noreturn]] void refuse(std::string_view field, std::string_view problem);
// 400 with code unsupported_parameter.
[[noreturn]] void refuse_unsupported(std::string_view field, std::string_view problem);

ApiError bad_request(std::string message, std::string param = {}, std::string code = {});
ApiError unknown_path(std::string_view path);
ApiError wrong_method(std::string_view method, std::string_view path);
ApiError unauthorized();
ApiError unknown_model(std::string_view model);
ApiError too_large(std::uint64_t limit_bytes);
ApiError unavailable(std::string message);
ApiError internal();

// What an error of the generation service means over HTTP. `retryable`: the service says that trying again may help.
ApiError from_service(const Error& error, bool retryable);

// {"error":{...}}
std::string to_json(const ApiError& error);

} // namespace dsv4::openai
