// Matching of markers and tags on held-back text.
#include "marked_text.hpp"

#include "control_tokens.hpp"

namespace dsv4::deepseek_v4 {

Match MarkedText::match_marker(std::size_t at, std::string_view marker) const {
    const std::size_t have = size() - at;
    if (have > marker.size()) return Match::none;
    for (std::size_t i = 0; i < have; ++i)
        if (!byte_is(at + i, marker[i], true)) return Match::none;
    return have == marker.size() ? Match::full : Match::partial;
}

Match MarkedText::match_tag_start(std::size_t at, bool closing, std::size_t& end) const {
    const std::string_view opening = closing ? "</" : "<";
    const std::size_t length = opening.size() + control::dsml.size();
    for (std::size_t i = 0; i < length; ++i) {
        if (at + i == size()) return Match::partial;
        const bool in_marker = i >= opening.size();
        const char expected = in_marker ? control::dsml[i - opening.size()] : opening[i];
        if (!byte_is(at + i, expected, in_marker)) return Match::none;
    }
    end = at + length;
    return Match::full;
}

Match MarkedText::match_tag(std::size_t at, bool closing, std::span<const std::string_view> tails,
                            std::size_t* which) const {
    std::size_t end = 0;
    if (const Match start = match_tag_start(at, closing, end); start != Match::full) return start;
    if (end < size() && byte_is(end, ' ', false)) ++end;
    const std::size_t have = size() - end;
    Match best = Match::none;
    for (std::size_t t = 0; t < tails.size(); ++t) {
        if (have > tails[t].size()) continue;
        std::size_t same = 0;
        while (same < have && byte_is(end + same, tails[t][same], false)) ++same;
        if (same < have) continue;
        if (have == tails[t].size()) {
            if (which) *which = t;
            return Match::full;
        }
        best = Match::partial;
    }
    return best;
}

std::size_t MarkedText::tag_start_length() const {
    std::size_t end = 0;
    if (!empty() && (match_tag_start(0, false, end) == Match::full || match_tag_start(0, true, end) == Match::full))
        return end;
    return 0;
}

} // namespace dsv4::deepseek_v4
