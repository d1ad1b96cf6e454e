// The prefix cache: blocks of committed positions shared by content, and why a look-up stopped where it did.
//
// A block is 256 tokens. Its entry owns one page of each growing kind. A sequence can start behind a block only when
// the entry also retains the boundary state: the sliding pages that end there. Boundary states are much larger than
// what a block adds, so they have their own budget and the caller chooses which boundaries deserve one.
//
// Entries form a tree from each salt's root. Only leaves are evicted, the least recently used first, and only those no
// running sequence shares, because others would free nothing.
#pragma once

#include "core/prefix/block_key.hpp"
#include "core/state/pages.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace dsv4::prefix {

enum class Miss {
    none,                        // everything that could be reused was
    disabled,                    // the cache is off, for the engine or for this request
    below_block,                 // too short for a whole block and one token more
    none_yet,                    // nothing under this salt continues here
    diverged,                    // what is known continues otherwise from token `position`
    salt,                        // the same tokens are known, under another salt only
    growing_evicted,             // the block was known and made room for another
    boundary_state_evicted,      // the block is known; its boundary state made room for another
    boundary_state_not_retained, // the block is known; no boundary state was kept there
    pages_exhausted,             // a hit that could not be used: no free pages behind it
};
// The name alone, as metrics label it: "diverged-at", "none-yet", ...; "none" for a full hit.
std::string_view name(Miss miss) noexcept;

struct Match {
    std::int64_t tokens = 0; // to reuse; a multiple of the block
    Miss miss = Miss::none;
    std::int64_t position = 0; // where the reuse stopped
    // "" for a full hit, "diverged-at 300", "none-yet", ...
    std::string reason() const;
};

struct Options {
    bool enabled = true;
    std::uint32_t boundary_states = 0; // how many to retain at most
    std::uint32_t every_blocks = 16;   // every n-th block boundary deserves a state; 0: none for its number
};

struct Statistics {
    std::uint64_t blocks = 0; // present now
    std::uint64_t boundary_states = 0;
    std::uint64_t evicted_blocks = 0; // since the start
    std::uint64_t evicted_boundary_states = 0;
};

// The keys of a sequence's whole blocks, computed as far as asked for.
class BlockKeys {
  public:
    explicit BlockKeys(std::string_view salt) : root_(root_key(salt)) {}
    const BlockKey& root() const noexcept { return root_; }
    // Keys of the first `blocks` blocks of `tokens`; the tokens of keys once computed must not change.
    std::span<const BlockKey> upto(std::size_t blocks, std::span<const std::int32_t> tokens);

  private:
    BlockKey root_;
    std::vector<BlockKey> keys_;
};

// Not thread-safe: owned by the scheduling thread. The pools must outlive it.
class PrefixCache {
  public:
    PrefixCache(Options options, std::vector<state::PagePool>& pools);
    ~PrefixCache();
    PrefixCache(const PrefixCache&) = delete;
    PrefixCache& operator=(const PrefixCache&) = delete;
    const Options& options() const noexcept { return options_; }
    Statistics statistics() const noexcept;

    // The longest prefix of `tokens` to start from; at least one token is left over. Touches what it found.
    Match match(BlockKeys& keys, std::span<const std::int32_t> tokens);
    // Gives `pages`, which must be empty, the pages of a match just made.
    void attach(const Match& match, BlockKeys& keys, std::span<const std::int32_t> tokens, state::SequencePages& pages);

    // Makes known the first `blocks` blocks of a sequence. All their positions must be committed.
    void publish(BlockKeys& keys, std::span<const std::int32_t> tokens, std::size_t blocks,
                 const state::SequencePages& pages);
    // Keeps the boundary state behind the first `blocks` blocks, which must be published.
    void retain(BlockKeys& keys, std::span<const std::int32_t> tokens, std::size_t blocks,
                state::BoundaryState boundary);

    // Blocks that only the cache holds: they make room when others need it. Looks at every block.
    std::uint64_t unshared_blocks() const;

    // Make room: drop the least recently used block, or boundary state, whose pages nobody else holds. False: none.
    bool evict_block();
    bool evict_boundary_state();
    // Drops everything.
    void clear();

  private:
    struct Entry;
    using Order = std::set<std::pair<std::uint64_t, Entry*>>;

    Entry* find(const BlockKey& key) const;
    void touch(Entry& entry);
    void erase(Entry& entry);
    void drop_boundary(Entry& entry);
    Miss explain_stop(BlockKeys& keys, std::span<const std::int32_t> tokens, std::size_t known, Entry* last,
                      std::int64_t& position) const;

    Options options_;
    std::vector<state::PagePool*> growing_;
    std::unordered_map<BlockKey, std::unique_ptr<Entry>, BlockKeyHash> entries_;
    std::unordered_map<BlockKey, std::vector<Entry*>, BlockKeyHash> roots_;   // first blocks of each salt
    std::unordered_map<BlockKey, std::uint32_t, BlockKeyHash> content_roots_; // first blocks by content, all salts
    Order leaves_;                                                            // entries without children, oldest first
    Order with_boundary_;
    std::uint64_t clock_ = 0;
    // Recently evicted blocks, to tell "was known" from "was never known".
    std::deque<BlockKey> evicted_order_;
    std::unordered_set<BlockKey, BlockKeyHash> evicted_;
    std::uint64_t evicted_blocks_ = 0, evicted_boundary_states_ = 0;
};

} // namespace dsv4::prefix
