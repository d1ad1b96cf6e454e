// Where and when a benchmark ran.
#pragma once

#include <string>

namespace dsv4::bench {

struct Machine {
    std::string cpu;    // model name, "unknown" where the system tells none
    unsigned cores = 0; // that this process may use
    std::string system; // kernel name and release
};
Machine this_machine();

// Now, as 2026-01-31T12:00:00Z.
std::string utc_now();

} // namespace dsv4::bench
