// Ids of trace spans.
#include "core/host/span.hpp"

#include <sodium.h>

#include <algorithm>

namespace dsv4::host {
namespace {

std::string random_hex(std::size_t bytes) {
    unsigned char random[16];
    randombytes_buf(random, bytes);
    char hex[33];
    sodium_bin2hex(hex, sizeof hex, random, bytes);
    return hex;
}

bool is_id(std::string_view s) {
    const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return std::all_of(s.begin(), s.end(), hex) && s.find_first_not_of('0') != s.npos;
}

} // namespace

TraceIds trace_ids(std::string_view t) {
    // "00-<32 hex>-<16 hex>-<2 hex>"
    if (t.size() >= 55 && t.substr(0, 2) != "ff" && t[2] == '-' && t[35] == '-' && t[52] == '-' &&
        is_id(t.substr(3, 32)) && is_id(t.substr(36, 16)))
        return {std::string(t.substr(3, 32)), std::string(t.substr(36, 16))};
    return {random_hex(16), {}};
}

std::string new_span_id() { return random_hex(8); }

} // namespace dsv4::host
