// The address of an endpoint as a user writes it: http://host[:port][/prefix].
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::bench {

struct Url {
    std::vector<std::string> addresses; // numeric, without brackets, in the order to try
    std::uint16_t port = 80;
    std::string host;   // for the Host header: as written, with the port
    std::string prefix; // "" or "/some/path", without the trailing slash and without a last "/v1"
};

// Hosts are IPv4 addresses, IPv6 addresses in brackets, or localhost (127.0.0.1, then ::1): a benchmark does not depend
// on name servers. Throws Failure(unsupported) for https and names, Failure(invalid) for what is no URL.
Url parse_url(std::string_view text);

} // namespace dsv4::bench
