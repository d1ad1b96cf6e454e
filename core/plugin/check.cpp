// Runs the steps of a check in a child process and collects them over a pipe, one JSON object a line.
#include "core/plugin/check.hpp"

#include "core/plugin/instance.hpp"
#include "core/plugin/options.hpp"
#include "dsv4/sdk/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace dsv4::plugin {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t max_report_bytes = std::size_t{1} << 20;

// What the child says: the step it begins, then how that step ended.
class Reporter {
  public:
    explicit Reporter(int descriptor) : descriptor_(descriptor) {}

    // Runs a step; its error ends the check. `f` returns the detail.
    template <class F> bool step(const std::string& name, F&& f) {
        send({{"begin", name}});
        const auto done = guard(std::forward<F>(f));
        if (done)
            send({{"name", name}, {"result", int(StepResult::passed)}, {"detail", *done}});
        else
            send({{"name", name},
                  {"result", int(StepResult::failed)},
                  {"detail", done.error().message},
                  {"fix", done.error().fix}});
        return done.ok();
    }
    void skip(const std::string& name, const std::string& why) {
        send({{"name", name}, {"result", int(StepResult::skipped)}, {"detail", why}});
    }
    void end() { send({{"end", true}}); }

  private:
    void send(const Json& message) {
        const auto line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
        std::size_t done = 0;
        while (done < line.size()) {
            const auto n = ::write(descriptor_, line.data() + done, line.size() - done);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) ::_exit(3);
            done += std::size_t(n);
        }
    }
    int descriptor_;
};

std::string describe_devices(const Instance& instance) {
    const dsv4_device_info* devices = nullptr;
    std::uint32_t count = 0;
    sdk::check(instance.table<dsv4_backend_table>().devices(instance.self(), &devices, &count));
    if (count == 0) return "no device";
    std::string text;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto& d = devices[i];
        text += fmt::format("{}{}: {} ({}){}", i ? "; " : "", d.index, sdk::view(d.name), sdk::view(d.arch),
                            d.unusable.size ? fmt::format(", unusable: {}", sdk::view(d.unusable)) : "");
    }
    return text;
}

void run_steps(Reporter& report, const Candidate& candidate, const plan::Options& options) {
    std::shared_ptr<Library> library;
    if (!report.step("load", [&] {
            library = Library::load(candidate).value();
            return fmt::format("ABI {}.{}", library->descriptor().abi_major, library->descriptor().abi_minor);
        }))
        return;
    if (const auto resolved = resolve_options(library->manifest(), options); !resolved) {
        if (!options.empty()) {
            report.step("options", [&]() -> std::string { throw Failure(resolved.error()); });
            return;
        }
        for (const auto kind : library->manifest().kinds)
            report.skip(fmt::format("create {}", to_string(kind)), resolved.error().message);
        return;
    }
    host::HostOptions quiet;
    quiet.log.level = host::LogLevel::warning;
    host::Host host(std::move(quiet));
    for (const auto kind : library->manifest().kinds) {
        std::optional<Instance> instance;
        if (!report.step(fmt::format("create {}", to_string(kind)), [&] {
                instance.emplace(Instance::create(library, kind, options, host).value());
                return std::string();
            }))
            return;
        if (kind == Kind::backend && !report.step("devices", [&] { return describe_devices(*instance); })) return;
        if (!report.step(fmt::format("destroy {}", to_string(kind)), [&] {
                instance.reset();
                return std::string();
            }))
            return;
    }
}

[[noreturn]] void child(int descriptor, const Candidate& candidate, const plan::Options& options) {
    // A handler of the parent (or of a sanitizer) would hide the signal that the report is about.
    for (const int s : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) ::signal(s, SIG_DFL);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    Reporter report(descriptor);
    run_steps(report, candidate, options);
    report.end();
    ::_exit(0); // skips the exit handlers of the plugin and of the parent's copy
}

