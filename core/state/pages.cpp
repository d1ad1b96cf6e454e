// Reference-counted pages and per-sequence tables.
#include "core/state/pages.hpp"

#include <algorithm>

namespace dsv4::state {

std::vector<KindRule> kind_rules(const std::vector<dsv4_state_layout>& layouts, std::int64_t sliding_window) {
    std::vector<KindRule> rules;
    for (const dsv4_state_layout& l : layouts) {
        std::int64_t reach = -1;
        switch (l.kind) {
        case DSV4_STATE_WINDOW:
        case DSV4_STATE_DRAFT_WINDOW: reach = sliding_window; break;
        case DSV4_STATE_CSA_PARTIAL:
        case DSV4_STATE_INDEX_PARTIAL: reach = 8; break;
        case DSV4_STATE_HCA_PARTIAL: reach = 128; break;
        case DSV4_STATE_TOKEN_COUNTS: continue; // kept per slot
        default: break;
        }
        if (l.positions_per_page == 0)
            throw Failure(Code::internal,
                          "the backend reports pages of 0 positions for state kind " + std::to_string(l.kind));
        rules.push_back({dsv4_state_kind(l.kind), l.positions_per_page, reach});
    }
    return rules;
}

PagePool::PagePool(KindRule rule, std::uint32_t pages) : rule_(rule), references_(pages, 0) {
    for (std::uint32_t i = pages; i > 0; --i) free_.push_back(std::int32_t(i - 1));
}

std::int32_t PagePool::acquire() {
    if (free_.empty()) return -1;
    const std::int32_t page = free_.back();
    free_.pop_back();
    references_[std::size_t(page)] = 1;
    return page;
}

void PagePool::share(std::int32_t page) { ++references_.at(std::size_t(page)); }

void PagePool::release(std::int32_t page) {
    std::uint32_t& count = references_.at(std::size_t(page));
    if (count == 0) throw Failure(Code::internal, "page " + std::to_string(page) + " was released twice");
    if (--count == 0) free_.push_back(page);
}

SequencePages::SequencePages(std::vector<PagePool>& pools) {
    for (PagePool& pool : pools) owned_.push_back({&pool, 0, {}});
    refresh();
}

SequencePages::~SequencePages() {
    for (Table& t : owned_)
        for (std::int32_t id : t.ids) t.pool->release(id);
}

bool SequencePages::reserve(std::int64_t end_position) {
    auto missing = [&](const Table& t) {
        const std::int64_t per_page = t.pool->rule().positions_per_page;
        const std::int64_t end_page = (end_position + per_page - 1) / per_page;
        return std::max<std::int64_t>(0, end_page - t.first_page - std::int64_t(t.ids.size()));
    };
    for (const Table& t : owned_)
        if (missing(t) > std::int64_t(t.pool->free_pages())) return false;
    bool changed = false;
    for (Table& t : owned_)
        for (std::int64_t n = missing(t); n > 0; --n) {
            t.ids.push_back(t.pool->acquire());
            changed = true;
        }
    if (changed) refresh();
    return true;
}

void SequencePages::release_behind(std::int64_t committed) {
    bool changed = false;
    for (Table& t : owned_) {
        const KindRule& rule = t.pool->rule();
        if (rule.reach_positions < 0) continue;
        const std::int64_t keep_from =
            std::max<std::int64_t>(0, committed - rule.reach_positions) / std::int64_t(rule.positions_per_page);
        const std::int64_t drop = std::min<std::int64_t>(keep_from - t.first_page, std::int64_t(t.ids.size()));
        for (std::int64_t i = 0; i < drop; ++i) t.pool->release(t.ids[std::size_t(i)]);
        if (drop > 0) {
            t.ids.erase(t.ids.begin(), t.ids.begin() + drop);
            t.first_page += drop;
            changed = true;
        }
    }
    if (changed) refresh();
}

void SequencePages::refresh() {
    tables_.clear();
    for (const Table& t : owned_)
        tables_.push_back({t.pool->rule().kind, std::uint32_t(t.ids.size()), t.first_page, t.ids.data()});
}

} // namespace dsv4::state
