// What commands show on the terminal: colour only where a person looks, progress on standard error, errors in one form.
#pragma once

#include "dsv4/sdk/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace dsv4::cli {

bool stdout_is_terminal();
// Colour for standard error: a terminal, and NO_COLOR not set.
bool color_on_stderr();

// Prints "error: message" and "  fix: ..." and returns the exit code that fits the error.
int report(const Error& error);

// Runs a command's body; reports what it throws.
template <class F> int guarded(F&& body) {
    auto result = guard(std::forward<F>(body));
    return result.ok() ? *result : report(result.error());
}

// One line on standard error that is redrawn at most ten times a second; silent when that is not a terminal.
class ProgressBar {
  public:
    explicit ProgressBar(std::string title);
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;
    void update(std::uint64_t done_bytes, std::uint64_t total_bytes);

  private:
    std::string title_;
    bool visible_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point last_{};
};

std::string human_bytes(std::uint64_t bytes);

// The whole of a file, or of standard input for "-". At most `limit_bytes`.
std::string read_text(const std::string& path, std::size_t limit_bytes);

} // namespace dsv4::cli
