// Byte-pair encoding of one piece: start from single bytes and repeatedly join the adjacent pair of lowest rank, the
// leftmost first, until no pair has a rank.
#pragma once

#include "core/tokenizer/token_id.hpp"

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dsv4::tokenizer {

struct Merge {
    TokenId left, right, result;
};

// Immutable after construction; `encode` may run on any number of threads, each with its own Scratch.
class Bpe {
  public:
    // Buffers reused from piece to piece.
    struct Scratch {
        struct Symbol {
            TokenId id;
            std::uint32_t previous, next; // positions; `none` at the ends
        };
        std::vector<Symbol> symbols;
        std::vector<std::uint64_t> candidates; // rank << 32 | position of the left symbol; a min-heap
    };

    Bpe() = default;
    // `byte_ids[b]` is the token of the single byte b; merges[r] has rank r. Pairs must be unique.
    Bpe(const std::array<TokenId, 256>& byte_ids, std::vector<Merge> merges);

    // Records that merging `bytes` gives just `id`, so that such a piece needs one lookup. Does nothing where merging
    // gives something else (a token that no merge reaches). `bytes` must outlive this object.
    void add_shortcut(std::string_view bytes, TokenId id);

    // Appends the tokens of `piece` (any bytes, less than 4 GiB) to `out`. O(n log n) in its size.
    void encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;

  private:
    static constexpr std::uint32_t none = UINT32_MAX;

    std::uint32_t rank(TokenId left, TokenId right) const; // `none`: the pair has no merge
    void merge(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;

    std::array<TokenId, 256> byte_ids_{};
    std::vector<Merge> merges_;
    boost::unordered_flat_map<std::uint64_t, std::uint32_t> ranks_; // left << 32 | right
    boost::unordered_flat_map<std::string_view, TokenId> shortcuts_;
};

} // namespace dsv4::tokenizer
