// Reads /proc/cpuinfo and asks the kernel.
#include "bench/machine.hpp"

#include <ctime>
#include <fstream>
#include <sched.h>
#include <sys/utsname.h>

namespace dsv4::bench {

Machine this_machine() {
    Machine machine;
    machine.cpu = "unknown";
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(": ");
        if (!line.starts_with("model name") || colon == line.npos) continue;
        machine.cpu = line.substr(colon + 2);
        break;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) machine.cores = unsigned(CPU_COUNT(&set));
    utsname name{};
    if (uname(&name) == 0) machine.system = std::string(name.sysname) + " " + name.release;
    return machine;
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

} // namespace dsv4::bench
