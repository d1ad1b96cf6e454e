// The trie walk behind ControlMatcher.
#include "core/tokenizer/control_matcher.hpp"

namespace dsv4::tokenizer {

void ControlMatcher::add(std::string_view spelling, TokenId id) {
    starts_[static_cast<std::uint8_t>(spelling.front())] = true;
    std::uint32_t node = 0;
    for (const char c : spelling) {
        const std::uint64_t key = static_cast<std::uint64_t>(node) << 8 | static_cast<std::uint8_t>(c);
        const auto [child, is_new] = children_.emplace(key, static_cast<std::uint32_t>(ends_.size()));
        node = child->second;
        if (is_new) ends_.push_back(none);
    }
    ends_[node] = id;
}

std::optional<ControlMatcher::Match> ControlMatcher::find(std::string_view text, std::size_t from) const {
    for (std::size_t begin = from; begin < text.size(); ++begin) {
        if (!starts_[static_cast<std::uint8_t>(text[begin])]) continue;
        std::optional<Match> longest;
        std::uint32_t node = 0;
        for (std::size_t i = begin; i < text.size(); ++i) {
            const std::uint64_t key = static_cast<std::uint64_t>(node) << 8 | static_cast<std::uint8_t>(text[i]);
            const auto child = children_.find(key);
            if (child == children_.end()) break;
            node = child->second;
            if (ends_[node] != none) longest = Match{begin, i + 1 - begin, ends_[node]};
        }
        if (longest) return longest;
    }
    return std::nullopt;
}

} // namespace dsv4::tokenizer
