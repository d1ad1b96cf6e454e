// Terminal output of the commands.
#include "cli/terminal.hpp"

#include "cli/commands.hpp"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <unistd.h>

namespace dsv4::cli {

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool color_on_stderr() {
    const char* no_color = std::getenv("NO_COLOR");
    return isatty(STDERR_FILENO) == 1 && (!no_color || !*no_color);
}

int report(const Error& error) {
    const bool color = color_on_stderr();
    std::fputs((std::string(color ? "\033[1;31merror\033[0m: " : "error: ") + error.message + "\n").c_str(), stderr);
    if (!error.fix.empty())
        std::fputs((std::string(color ? "  \033[1mfix\033[0m: " : "  fix: ") + error.fix + "\n").c_str(), stderr);
    switch (error.code) {
    case Code::invalid: return usage;
    case Code::internal: return internal;
    default: return environment;
    }
}

ProgressBar::ProgressBar(std::string title) : title_(std::move(title)), visible_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
    if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(std::uint64_t done_bytes, std::uint64_t total_bytes) {
    if (!visible_) return;
    const auto now = std::chrono::steady_clock::now();
    if (drawn_ && now - last_ < std::chrono::milliseconds(100) && done_bytes != total_bytes) return;
    last_ = now;
    drawn_ = true;
    constexpr int width = 30;
    const double part = total_bytes ? double(done_bytes) / double(total_bytes) : 1.0;
    const int full = int(part * width);
    std::string bar;
    for (int i = 0; i < width; ++i) bar += i < full ? '#' : '.';
    std::fputs(fmt::format("\r{} [{}] {:3.0f} %  {} of {}\033[K", title_, bar, part * 100, human_bytes(done_bytes),
                           human_bytes(total_bytes))
                   .c_str(),
               stderr);
}

std::string human_bytes(std::uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = double(bytes);
    std::size_t unit = 0;
    while (v >= 1024 && unit + 1 < std::size(units)) v /= 1024, ++unit;
    return unit ? fmt::format("{:.1f} {}", v, units[unit]) : fmt::format("{} B", bytes);
}

std::string read_text(const std::string& path, std::size_t limit_bytes) {
    std::ifstream file;
    std::istream* in = &std::cin;
    if (path != "-") {
        file.open(path, std::ios::binary);
        if (!file) throw Failure(Code::not_found, "cannot open '" + path + "'");
        in = &file;
    }
    std::string text;
    char buffer[65536];
    while (in->read(buffer, sizeof buffer) || in->gcount() > 0) {
        text.append(buffer, std::size_t(in->gcount()));
        if (text.size() > limit_bytes)
            throw Failure(Code::invalid, "'" + path + "' is larger than " + human_bytes(limit_bytes));
    }
    return text;
}

} // namespace dsv4::cli
