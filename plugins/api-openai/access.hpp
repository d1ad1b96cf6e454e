// Who may call: keys, and browsers of other origins.
#pragma once

#include "settings.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace dsv4::openai {

// The number of the key in `authorization` ("Bearer KEY") or `x_api_key`, or nothing. Takes the same time for every
// wrong key of a length.
std::optional<std::size_t> find_key(const Settings& settings, std::string_view authorization,
                                    std::string_view x_api_key);

// What Access-Control-Allow-Origin says to a page of `origin`; empty: nothing.
std::string allowed_origin(const Settings& settings, std::string_view origin);

// A page of another origin than `host` that is not allowed. Browsers send some requests of such pages without asking
// first, and a server without keys would run them.
bool is_foreign_page(const Settings& settings, std::string_view origin, std::string_view host);

// The request id that a client gave, if it can stand in headers and logs (1 to 128 printable ASCII characters).
bool is_request_id(std::string_view text) noexcept;
// A W3C traceparent of version 00.
bool is_traceparent(std::string_view text) noexcept;

} // namespace dsv4::openai
