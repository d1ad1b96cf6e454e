// The tree of published blocks, its two eviction orders and the reasons of misses.
#include "core/prefix/prefix_cache.hpp"

#include <algorithm>

namespace dsv4::prefix {
namespace {

constexpr std::size_t block_tokens = std::size_t(state::block_positions);
constexpr std::size_t remembered_evictions = 65536;

std::span<const std::int32_t> block_of(std::span<const std::int32_t> tokens, std::size_t block) {
    return tokens.subspan(block * block_tokens, block_tokens);
}

} // namespace

struct PrefixCache::Entry {
    BlockKey key{};
    Entry* parent = nullptr; // null: a first block
    BlockKey root{};         // of first blocks: whose list it is in
    BlockKey content{};      // of first blocks: key under the empty salt
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> pages; // one a growing pool
    std::vector<Entry*> children;
    std::optional<state::BoundaryState> boundary;
    bool boundary_evicted = false;
    std::uint64_t used = 0;
};

std::string_view name(Miss miss) noexcept {
    switch (miss) {
    case Miss::none: return "none";
    case Miss::disabled: return "disabled";
    case Miss::below_block: return "below-block";
    case Miss::none_yet: return "none-yet";
    case Miss::diverged: return "diverged-at";
    case Miss::salt: return "salt";
    case Miss::growing_evicted: return "growing-evicted";
    case Miss::boundary_state_evicted: return "boundary-state-evicted";
    case Miss::boundary_state_not_retained: return "boundary-state-not-retained";
    case Miss::pages_exhausted: return "pages-exhausted";
    }
    return "none";
}

std::string Match::reason() const {
    if (miss == Miss::none) return {};
    std::string text(name(miss));
    if (miss == Miss::diverged) text += ' ' + std::to_string(position);
    return text;
}

std::span<const BlockKey> BlockKeys::upto(std::size_t blocks, std::span<const std::int32_t> tokens) {
    while (keys_.size() < blocks)
        keys_.push_back(chain_key(keys_.empty() ? root_ : keys_.back(), block_of(tokens, keys_.size())));
    return {keys_.data(), blocks};
}

PrefixCache::PrefixCache(Options options, std::vector<state::PagePool>& pools) : options_(options) {
    for (state::PagePool& pool : pools)
        if (pool.rule().grows()) growing_.push_back(&pool);
}

PrefixCache::~PrefixCache() { clear(); }

Statistics PrefixCache::statistics() const noexcept {
    return {entries_.size(), with_boundary_.size(), evicted_blocks_, evicted_boundary_states_};
}

PrefixCache::Entry* PrefixCache::find(const BlockKey& key) const {
    const auto it = entries_.find(key);
    return it == entries_.end() ? nullptr : it->second.get();
}

std::uint64_t PrefixCache::unshared_blocks() const {
    std::uint64_t n = 0;
    for (const auto& [key, entry] : entries_)
        n +=
            std::all_of(growing_.begin(), growing_.end(), [&, i = std::size_t(0)](const state::PagePool* pool) mutable {
                return pool->references(entry->pages[i++]) == 1;
            });
    return n;
}

void PrefixCache::touch(Entry& entry) {
    const std::uint64_t now = ++clock_;
    if (leaves_.erase({entry.used, &entry})) leaves_.insert({now, &entry});
    if (with_boundary_.erase({entry.used, &entry})) with_boundary_.insert({now, &entry});
    entry.used = now;
}

Match PrefixCache::match(BlockKeys& keys, std::span<const std::int32_t> tokens) {
    if (!options_.enabled) return {0, Miss::disabled, 0};
    const std::size_t usable = tokens.empty() ? 0 : (tokens.size() - 1) / block_tokens;
    if (usable == 0) return {0, Miss::below_block, 0};
    const auto chain = keys.upto(usable, tokens);
    std::size_t known = 0, reusable = 0;
    Entry* last = nullptr;
    while (known < usable) {
        Entry* next = find(chain[known]);
        if (!next) break;
        last = next;
        ++known;
        if (last->boundary) reusable = known;
    }
    for (Entry* e = last; e; e = e->parent) touch(*e); // deepest first: a parent is never older than its children
    Match m;
    m.tokens = std::int64_t(reusable * block_tokens);
    m.position = m.tokens;
    if (reusable < known)
        m.miss = last->boundary_evicted ? Miss::boundary_state_evicted : Miss::boundary_state_not_retained;
    else if (known < usable)
        m.miss = explain_stop(keys, tokens, known, last, m.position);
    return m;
}

Miss PrefixCache::explain_stop(BlockKeys& keys, std::span<const std::int32_t> tokens, std::size_t known, Entry* last,
                               std::int64_t& position) const {
    const BlockKey wanted = keys.upto(known + 1, tokens)[known];
    if (evicted_.contains(wanted)) return Miss::growing_evicted;
    const std::vector<Entry*>* siblings = nullptr;
    if (last)
        siblings = &last->children;
    else if (const auto it = roots_.find(keys.root()); it != roots_.end())
        siblings = &it->second;
    const auto here = block_of(tokens, known);
    if (siblings && !siblings->empty()) {
        std::size_t common = 0;
        for (const Entry* e : *siblings)
            common = std::max<std::size_t>(
                common, std::size_t(std::mismatch(here.begin(), here.end(), e->tokens.begin()).first - here.begin()));
        position = std::int64_t(known * block_tokens + common);
        if (common > 0 || last) return Miss::diverged;
    }
    if (!last && content_roots_.contains(chain_key(root_key({}), here))) return Miss::salt;
    if (siblings && !siblings->empty()) return Miss::diverged;
    return Miss::none_yet;
}

void PrefixCache::attach(const Match& match, BlockKeys& keys, std::span<const std::int32_t> tokens,
                         state::SequencePages& pages) {
    if (match.tokens == 0) return;
    const auto chain = keys.upto(std::size_t(match.tokens) / block_tokens, tokens);
    std::vector<std::vector<std::int32_t>> growing(growing_.size());
    const Entry* e = nullptr;
    for (const BlockKey& key : chain) {
        e = find(key);
        if (!e) throw Failure(Code::internal, "a matched prefix block is gone");
        for (std::size_t i = 0; i < growing.size(); ++i) growing[i].push_back(e->pages[i]);
    }
    if (!e->boundary) throw Failure(Code::internal, "a matched prefix boundary has lost its state");
    pages.adopt(growing, *e->boundary, match.tokens);
}

void PrefixCache::publish(BlockKeys& keys, std::span<const std::int32_t> tokens, std::size_t blocks,
                          const state::SequencePages& pages) {
    if (!options_.enabled || blocks == 0) return;
    const auto chain = keys.upto(blocks, tokens);
    // Blocks before may have been evicted meanwhile; begin behind the last one that is known.
    std::size_t first = blocks;
    while (first > 0 && !find(chain[first - 1])) --first;
    Entry* parent = first > 0 ? find(chain[first - 1]) : nullptr;
    for (std::size_t block = first; block < blocks; ++block) {
        auto made = std::make_unique<Entry>();
        Entry& e = *made;
        e.key = chain[block];
        e.parent = parent;
        const auto own = block_of(tokens, block);
        e.tokens.assign(own.begin(), own.end());
        e.pages = pages.growing_block(std::int64_t(block));
        for (std::size_t i = 0; i < growing_.size(); ++i) growing_[i]->share(e.pages[i]);
        if (parent) {
            if (parent->children.empty()) leaves_.erase({parent->used, parent});
            parent->children.push_back(&e);
        } else {
            e.root = keys.root();
            e.content = chain_key(root_key({}), own);
            roots_[e.root].push_back(&e);
            ++content_roots_[e.content];
        }
        evicted_.erase(e.key);
        e.used = ++clock_;
        leaves_.insert({e.used, &e});
        entries_.emplace(e.key, std::move(made));
        parent = &e;
    }
}

void PrefixCache::retain(BlockKeys& keys, std::span<const std::int32_t> tokens, std::size_t blocks,
                         state::BoundaryState boundary) {
    if (!options_.enabled || blocks == 0 || options_.boundary_states == 0) return;
    Entry* e = find(keys.upto(blocks, tokens)[blocks - 1]);
    if (!e) return;
    touch(*e);
    if (e->boundary) return;
    while (with_boundary_.size() >= options_.boundary_states) {
        ++evicted_boundary_states_;
        drop_boundary(*with_boundary_.begin()->second);
    }
    e->boundary = std::move(boundary);
    e->boundary_evicted = false;
    with_boundary_.insert({e->used, e});
}

void PrefixCache::drop_boundary(Entry& entry) {
    with_boundary_.erase({entry.used, &entry});
    entry.boundary.reset();
    entry.boundary_evicted = true;
}

bool PrefixCache::evict_boundary_state() {
    for (const auto& [used, entry] : with_boundary_)
        if (entry->boundary->holds_alone()) {
            ++evicted_boundary_states_;
            drop_boundary(*entry);
            return true;
        }
    return false;
}

bool PrefixCache::evict_block() {
    for (const auto& [used, entry] : leaves_) {
        bool frees = false;
        for (std::size_t i = 0; i < growing_.size(); ++i)
            frees = frees || growing_[i]->references(entry->pages[i]) == 1;
        if (!frees) continue;
        ++evicted_blocks_;
        if (evicted_.insert(entry->key).second) evicted_order_.push_back(entry->key);
        if (evicted_order_.size() > remembered_evictions) {
            evicted_.erase(evicted_order_.front());
            evicted_order_.pop_front();
        }
        erase(*entry);
        return true;
    }
    return false;
}

void PrefixCache::erase(Entry& entry) {
    leaves_.erase({entry.used, &entry});
    with_boundary_.erase({entry.used, &entry});
    for (std::size_t i = 0; i < growing_.size(); ++i) growing_[i]->release(entry.pages[i]);
    if (Entry* parent = entry.parent) {
        std::erase(parent->children, &entry);
        if (parent->children.empty()) leaves_.insert({parent->used, parent});
    } else {
        auto list = roots_.find(entry.root);
        std::erase(list->second, &entry);
        if (list->second.empty()) roots_.erase(list);
        const auto count = content_roots_.find(entry.content);
        if (--count->second == 0) content_roots_.erase(count);
    }
    const BlockKey key = entry.key; // the entry dies with its map node
    entries_.erase(key);
}

void PrefixCache::clear() {
    while (!leaves_.empty()) erase(*leaves_.begin()->second);
    evicted_.clear();
    evicted_order_.clear();
}

} // namespace dsv4::prefix
