// The log on top of spdlog.
#include "core/host/log.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <mutex>

namespace dsv4::host {
namespace {

class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
  public:
    explicit FunctionSink(std::function<void(std::string_view)> f) : function_(std::move(f)) {}

  private:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        function_({line.data(), line.size()});
    }
    void flush_() override {}
    std::function<void(std::string_view)> function_;
};

spdlog::level::level_enum level_of(LogLevel level) {
    switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: break;
    }
    return spdlog::level::off;
}

// A JSON string with its quotes; broken UTF-8 becomes U+FFFD.
std::string quoted(std::string_view s) {
    return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string escaped(std::string_view s) {
    const auto q = quoted(s);
    return q.substr(1, q.size() - 2);
}
bool is_plain(std::string_view s) {
    for (const char c : s)
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f) return false;
    return !s.empty();
}

} // namespace

Result<LogLevel> log_level(std::string_view name) {
    if (name == "debug" || name == "trace") return LogLevel::debug;
    if (name == "info") return LogLevel::info;
    if (name == "warning") return LogLevel::warning;
    if (name == "error") return LogLevel::error;
    if (name == "off") return LogLevel::off;
    return Error{Code::invalid, fmt::format("there is no log level \"{}\"", name),
                 "levels are trace, debug, info, warning, error, off"};
}

Result<LogFormat> log_format(std::string_view name) {
    if (name == "text") return LogFormat::text;
    if (name == "json") return LogFormat::json;
    return Error{Code::invalid, fmt::format("there is no log format \"{}\"", name), "formats are text and json"};
}

struct Log::State {
    LogFormat format;
    std::unique_ptr<spdlog::logger> logger;
};

Log::Log(LogOptions options) : state_(std::make_unique<State>()) {
    state_->format = options.format;
    const std::string newline = options.sink ? "" : "\n";
    std::shared_ptr<spdlog::sinks::sink> sink;
    if (options.sink)
        sink = std::make_shared<FunctionSink>(std::move(options.sink));
    else
        sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    state_->logger = std::make_unique<spdlog::logger>("dsv4", sink);
    const bool json = state_->format == LogFormat::json;
    state_->logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        json ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%fZ\",\"level\":\"%l\",%v}" : "%Y-%m-%dT%H:%M:%S.%fZ %l %v",
        spdlog::pattern_time_type::utc, newline));
    state_->logger->set_level(level_of(options.level));
    state_->logger->flush_on(spdlog::level::debug);
}

Log::~Log() = default;

bool Log::enabled(LogLevel level) const noexcept {
    return level != LogLevel::off && state_->logger->should_log(level_of(level));
}

void Log::write(LogLevel level, std::string_view component, std::string_view message,
                std::initializer_list<LogField> fields) noexcept {
    if (!enabled(level)) return;
    try {
        std::string line;
        if (state_->format == LogFormat::json) {
            line = fmt::format("\"component\":{},\"message\":{}", quoted(component), quoted(message));
            for (const auto& f : fields) line += fmt::format(",{}:{}", quoted(f.name), quoted(f.value));
        } else {
            line = fmt::format("[{}] {}", escaped(component), escaped(message));
            for (const auto& f : fields)
                line += fmt::format(" {}={}", f.name, is_plain(f.value) ? std::string(f.value) : quoted(f.value));
        }
        state_->logger->log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
    } catch (...) { // a lost line is better than a lost process
    }
}

} // namespace dsv4::host
