// `dsv4 pipeline`: serves what a pipeline file describes until it is told to stop.
#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "core/runtime/deployment.hpp"
#include "dsl/compile.hpp"
#include "dsv4/api.h"
#include "dsv4/sdk/error.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <pthread.h>
#include <thread>

namespace dsv4::cli {
namespace {

// SIGINT and SIGTERM as something to wait for. Blocks them in this thread and all that it starts later.
class StopSignals {
  public:
    StopSignals() {
        sigemptyset(&set_);
        sigaddset(&set_, SIGINT);
        sigaddset(&set_, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &set_, nullptr);
        std::signal(SIGPIPE, SIG_IGN); // a client that went away is an error of its own connection
    }
    // True when a signal came within `seconds`.
    bool wait(long seconds) const {
        const timespec timeout{seconds, 0};
        return sigtimedwait(&set_, nullptr, &timeout) > 0;
    }

  private:
    sigset_t set_{};
};

host::LogOptions log_options(const plan::ServingPlan& plan) {
    host::LogOptions log;
    if (!plan.log.level.empty()) log.level = host::log_level(plan.log.level).value();
    if (!plan.log.format.empty()) log.format = host::log_format(plan.log.format).value();
    return log;
}

// What will serve, before anything is loaded.
std::string summary(const plan::ServingPlan& plan) {
    return fmt::format("{}: {} on {} ({} x {}), precision {}, {} sequences of up to {} tokens\n", plan.source,
                       plan::model_name(plan), plan.hardware.platform, plan.hardware.devices,
                       plan::to_string(plan.topology.mode), plan::to_string(plan.engine.precision),
                       plan.context.max_num_seqs,
                       plan.context.max_model_len ? std::to_string(*plan.context.max_model_len) : "as many as fit");
}

// Runs the api plugin from start to stop, whatever happens in between.
class Serving {
  public:
    explicit Serving(runtime::Deployment& deployment)
        : deployment_(deployment), self_(deployment.api().self()), table_(deployment.api().table<dsv4_api_table>()) {
        sdk::check(table_.start(self_));
    }
    ~Serving() { table_.stop(self_); }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

    std::string endpoint() const { return std::string(sdk::view(table_.endpoint(self_))); }

    // Lets running requests end; a second signal ends the wait.
    void drain(const StopSignals& signals, std::uint64_t timeout_us) {
        const std::uint64_t deadline = deployment_.engine().now_us() + timeout_us;
        std::atomic<bool> done = false;
        std::thread worker([&] {
            if (dsv4_error* error = table_.drain(self_, deadline))
                deployment_.host().log().write(host::LogLevel::warning, "pipeline",
                                               "drain: " + sdk::take_error(error).message);
            done = true;
        });
        while (!done)
            if (signals.wait(1)) {
                deployment_.host().log().write(host::LogLevel::warning, "pipeline", "second signal: stopping at once");
                deployment_.engine().drain(1); // a deadline in the past cancels what runs
                break;
            }
        worker.join();
    }

  private:
    runtime::Deployment& deployment_;
    void* self_;
    const dsv4_api_table& table_;
};

} // namespace

int pipeline(const PipelineOptions& options) {
    return guarded([&] {
        const StopSignals signals; // before any thread starts
        auto compilation = dsl::compile_file(options.pipeline, {options.set}).value();
        std::fputs(dsl::render_human(compilation.diagnostics, compilation.sources, {color_on_stderr()}).c_str(),
                   stderr);
        if (!compilation.plan) return int(findings);
        std::fputs(summary(*compilation.plan).c_str(), stderr);

        runtime::DeploymentOptions how;
        how.log = log_options(*compilation.plan);
        auto bar = std::make_unique<ProgressBar>("loading weights");
        how.progress = [&](const checkpoint::Progress& p) {
            bar->update(p.done_bytes, p.total_bytes);
            return !signals.wait(0);
        };
        runtime::Deployment deployment(*compilation.plan, std::move(how));
        bar.reset();
        Serving serving(deployment);
        std::fputs(("serving on " + serving.endpoint() + "\n").c_str(), stdout);
        std::fflush(stdout);

        while (!signals.wait(1))
            if (!deployment.engine().healthy())
                throw Failure(Code::environment, "the backend failed; the log says how",
                              "start the pipeline again once the device works");
        deployment.host().log().write(host::LogLevel::info, "pipeline", "stopping: running requests may end");
        serving.drain(signals, std::uint64_t(options.drain_timeout_s) * 1000000);
        return int(clean);
    });
}

} // namespace dsv4::cli
