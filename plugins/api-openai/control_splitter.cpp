// Longest match over the sorted spellings, narrowed byte by byte.
#include "control_splitter.hpp"

#include "dsv4/sdk/error.hpp"

#include <algorithm>

namespace dsv4::openai {

ControlSplitter::ControlSplitter(const dsv4_host* host) {
    const dsv4_tokenizer_service& tokenizer = *host->tokenizer;
    for (std::uint32_t id = 0; id < tokenizer.vocab_size; ++id) {
        if (!tokenizer.is_control(host->ctx, std::int32_t(id))) continue;
        if (const auto text = sdk::view(tokenizer.bytes(host->ctx, std::int32_t(id))); !text.empty())
            tokens_.emplace_back(text, std::int32_t(id));
    }
    std::sort(tokens_.begin(), tokens_.end());
}

const std::pair<std::string, std::int32_t>* ControlSplitter::match(std::string_view text) const {
    auto first = tokens_.begin(), last = tokens_.end();
    const std::pair<std::string, std::int32_t>* best = nullptr;
    // Every spelling in [first, last) begins with the `depth` bytes before.
    for (std::size_t depth = 0; depth < text.size(); ++depth) {
        const auto byte = static_cast<unsigned char>(text[depth]);
        const auto at = [&](const auto& token) { return static_cast<unsigned char>(token.first[depth]); };
        first = std::partition_point(
            first, last, [&](const auto& token) { return token.first.size() <= depth || at(token) < byte; });
        last = std::partition_point(first, last, [&](const auto& token) { return at(token) == byte; });
        if (first == last) break;
        if (first->first.size() == depth + 1) best = &*first;
    }
    return best;
}

std::vector<ControlSplitter::Piece> ControlSplitter::split(std::string_view text) const {
    std::vector<Piece> pieces;
    std::size_t plain = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto* token = match(text.substr(at));
        if (!token) {
            ++at;
            continue;
        }
        if (at > plain) pieces.push_back({text.substr(plain, at - plain), -1});
        pieces.push_back({text.substr(at, token->first.size()), token->second});
        plain = at += token->first.size();
    }
    if (plain < text.size()) pieces.push_back({text.substr(plain), -1});
    return pieces;
}

} // namespace dsv4::openai
