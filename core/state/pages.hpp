// Ownership of state pages: which ids are free, who shares them, and which pages back the positions of one sequence.
#pragma once

#include "dsv4/backend.h"
#include "dsv4/sdk/result.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace dsv4::state {

// Prefixes are shared in blocks of this many positions: a page of each growing kind.
inline constexpr std::int64_t block_positions = 256;

// How the pages of a kind live. Sliding kinds may drop pages wholly below the committed length minus the reach.
struct KindRule {
    dsv4_state_kind kind = DSV4_STATE_WINDOW;
    std::uint32_t positions_per_page = 0;
    std::int64_t reach_positions = -1;   // -1: grows, never released before the sequence ends
    std::int64_t boundary_positions = 0; // positions before a block boundary that a sequence starting there reads
    bool grows() const noexcept { return reach_positions < 0; }
};

// The paged kinds among a backend's layouts, with their reach. `sliding_window` in tokens.
std::vector<KindRule> kind_rules(const std::vector<dsv4_state_layout>& layouts, std::int64_t sliding_window);

// Pages of one kind. Not thread-safe: owned by the scheduling thread.
class PagePool {
  public:
    PagePool(KindRule rule, std::uint32_t pages);
    const KindRule& rule() const noexcept { return rule_; }
    std::uint32_t size() const noexcept { return std::uint32_t(references_.size()); }
    std::uint32_t free_pages() const noexcept { return std::uint32_t(free_.size()); }
    // A page with one reference, or -1 when none is free.
    std::int32_t acquire();
    void share(std::int32_t page);
    std::uint32_t references(std::int32_t page) const { return references_.at(std::size_t(page)); }
    // Drops one reference; the page is free again with the last.
    void release(std::int32_t page);

  private:
    KindRule rule_;
    std::vector<std::uint32_t> references_;
    std::vector<std::int32_t> free_; // taken from the back: lowest id first in a fresh pool
};

// The sliding pages that end exactly at a block boundary. Their positions are committed, so nothing writes them again
// and they are shared without copies. Drops its references when destroyed.
class BoundaryState {
  public:
    struct Part {
        PagePool* pool;
        std::int64_t first_page;
        std::vector<std::int32_t> ids;
    };
    explicit BoundaryState(std::vector<Part> parts); // takes a reference to each page
    ~BoundaryState();
    BoundaryState(BoundaryState&& other) noexcept : parts_(std::move(other.parts_)) { other.parts_.clear(); }
    BoundaryState& operator=(BoundaryState&& other) noexcept;
    const std::vector<Part>& parts() const noexcept { return parts_; }
    // True when dropping this state would make a page free.
    bool holds_alone() const;

  private:
    void drop();
    std::vector<Part> parts_;
};

// The page tables of one sequence over all pools. Releases its pages when destroyed.
class SequencePages {
  public:
    explicit SequencePages(std::vector<PagePool>& pools);
    ~SequencePages();
    SequencePages(const SequencePages&) = delete;
    SequencePages& operator=(const SequencePages&) = delete;

    // Backs every position below `end_position`. False when a pool is too small.
    bool reserve(std::int64_t end_position) { return reserve_growing(end_position) && reserve_sliding(end_position); }
    // The same for the kinds that grow or those that slide alone; all or nothing.
    bool reserve_growing(std::int64_t end_position) { return reserve_kinds(end_position, true); }
    bool reserve_sliding(std::int64_t end_position) { return reserve_kinds(end_position, false); }
    // Drops sliding pages that no row at or after `committed` can read. True: there were some.
    bool release_behind(std::int64_t committed);
    // Drops everything; the next position is 0 again.
    void clear();

    // The state at a block boundary that is committed, or nothing when a page of it is gone already.
    std::optional<BoundaryState> capture(std::int64_t boundary) const;
    // Starts at a boundary: `growing[i]` are the pages of growing pool i (in pool order), shared. Only when empty.
    void adopt(const std::vector<std::vector<std::int32_t>>& growing, const BoundaryState& state,
               std::int64_t boundary);
    // Starts where `parent` is, with `committed` positions: whole pages are shared, begun ones copied (appended to
    // `copies`, for the batch that runs this sequence first). False, and nothing changed, when a pool is too small.
    bool fork(const SequencePages& parent, std::int64_t committed, std::vector<dsv4_page_copy>& copies);

    // Pages of the growing kinds, in pool order, for block `block`.
    std::vector<std::int32_t> growing_block(std::int64_t block) const;
    // Valid until the next change of this object.
    const std::vector<dsv4_page_table>& tables() const noexcept { return tables_; }

  private:
    struct Table {
        PagePool* pool;
        std::int64_t first_page = 0;
        std::vector<std::int32_t> ids;
    };
    bool reserve_kinds(std::int64_t end_position, bool growing);
    void refresh();
    std::vector<Table> owned_;
    std::vector<dsv4_page_table> tables_;
};

} // namespace dsv4::state
