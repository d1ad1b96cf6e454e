// Layouts, pools and blobs of paged state.
#include "state.hpp"

#include <algorithm>
#include <cstring>

#include "../formats/bf16.hpp"

namespace dsv4::cpu {
namespace {

constexpr std::uint64_t max_pool_bytes = std::uint64_t{1} << 44;

struct KindRule {
    std::int32_t kind;
    std::uint32_t positions_per_page, positions_per_row;
    bool float32_only;
};
constexpr KindRule rules[] = {
    {DSV4_STATE_WINDOW, 64, 1, false},      {DSV4_STATE_CSA, 256, 4, false},
    {DSV4_STATE_HCA, 256, 128, false},      {DSV4_STATE_INDEX, 256, 4, false},
    {DSV4_STATE_CSA_PARTIAL, 4, 1, true},   {DSV4_STATE_HCA_PARTIAL, 64, 1, true},
    {DSV4_STATE_INDEX_PARTIAL, 4, 1, true}, {DSV4_STATE_DRAFT_WINDOW, 64, 1, false},
};

std::string name_of(std::int32_t kind) { return std::string(program::state_name(static_cast<dsv4_state_kind>(kind))); }

std::span<const dsv4_page_list> lists(const dsv4_transfer& t) { return {t.pages, t.page_list_count}; }

template <class T> void append(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

} // namespace

std::uint64_t KindLayout::page_bytes() const {
    return paged() ? layers.size() * rows_per_page() * row_bytes() : row_bytes();
}

std::uint64_t KindLayout::tag() const {
    std::string text = half ? "bf16" : "f32";
    for (const std::uint64_t v : {std::uint64_t(kind), std::uint64_t(positions_per_page),
                                  std::uint64_t(positions_per_row), std::uint64_t(width)})
        text.append(" ").append(std::to_string(v));
    text.append(" [layer][row][width]");
    for (const std::int32_t layer : layers) text.append(" ").append(std::to_string(layer));
    std::uint64_t hash = 0xCBF29CE484222325u; // FNV-1a
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    return hash;
}

std::size_t KindLayout::layer_index(std::int32_t layer) const {
    const auto it = std::lower_bound(layers.begin(), layers.end(), layer);
    if (it == layers.end() || *it != layer)
        throw Failure(Code::unsupported,
                      "state " + name_of(kind) + " of layer " + std::to_string(layer) + " was not allocated",
                      "call state_alloc with a Program that uses it");
    return static_cast<std::size_t>(it - layers.begin());
}

std::vector<KindLayout> layouts_of(const program::Program& p) {
    std::vector<KindLayout> out;
    for (const program::State& s : p.states) {
        const std::string label = "state " + name_of(s.kind) + " of layer " + std::to_string(s.layer);
        std::uint64_t width = 1;
        for (const std::uint32_t d : s.row_dims) {
            width *= d;
            if (d == 0 || width > (1u << 28)) throw Failure(Code::unsupported, label + " has an impossible row shape");
        }
        KindLayout layout{.kind = s.kind, .width = width, .layers = {s.layer}};
        if (s.kind == DSV4_STATE_TOKEN_COUNTS) {
            layout.layers = {0};
        } else {
            const auto rule =
                std::find_if(std::begin(rules), std::end(rules), [&](const KindRule& r) { return r.kind == s.kind; });
            if (rule == std::end(rules))
                throw Failure(Code::unsupported, label + " is of a kind that the CPU backend lacks");
            layout.positions_per_page = rule->positions_per_page;
            layout.positions_per_row = rule->positions_per_row;
            layout.half = s.element == DSV4_BF16;
            if (s.element != DSV4_F32 && s.element != DSV4_BF16)
                throw Failure(Code::unsupported, label + " has rows of " +
                                                     std::string(program::element_name(s.element)) +
                                                     "; the CPU backend stores f32 and bf16");
            if (layout.half && (rule->float32_only || p.precision == DSV4_SCORE))
                throw Failure(Code::unsupported, label + " must have f32 rows here, not bf16");
        }
        const auto same = std::find_if(out.begin(), out.end(), [&](const KindLayout& l) { return l.kind == s.kind; });
        if (same == out.end()) {
            out.push_back(std::move(layout));
            continue;
        }
        if (same->width != layout.width || same->half != layout.half)
            throw Failure(Code::unsupported, label + " has other rows than the layers before it");
        if (std::find(same->layers.begin(), same->layers.end(), layout.layers[0]) == same->layers.end())
            same->layers.push_back(layout.layers[0]);
    }
    for (KindLayout& l : out) std::sort(l.layers.begin(), l.layers.end());
    std::sort(out.begin(), out.end(), [](const KindLayout& a, const KindLayout& b) { return a.kind < b.kind; });
    return out;
}

StateStore::StateStore(std::vector<KindLayout> layouts, std::span<const dsv4_state_pool> pools) {
    for (KindLayout& layout : layouts) pools_.push_back({std::move(layout), 0, {}});
    for (const dsv4_state_pool& wanted : pools) {
        const auto it =
            std::find_if(pools_.begin(), pools_.end(), [&](const Pool& p) { return p.layout.kind == wanted.kind; });
        if (it == pools_.end() || !it->layout.paged())
            throw Failure(Code::invalid,
                          "a pool was given for " + name_of(wanted.kind) + ", which the Program does not page");
        const std::uint64_t page = it->layout.page_bytes();
        if (wanted.pages > 0 && page > max_pool_bytes / wanted.pages)
            throw Failure(Code::exhausted, "the pool of " + name_of(wanted.kind) + " would be larger than 16 TiB");
        it->pages = wanted.pages;
        it->memory = Bytes(page * wanted.pages);
    }
}

const KindLayout* StateStore::layout(std::int32_t kind) const {
    for (const Pool& p : pools_)
        if (p.layout.kind == kind) return &p.layout;
    return nullptr;
}

const StateStore::Pool& StateStore::pool(std::int32_t kind) const {
    for (const Pool& p : pools_)
        if (p.layout.kind == kind) return p;
    throw Failure(Code::invalid, "no state of kind " + name_of(kind) + " was allocated");
}

std::uint32_t StateStore::pages(std::int32_t kind) const {
    for (const Pool& p : pools_)
        if (p.layout.kind == kind) return p.pages;
    return 0;
}

std::uint64_t StateStore::bytes() const {
    std::uint64_t n = 0;
    for (const Pool& p : pools_) n += p.memory.size();
    return n;
}

std::byte* StateStore::row(std::int32_t kind, std::size_t layer_index, std::int32_t page, std::int64_t position) const {
    const Pool& p = pool(kind);
    const KindLayout& l = p.layout;
    const auto row = static_cast<std::uint64_t>(position % l.positions_per_page) / l.positions_per_row;
    return p.memory.data() + static_cast<std::uint64_t>(page) * l.page_bytes() +
           (layer_index * l.rows_per_page() + row) * l.row_bytes();
}

void StateStore::copy_page(std::int32_t kind, std::int32_t from, std::int32_t to) const {
    const Pool& p = pool(kind);
    const std::uint64_t bytes = p.layout.page_bytes();
    if (from != to)
        std::memcpy(p.memory.data() + static_cast<std::uint64_t>(to) * bytes,
                    p.memory.data() + static_cast<std::uint64_t>(from) * bytes, bytes);
}

void StateStore::check_pages(const dsv4_transfer& t) const {
    for (const dsv4_page_list& list : lists(t)) {
        const Pool& p = pool(list.kind);
        if (!p.layout.paged()) throw Failure(Code::invalid, "token counts are no pages and cannot be transferred");
        for (std::uint32_t i = 0; i < list.count; ++i)
            if (list.ids[i] < 0 || static_cast<std::uint32_t>(list.ids[i]) >= p.pages)
                throw Failure(Code::invalid, "page " + std::to_string(list.ids[i]) + " of " + name_of(list.kind) +
                                                 " is outside its pool of " + std::to_string(p.pages));
    }
}

std::string StateStore::blob_header(const dsv4_transfer& t, std::int32_t rank, std::int32_t world) const {
    std::string h = "DSV4BLOB";
    append(h, std::uint32_t{1});
    append(h, std::uint32_t{0}); // header bytes, below
    h.append(reinterpret_cast<const char*>(t.checkpoint_hash), sizeof t.checkpoint_hash);
    append(h, t.begin_position);
    append(h, t.end_position);
    append(h, rank);
    append(h, world);
    append(h, t.page_list_count);
    for (const dsv4_page_list& list : lists(t)) {
        const KindLayout& l = pool(list.kind).layout;
        append(h, list.kind);
        append(h, list.count);
        append(h, l.page_bytes());
        append(h, l.tag());
    }
    h.resize((h.size() + 63) / 64 * 64, '\0');
    const auto bytes = static_cast<std::uint32_t>(h.size());
    std::memcpy(h.data() + 12, &bytes, sizeof bytes);
    return h;
}

std::uint64_t StateStore::blob_bytes(const dsv4_transfer& t) const {
    check_pages(t);
    std::uint64_t n = blob_header(t, 0, 1).size();
    for (const dsv4_page_list& list : lists(t)) n += list.count * pool(list.kind).layout.page_bytes();
    return n;
}

void StateStore::write_blob(const dsv4_transfer& t, std::int32_t rank, std::int32_t world) const {
    const std::string header = blob_header(t, rank, world);
    auto* out = static_cast<std::byte*>(t.memory);
    std::memcpy(out, header.data(), header.size());
    out += header.size();
    for (const dsv4_page_list& list : lists(t)) {
        const Pool& p = pool(list.kind);
        const std::uint64_t bytes = p.layout.page_bytes();
        for (std::uint32_t i = 0; i < list.count; ++i, out += bytes)
            std::memcpy(out, p.memory.data() + static_cast<std::uint64_t>(list.ids[i]) * bytes, bytes);
    }
}

void StateStore::check_blob(const dsv4_transfer& t, std::int32_t rank, std::int32_t world) const {
    const std::uint64_t expected_bytes = blob_bytes(t);
    const std::string expected = blob_header(t, rank, world);
    const auto refuse = [](const std::string& what) {
        throw Failure(Code::invalid, "the state blob cannot be imported: " + what);
    };
    if (t.memory_bytes != expected_bytes)
        refuse("it has " + std::to_string(t.memory_bytes) + " bytes and the pages asked for need " +
               std::to_string(expected_bytes));
    const auto* got = static_cast<const char*>(t.memory);
    struct Field {
        const char* name;
        std::size_t begin, end;
    };
    constexpr Field fields[] = {
        {"magic", 0, 8},       {"version", 8, 12}, {"header size", 12, 16}, {"checkpoint hash", 16, 48},
        {"positions", 48, 64}, {"rank", 64, 68},   {"world", 68, 72},       {"number of kinds", 72, 76}};
    for (const Field& f : fields)
        if (std::memcmp(got + f.begin, expected.data() + f.begin, f.end - f.begin) != 0)
            refuse(std::string("its ") + f.name + " differs");
    std::size_t at = 76;
    for (const dsv4_page_list& list : lists(t)) {
        const Field parts[] = {{"kind", at, at + 4},
                               {"number of pages", at + 4, at + 8},
                               {"page size", at + 8, at + 16},
                               {"layout tag", at + 16, at + 24}};
        for (const Field& f : parts)
            if (std::memcmp(got + f.begin, expected.data() + f.begin, f.end - f.begin) != 0)
                refuse(std::string("the ") + f.name + " of " + name_of(list.kind) + " differs");
        at += 24;
    }
}

void StateStore::read_blob(const dsv4_transfer& t) const {
    const auto* in = static_cast<const std::byte*>(t.memory) + blob_header(t, 0, 1).size();
    for (const dsv4_page_list& list : lists(t)) {
        const Pool& p = pool(list.kind);
        const std::uint64_t bytes = p.layout.page_bytes();
        for (std::uint32_t i = 0; i < list.count; ++i, in += bytes)
            std::memcpy(p.memory.data() + static_cast<std::uint64_t>(list.ids[i]) * bytes, in, bytes);
    }
}

void load_row(const std::byte* row, bool half, std::span<float> out) {
    if (!half) {
        std::memcpy(out.data(), row, out.size_bytes());
        return;
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
        std::uint16_t bits;
        std::memcpy(&bits, row + 2 * i, 2);
        out[i] = bf16_decode(bits);
    }
}

void store_row(std::byte* row, bool half, std::span<const float> in) {
    if (!half) {
        std::memcpy(row, in.data(), in.size_bytes());
        return;
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
        const std::uint16_t bits = bf16_encode(in[i]);
        std::memcpy(row + 2 * i, &bits, 2);
    }
}

} // namespace dsv4::cpu
