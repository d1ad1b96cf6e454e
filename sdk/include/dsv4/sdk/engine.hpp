// Base class of a foreign engine: turns a serving plan into processes for the host to start. See dsv4/engine.h.
#pragma once

#include "dsv4/engine.h"
#include "dsv4/sdk/host.hpp"
#include "dsv4/sdk/plugin.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsv4::sdk {

struct Process {
    std::int32_t node = 0;
    std::vector<std::string> argv;
    std::vector<std::pair<std::string, std::string>> environment; // name, value or "env:NAME" / "file:PATH"
    std::vector<std::pair<std::string, std::string>> files;       // path relative to the working directory, text
    std::string endpoint;                                         // its HTTP address, or empty
    std::string health_path = "/health";
    std::uint32_t ready_timeout_s = 600;
};

// A launch as the author builds it; the SDK keeps the C view of it alive.
struct Launch {
    std::vector<Process> processes; // in start order
    std::string endpoint;           // where clients go
    std::string metrics_url;
};

// Errors are Failure exceptions. Any thread; starts nothing itself.
class Engine {
  public:
    using Interface = Engine;
    static constexpr std::int32_t kind = DSV4_KIND_ENGINE;
    virtual ~Engine() = default;
    // Throws Failure(unsupported) naming the field of the plan that this engine cannot express.
    virtual Launch launch(std::string_view plan_json) const = 0;
    // The text that `argv --version` printed, to "MAJOR.MINOR.PATCH".
    virtual std::string parse_version(std::string_view output) const = 0;

    static const dsv4_engine_table& table();

  private:
    std::mutex version_mutex_;
    std::string version_; // of the last call
};

namespace detail {

inline Engine& engine(void* self) { return *static_cast<Engine*>(self); }

struct LaunchHolder : dsv4_launch {
    struct Views {
        std::vector<dsv4_str> argv;
        std::vector<dsv4_variable> environment;
        std::vector<dsv4_file> files;
    };
    Launch content;
    std::vector<Views> views;
    std::vector<dsv4_process> process_views;

    explicit LaunchHolder(Launch l) : dsv4_launch{}, content(std::move(l)), views(content.processes.size()) {
        for (std::size_t i = 0; i < views.size(); ++i) {
            const Process& p = content.processes[i];
            Views& v = views[i];
            for (const auto& a : p.argv) v.argv.push_back(str(a));
            for (const auto& [name, value] : p.environment) v.environment.push_back({str(name), str(value)});
            for (const auto& [path, text] : p.files) v.files.push_back({str(path), str(text)});
            dsv4_process c{};
            c.struct_size = sizeof c;
            c.node = p.node;
            c.argv = v.argv.data();
            c.argc = std::uint32_t(v.argv.size());
            c.environment = v.environment.data();
            c.environment_count = std::uint32_t(v.environment.size());
            c.files = v.files.data();
            c.file_count = std::uint32_t(v.files.size());
            c.endpoint = str(p.endpoint);
            c.health_path = str(p.health_path);
            c.ready_timeout_s = p.ready_timeout_s;
            process_views.push_back(c);
        }
        struct_size = sizeof(dsv4_launch);
        processes = process_views.data();
        process_count = std::uint32_t(process_views.size());
        process_bytes = sizeof(dsv4_process);
        endpoint = str(content.endpoint);
        metrics_url = str(content.metrics_url);
    }
};

} // namespace detail

inline const dsv4_engine_table& Engine::table() {
    using namespace detail;
    static const dsv4_engine_table t = [] {
        dsv4_engine_table e{};
        e.struct_size = sizeof e;
        e.launch = [](void* self, dsv4_str plan_json, const dsv4_launch** out) noexcept {
            return contain([&] { *out = new LaunchHolder(engine(self).launch(view(plan_json))); });
        };
        e.launch_release = [](void*, const dsv4_launch* launch) noexcept {
            delete static_cast<const LaunchHolder*>(launch);
        };
        e.parse_version = [](void* self, dsv4_str output, dsv4_str* out) noexcept {
            return contain([&] {
                auto version = engine(self).parse_version(view(output));
                const std::lock_guard lock(engine(self).version_mutex_);
                engine(self).version_ = std::move(version);
                *out = str(engine(self).version_);
            });
        };
        return e;
    }();
    return t;
}

} // namespace dsv4::sdk
