// Compares keys in constant time; checks origins and identifying headers.
#include "access.hpp"

#include <algorithm>

namespace dsv4::openai {
namespace {

bool same(std::string_view a, std::string_view b) noexcept {
    if (a.size() != b.size()) return false;
    volatile unsigned char difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        difference = static_cast<unsigned char>(difference |
                                                (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
    return difference == 0;
}

bool is_hex(char c) noexcept { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

} // namespace

std::optional<std::size_t> find_key(const Settings& settings, std::string_view authorization,
                                    std::string_view x_api_key) {
    std::string_view given = x_api_key;
    constexpr std::string_view scheme = "bearer ";
    const auto same_letter = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
    if (authorization.size() > scheme.size() &&
        std::equal(scheme.begin(), scheme.end(), authorization.begin(), same_letter))
        given = authorization.substr(scheme.size());
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < settings.api_keys.size(); ++i)
        if (same(settings.api_keys[i], given)) found = i;
    return found;
}

std::string allowed_origin(const Settings& settings, std::string_view origin) {
    if (origin.empty()) return {};
    if (settings.cors) return "*";
    const auto& origins = settings.allowed_origins;
    return std::find(origins.begin(), origins.end(), origin) == origins.end() ? std::string() : std::string(origin);
}

bool is_foreign_page(const Settings& settings, std::string_view origin, std::string_view host) {
    if (origin.empty() || !allowed_origin(settings, origin).empty()) return false;
    const std::size_t scheme = origin.find("://");
    return scheme == std::string_view::npos || origin.substr(scheme + 3) != host;
}

bool is_request_id(std::string_view text) noexcept {
    return !text.empty() && text.size() <= 128 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

bool is_traceparent(std::string_view text) noexcept {
    if (text.size() != 55 || !text.starts_with("00-")) return false;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (const bool dash = i == 2 || i == 35 || i == 52; dash ? text[i] != '-' : !is_hex(text[i])) return false;
    return true;
}

} // namespace dsv4::openai
