// Finds the spellings of added tokens in raw text: the leftmost match first, the longest where several start at once.
#pragma once

#include "core/tokenizer/token_id.hpp"

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace dsv4::tokenizer {

// A trie over bytes. Immutable once filled.
class ControlMatcher {
  public:
    struct Match {
        std::size_t begin, size_bytes; // in the text
        TokenId id;
    };

    // `spelling` is not empty; each spelling is added once.
    void add(std::string_view spelling, TokenId id);
    // The first match at or after `from`.
    std::optional<Match> find(std::string_view text, std::size_t from) const;

  private:
    static constexpr TokenId none = -1;

    std::array<bool, 256> starts_{};                                   // bytes that begin a spelling
    std::vector<TokenId> ends_{none};                                  // of each node: the token that ends there
    boost::unordered_flat_map<std::uint64_t, std::uint32_t> children_; // node << 8 | byte
};

} // namespace dsv4::tokenizer
