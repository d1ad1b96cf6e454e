// Splits a URL; what it leaves out (user, query, fragment) is refused, not ignored.
#include "bench/url.hpp"

#include "dsv4/sdk/result.hpp"

#include <arpa/inet.h>
#include <charconv>

namespace dsv4::bench {

namespace {

bool is_address(int family, const std::string& text) {
    in6_addr room{};
    return inet_pton(family, text.c_str(), &room) == 1;
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
    throw Failure(Code::invalid, "the URL '" + std::string(text) + "' " + why, "write it as http://127.0.0.1:8000");
}

} // namespace

Url parse_url(std::string_view text) {
    constexpr std::string_view scheme = "http://";
    if (text.starts_with("https://"))
        throw Failure(Code::unsupported, "https is not supported: '" + std::string(text) + "'",
                      "measure the server behind its TLS proxy, over http");
    if (!text.starts_with(scheme)) refuse(text, "does not start with http://");
    for (const char c : text)
        if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f)
            refuse(text, "has a character that no URL has");
    std::string_view rest = text.substr(scheme.size());
    if (rest.find_first_of("?#") != rest.npos) refuse(text, "has a query or a fragment");
    const std::size_t slash = rest.find('/');
    const std::string_view authority = rest.substr(0, slash);
    std::string_view path = slash == rest.npos ? std::string_view() : rest.substr(slash);
    if (authority.find('@') != authority.npos) refuse(text, "has a user name");

    Url url;
    url.host = authority;
    std::string_view host = authority, port;
    if (authority.starts_with('[')) {
        const std::size_t end = authority.find(']');
        if (end == authority.npos) refuse(text, "has a bracket that does not close");
        host = authority.substr(1, end - 1);
        port = authority.substr(end + 1);
        if (!is_address(AF_INET6, std::string(host))) refuse(text, "has no IPv6 address in its brackets");
        url.addresses = {std::string(host)};
    } else {
        const std::size_t colon = authority.find(':');
        host = authority.substr(0, colon);
        port = colon == authority.npos ? std::string_view() : authority.substr(colon);
        if (host.empty()) refuse(text, "has no host");
        if (host == "localhost")
            url.addresses = {"127.0.0.1", "::1"};
        else if (is_address(AF_INET, std::string(host)))
            url.addresses = {std::string(host)};
        else
            throw Failure(Code::unsupported,
                          "the host '" + std::string(host) + "' is neither an IP address nor localhost",
                          "use its address, as http://10.0.0.1:8000");
    }
    if (!port.empty()) {
        const char* end = port.data() + port.size();
        const auto [at, error] = std::from_chars(port.data() + 1, end, url.port);
        if (port[0] != ':' || error != std::errc() || at != end || url.port == 0)
            refuse(text, "has no port from 1 to 65535 after its host");
    }
    const auto drop_slashes = [&] {
        while (path.ends_with('/')) path.remove_suffix(1);
    };
    drop_slashes();
    if (path.ends_with("/v1")) path.remove_suffix(3);
    drop_slashes();
    url.prefix = path;
    return url;
}

} // namespace dsv4::bench
