// Reference-counted pages and per-sequence tables.
#include "core/state/pages.hpp"

#include <algorithm>

namespace dsv4::state {

std::vector<KindRule> kind_rules(const std::vector<dsv4_state_layout>& layouts, std::int64_t sliding_window) {
    std::vector<KindRule> rules;
    for (const dsv4_state_layout& l : layouts) {
        std::int64_t reach = -1, boundary = 0;
        switch (l.kind) {
        case DSV4_STATE_WINDOW:
        case DSV4_STATE_DRAFT_WINDOW: reach = boundary = sliding_window; break;
        // A ratio-4 window reads its own 4 rows and the 4 before; at a block boundary the next window starts.
        case DSV4_STATE_CSA_PARTIAL:
        case DSV4_STATE_INDEX_PARTIAL:
            reach = 8;
            boundary = 4;
            break;
        // A ratio-128 window reads its own rows only, and a block boundary is the start of one.
        case DSV4_STATE_HCA_PARTIAL: reach = 128; break;
        case DSV4_STATE_TOKEN_COUNTS: continue; // kept per slot
        default: break;
        }
        if (l.positions_per_page == 0)
            throw Failure(Code::internal,
                          "the backend reports pages of 0 positions for state kind " + std::to_string(l.kind));
        if (block_positions % l.positions_per_page != 0 || (reach < 0 && l.positions_per_page != block_positions))
            throw Failure(Code::unsupported, "the backend reports pages of " + std::to_string(l.positions_per_page) +
                                                 " positions for state kind " + std::to_string(l.kind) +
                                                 ", which do not fit blocks of " + std::to_string(block_positions));
        rules.push_back({dsv4_state_kind(l.kind), l.positions_per_page, reach, boundary});
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

BoundaryState::BoundaryState(std::vector<Part> parts) : parts_(std::move(parts)) {
    for (Part& p : parts_)
        for (std::int32_t id : p.ids) p.pool->share(id);
}

BoundaryState::~BoundaryState() { drop(); }

BoundaryState& BoundaryState::operator=(BoundaryState&& other) noexcept {
    if (this != &other) {
        drop();
        parts_ = std::move(other.parts_);
        other.parts_.clear();
    }
    return *this;
}

bool BoundaryState::holds_alone() const {
    for (const Part& p : parts_)
        for (std::int32_t id : p.ids)
            if (p.pool->references(id) == 1) return true;
    return false;
}

void BoundaryState::drop() {
    for (Part& p : parts_)
        for (std::int32_t id : p.ids) p.pool->release(id);
    parts_.clear();
}

SequencePages::SequencePages(std::vector<PagePool>& pools) {
    for (PagePool& pool : pools) owned_.push_back({&pool, 0, {}});
    refresh();
}

SequencePages::~SequencePages() { clear(); }

void SequencePages::clear() {
    for (Table& t : owned_) {
        for (std::int32_t id : t.ids) t.pool->release(id);
        t.ids.clear();
        t.first_page = 0;
    }
    refresh();
}

bool SequencePages::reserve_kinds(std::int64_t end_position, bool growing) {
    auto missing = [&](const Table& t) {
        if (t.pool->rule().grows() != growing) return std::int64_t(0);
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

bool SequencePages::release_behind(std::int64_t committed) {
    bool changed = false;
    for (Table& t : owned_) {
        const KindRule& rule = t.pool->rule();
        if (rule.grows()) continue;
        const std::int64_t keep_from =
            std::max<std::int64_t>(0, committed - rule.reach_positions) / std::int64_t(rule.positions_per_page);
        const std::int64_t drop = std::min<std::int64_t>(keep_from - t.first_page, std::int64_t(t.ids.size()));
        if (drop <= 0) continue;
        for (std::int64_t i = 0; i < drop; ++i) t.pool->release(t.ids[std::size_t(i)]);
        t.ids.erase(t.ids.begin(), t.ids.begin() + drop);
        t.first_page += drop;
        changed = true;
    }
    if (changed) refresh();
    return changed;
}

std::optional<BoundaryState> SequencePages::capture(std::int64_t boundary) const {
    std::vector<BoundaryState::Part> parts;
    for (const Table& t : owned_) {
        const KindRule& rule = t.pool->rule();
        if (rule.grows()) continue;
        const std::int64_t per_page = rule.positions_per_page;
        const std::int64_t first = std::max<std::int64_t>(0, boundary - rule.boundary_positions) / per_page;
        BoundaryState::Part part{t.pool, first, {}};
        for (std::int64_t page = first; page < boundary / per_page; ++page) {
            const std::int64_t index = page - t.first_page;
            if (index < 0 || index >= std::int64_t(t.ids.size())) return std::nullopt;
            part.ids.push_back(t.ids[std::size_t(index)]);
        }
        if (rule.boundary_positions == 0) part = {t.pool, boundary / per_page, {}};
        parts.push_back(std::move(part));
    }
    return BoundaryState(std::move(parts));
}

void SequencePages::adopt(const std::vector<std::vector<std::int32_t>>& growing, const BoundaryState& state,
                          std::int64_t boundary) {
    std::size_t next_growing = 0, next_part = 0;
    for (Table& t : owned_) {
        if (!t.ids.empty()) throw Failure(Code::internal, "a sequence adopts a prefix but already has pages");
        if (t.pool->rule().grows()) {
            t.ids = growing.at(next_growing++);
            if (std::int64_t(t.ids.size()) * block_positions != boundary)
                throw Failure(Code::internal, "a prefix has another number of pages than its boundary needs");
            t.first_page = 0;
        } else {
            const BoundaryState::Part& part = state.parts().at(next_part++);
            t.ids = part.ids;
            t.first_page = part.first_page;
        }
        for (std::int32_t id : t.ids) t.pool->share(id);
    }
    refresh();
}

bool SequencePages::fork(const SequencePages& parent, std::int64_t committed, std::vector<dsv4_page_copy>& copies) {
    const std::size_t copies_before = copies.size();
    for (std::size_t i = 0; i < owned_.size(); ++i) {
        const Table& from = parent.owned_[i];
        Table& to = owned_[i];
        const KindRule& rule = from.pool->rule();
        const std::int64_t per_page = rule.positions_per_page;
        const std::int64_t keep_from =
            rule.grows() ? 0 : std::max<std::int64_t>(0, committed - rule.reach_positions) / per_page;
        to.first_page = std::max(keep_from, from.first_page);
        const std::int64_t end_page = (committed + per_page - 1) / per_page;
        for (std::int64_t page = to.first_page; page < end_page; ++page) {
            std::int32_t id = from.ids.at(std::size_t(page - from.first_page));
            if ((page + 1) * per_page <= committed) {
                from.pool->share(id);
            } else {
                const std::int32_t copy = from.pool->acquire();
                if (copy < 0) {
                    copies.resize(copies_before);
                    clear();
                    return false;
                }
                copies.push_back({rule.kind, id, copy});
                id = copy;
            }
            to.ids.push_back(id);
        }
    }
    refresh();
    return true;
}

std::vector<std::int32_t> SequencePages::growing_block(std::int64_t block) const {
    std::vector<std::int32_t> ids;
    for (const Table& t : owned_)
        if (t.pool->rule().grows()) ids.push_back(t.ids.at(std::size_t(block)));
    return ids;
}

void SequencePages::refresh() {
    tables_.clear();
    for (const Table& t : owned_)
        tables_.push_back({t.pool->rule().kind, std::uint32_t(t.ids.size()), t.first_page, t.ids.data()});
}

} // namespace dsv4::state
