// The plugin: the machine as one device, its options, and the door to sessions.
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "dsv4/sdk/backend.hpp"
#include "executor/executable.hpp"
#include "executor/session.hpp"
#include "executor/state.hpp"

namespace dsv4::cpu {
namespace {

std::string processor_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("model name"))
            if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
    return "CPU";
}

std::string architecture() {
    utsname u{};
    return uname(&u) == 0 ? u.machine : "unknown";
}

std::uint64_t pages(int name) {
    const long count = sysconf(name), size = sysconf(_SC_PAGESIZE);
    return count > 0 && size > 0 ? static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size) : 0;
}

Accum read_accumulate(const std::string& text) {
    if (text == "f32") return Accum::f32;
    if (text == "f64") return Accum::f64;
    throw Failure(Code::invalid, "option accumulate of backend-cpu is '" + text + "'", "set it to f32 or f64");
}

class CpuBackend final : public sdk::Backend {
  public:
    CpuBackend(const sdk::Host& host, const sdk::Options& options)
        : host_(host),
          accum_(read_accumulate(options.text("accumulate"))),
          name_(processor_name()),
          arch_(architecture()) {}

    std::span<const dsv4_device_info> devices() override {
        device_ = {};
        device_.struct_size = sizeof device_;
        device_.name = sdk::str(name_);
        device_.arch = sdk::str(arch_);
        device_.memory_bytes = pages(_SC_PHYS_PAGES);
        device_.free_bytes = pages(_SC_AVPHYS_PAGES);
        return {&device_, 1};
    }

    void supports(const program::Program& program) override {
        compile_program(program, {sizeof(dsv4_compile_options), 1, 1}, accum_, nullptr, nullptr);
    }

    std::vector<dsv4_state_layout> state_layouts(const program::Program& program) override {
        std::vector<dsv4_state_layout> out;
        for (const KindLayout& l : layouts_of(program)) {
            dsv4_state_layout layout{};
            layout.struct_size = sizeof layout;
            layout.kind = l.kind;
            layout.positions_per_page = l.positions_per_page;
            layout.rows_per_page = l.rows_per_page();
            layout.page_bytes = l.page_bytes();
            layout.layout_tag = l.tag();
            out.push_back(layout);
        }
        return out;
    }

    std::unique_ptr<sdk::Session> open(const dsv4_session_config& config) override {
        return std::make_unique<Session>(host_, accum_, config);
    }

  private:
    sdk::Host host_;
    Accum accum_;
    std::string name_, arch_;
    dsv4_device_info device_{};
};

} // namespace
} // namespace dsv4::cpu

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.0.0", .licence = "Apache-2.0", .posture = DSV4_POSTURE_TRUSTED_INPUT}),
            dsv4::cpu::CpuBackend)
