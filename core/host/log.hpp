// The program's log: one line a message, as text or as JSON, with fields beside the message. Prompt and answer text
// never belongs here.
#pragma once

#include "dsv4/sdk/result.hpp"

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace dsv4::host {

enum class LogLevel { debug = 1, info = 2, warning = 3, error = 4, off = 5 };
enum class LogFormat { text, json };

// "trace" (as debug), "debug", "info", "warning", "error", "off"; "text", "json". Errors: invalid.
Result<LogLevel> log_level(std::string_view name);
Result<LogFormat> log_format(std::string_view name);

struct LogOptions {
    LogLevel level = LogLevel::info;
    LogFormat format = LogFormat::text;
    // Receives each line without its newline, one call at a time; absent: standard error.
    std::function<void(std::string_view line)> sink;
};

struct LogField {
    std::string_view name; // lower_snake
    std::string_view value;
};

// Any thread. A line break or control character of a message or value is escaped, so that nobody can forge a line.
class Log {
  public:
    explicit Log(LogOptions options = {});
    ~Log();
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    bool enabled(LogLevel level) const noexcept;
    // `component`: the plugin's name or the part of the core.
    void write(LogLevel level, std::string_view component, std::string_view message,
               std::initializer_list<LogField> fields = {}) noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace dsv4::host
