// Ownership of state pages: which ids are free, who shares them, and which pages back the positions of one sequence.
#pragma once

#include "dsv4/backend.h"
#include "dsv4/sdk/result.hpp"

#include <cstdint>
#include <vector>

namespace dsv4::state {

// How the pages of a kind live. Sliding kinds may drop pages wholly below the committed length minus the reach.
struct KindRule {
    dsv4_state_kind kind = DSV4_STATE_WINDOW;
    std::uint32_t positions_per_page = 0;
    std::int64_t reach_positions = -1; // -1: grows, never released before the sequence ends
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
    // Drops one reference; the page is free again with the last.
    void release(std::int32_t page);

  private:
    KindRule rule_;
    std::vector<std::uint32_t> references_;
    std::vector<std::int32_t> free_; // taken from the back: lowest id first in a fresh pool
};

// The page tables of one sequence over all pools. Releases its pages when destroyed.
class SequencePages {
  public:
    explicit SequencePages(std::vector<PagePool>& pools);
    ~SequencePages();
    SequencePages(const SequencePages&) = delete;
    SequencePages& operator=(const SequencePages&) = delete;

    // Backs every position below `end_position`; all or nothing. False when a pool is too small.
    bool reserve(std::int64_t end_position);
    // Drops sliding pages that no row at or after `committed` can read.
    void release_behind(std::int64_t committed);
    // Valid until the next change of this object.
    const std::vector<dsv4_page_table>& tables() const noexcept { return tables_; }

  private:
    struct Table {
        PagePool* pool;
        std::int64_t first_page = 0;
        std::vector<std::int32_t> ids;
    };
    void refresh();
    std::vector<Table> owned_;
    std::vector<dsv4_page_table> tables_;
};

} // namespace dsv4::state