// Reads until the child closes the pipe; false when the deadline passed first.
bool read_all(int descriptor, Clock::time_point deadline, std::string& text) {
    std::array<char, 4096> buffer;
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) return false;
        pollfd waiting{descriptor, POLLIN, 0};
        const int ready = ::poll(&waiting, 1, int(std::min<long long>(left, 1000)));
        if (ready < 0 && errno != EINTR) return true;
        if (ready <= 0) continue;
        const auto n = ::read(descriptor, buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return true;
        if (text.size() + std::size_t(n) > max_report_bytes) return true;
        text.append(buffer.data(), std::size_t(n));
    }
}

// Adds the child's steps; returns the step that began and did not end.
std::string collect(const std::string& text, std::vector<CheckStep>& steps, bool& ended) {
    std::string running;
    std::size_t from = 0;
    for (auto to = text.find('\n'); to != text.npos; from = to + 1, to = text.find('\n', from)) {
        const auto message =
            Json::parse(text.begin() + std::ptrdiff_t(from), text.begin() + std::ptrdiff_t(to), nullptr, false);
        if (!message.is_object()) continue;
        if (message.contains("begin"))
            running = message["begin"].get<std::string>();
        else if (message.contains("end"))
            ended = true;
        else if (message.contains("name")) {
            running.clear();
            steps.push_back({message.value("name", ""), StepResult(message.value("result", 1)),
                             message.value("detail", ""), message.value("fix", "")});
        }
    }
    return running;
}

std::string signal_name(int signal) {
    const char* name = ::sigabbrev_np(signal);
    return name ? fmt::format("SIG{} ({})", name, ::strsignal(signal)) : fmt::format("signal {}", signal);
}

} // namespace

std::string_view to_string(StepResult r) noexcept {
    return r == StepResult::passed ? "passed" : r == StepResult::failed ? "failed" : "skipped";
}

bool CheckReport::passed() const noexcept {
    for (const auto& s : steps)
        if (s.result == StepResult::failed) return false;
    return !steps.empty();
}

CheckReport check(const Candidate& candidate, const CheckOptions& options) {
    CheckReport report{candidate, {}};
    if (candidate.refusal) {
        report.steps.push_back({"file", StepResult::failed, candidate.refusal->message, candidate.refusal->fix});
        return report;
    }
    report.steps.push_back({"file", StepResult::passed, {}, {}});
    int ends[2];
    if (::pipe(ends) != 0) {
        report.steps.push_back(
            {"start", StepResult::failed, fmt::format("no pipe to a child process: {}", std::strerror(errno)), {}});
        return report;
    }
    const auto pid = ::fork();
    if (pid < 0) {
        report.steps.push_back(
            {"start", StepResult::failed, fmt::format("no child process: {}", std::strerror(errno)), {}});
        ::close(ends[0]);
        ::close(ends[1]);
        return report;
    }
    if (pid == 0) {
        ::close(ends[0]);
        child(ends[1], candidate, options.options);
    }
    ::close(ends[1]);
    std::string text;
    const bool in_time = read_all(ends[0], Clock::now() + options.timeout, text);
    ::close(ends[0]);
    if (!in_time) ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    bool ended = false;
    auto running = collect(text, report.steps, ended);
    if (ended) return report;
    if (running.empty()) running = "run";
    const auto& name = candidate.name;
    const std::string fix = "report this to the plugin's author";
    if (!in_time)
        report.steps.push_back(
            {running, StepResult::failed,
             fmt::format("plugin {} did not finish \"{}\" within {} s", name, running, options.timeout.count()), fix});
    else if (WIFSIGNALED(status))
        report.steps.push_back(
            {running, StepResult::failed,
             fmt::format("plugin {} crashed in \"{}\" with {}", name, running, signal_name(WTERMSIG(status))), fix});
    else
        report.steps.push_back(
            {running, StepResult::failed,
             fmt::format("plugin {} ended the process in \"{}\" with exit code {}", name, running, WEXITSTATUS(status)),
             fix});
    return report;
}

} // namespace dsv4::plugin
