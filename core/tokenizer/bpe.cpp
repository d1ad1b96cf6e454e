// The merge loop: symbols in a linked list, candidate pairs in a heap whose outdated entries are skipped when popped.
#include "core/tokenizer/bpe.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace dsv4::tokenizer {
namespace {

std::uint64_t join(std::uint32_t high, std::uint32_t low) { return static_cast<std::uint64_t>(high) << 32 | low; }

std::uint64_t pair_key(TokenId left, TokenId right) {
    return join(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right));
}

constexpr TokenId gone = -1; // id of a symbol that was joined to the one on its left

} // namespace

Bpe::Bpe(const std::array<TokenId, 256>& byte_ids, std::vector<Merge> merges)
    : byte_ids_(byte_ids), merges_(std::move(merges)) {
    ranks_.reserve(merges_.size());
    for (std::uint32_t r = 0; r < merges_.size(); ++r) ranks_.emplace(pair_key(merges_[r].left, merges_[r].right), r);
}

void Bpe::add_shortcut(std::string_view bytes, TokenId id) {
    Scratch scratch;
    std::vector<TokenId> ids;
    merge(bytes, scratch, ids);
    if (ids.size() == 1 && ids[0] == id) shortcuts_.emplace(bytes, id);
}

std::uint32_t Bpe::rank(TokenId left, TokenId right) const {
    const auto found = ranks_.find(pair_key(left, right));
    return found == ranks_.end() ? none : found->second;
}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
    if (piece.empty()) return;
    if (const auto found = shortcuts_.find(piece); found != shortcuts_.end()) {
        out.push_back(found->second);
        return;
    }
    merge(piece, scratch, out);
}

void Bpe::merge(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
    auto& symbols = scratch.symbols;
    auto& heap = scratch.candidates;
    symbols.clear();
    heap.clear();
    const auto count = static_cast<std::uint32_t>(piece.size());
    for (std::uint32_t i = 0; i < count; ++i) {
        symbols.push_back(
            {byte_ids_[static_cast<std::uint8_t>(piece[i])], i == 0 ? none : i - 1, i + 1 == count ? none : i + 1});
    }
    for (std::uint32_t i = 0; i + 1 < count; ++i) {
        if (const std::uint32_t r = rank(symbols[i].id, symbols[i + 1].id); r != none) heap.push_back(join(r, i));
    }
    std::make_heap(heap.begin(), heap.end(), std::greater<>());
    const auto offer = [&](std::uint32_t left, std::uint32_t right) {
        if (left == none || right == none) return;
        const std::uint32_t r = rank(symbols[left].id, symbols[right].id);
        if (r == none) return;
        heap.push_back(join(r, left));
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    };
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        const auto position = static_cast<std::uint32_t>(heap.back());
        const Merge& joined = merges_[heap.back() >> 32];
        heap.pop_back();
        auto& left = symbols[position];
        if (left.id != joined.left || left.next == none || symbols[left.next].id != joined.right) continue;
        auto& right = symbols[left.next];
        left.id = joined.result;
        left.next = right.next;
        right.id = gone;
        if (left.next != none) symbols[left.next].previous = position;
        offer(left.previous, position);
        offer(position, left.next);
    }
    for (std::uint32_t i = 0; i != none && i < count; i = symbols[i].next) out.push_back(symbols[i].id);
}

} // namespace dsv4::tokenizer
