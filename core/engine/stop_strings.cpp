// Plain search: a handful of short strings over short pieces.
#include "core/engine/stop_strings.hpp"

#include <algorithm>

namespace dsv4::engine {

StopStrings::StopStrings(std::vector<std::string> strings, bool include)
    : strings_(std::move(strings)), include_(include) {}

bool StopStrings::feed(std::string_view text, std::string& out) {
    if (!matched_.empty()) return true;
    if (!active_ || strings_.empty()) {
        out += held_;
        held_.clear();
        out += text;
        return false;
    }
    held_ += text;
    std::size_t best_end = std::string::npos, best_begin = 0;
    const std::string* best = nullptr;
    for (const std::string& s : strings_) {
        const std::size_t begin = held_.find(s);
        if (begin == std::string::npos) continue;
        const std::size_t end = begin + s.size();
        if (!best || end < best_end || (end == best_end && begin < best_begin)) {
            best = &s;
            best_end = end;
            best_begin = begin;
        }
    }
    if (best) {
        out.append(held_, 0, include_ ? best_end : best_begin);
        held_.clear();
        matched_ = *best;
        return true;
    }
    std::size_t keep = 0;
    for (const std::string& s : strings_)
        for (std::size_t n = std::min(s.size() - 1, held_.size()); n > keep; --n)
            if (held_.compare(held_.size() - n, n, s, 0, n) == 0) {
                keep = n;
                break;
            }
    out.append(held_, 0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
    return false;
}

void StopStrings::flush(std::string& out) {
    out += held_;
    held_.clear();
}

} // namespace dsv4::engine
