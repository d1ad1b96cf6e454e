// Paged state: how the kinds of a Program are laid out, the pools that hold them, and blobs of pages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dsv4/backend.h"
#include "dsv4/sdk/program.hpp"
#include "weights.hpp"

namespace dsv4::cpu {

// One kind: a page is [layers][rows_per_page][width] of f32 or bf16, the layers in ascending number.
struct KindLayout {
    std::int32_t kind = 0;
    std::uint32_t positions_per_page = 0; // 0: kept per slot
    std::uint32_t positions_per_row = 1;  // 1, 4 or 128
    std::size_t width = 0;                // elements of a row
    bool half = false;                    // bf16, else f32 (counts: u32)
    std::vector<std::int32_t> layers;

    bool paged() const { return positions_per_page > 0; }
    std::uint32_t rows_per_page() const { return paged() ? positions_per_page / positions_per_row : 0; }
    std::uint64_t row_bytes() const { return width * (half ? 2u : 4u); }
    std::uint64_t page_bytes() const;                  // all layers; for counts: bytes a slot
    std::uint64_t tag() const;                         // equal for byte-compatible pages
    std::size_t layer_index(std::int32_t layer) const; // throws Failure(unsupported)
    bool operator==(const KindLayout&) const = default;
};

// The layouts of every kind the Program uses, by ascending kind. Throws Failure(unsupported) for an element type that
// is not stored, rows of different widths in one kind, or bf16 storage in a `score` Program.
std::vector<KindLayout> layouts_of(const program::Program& program);

// The pages of all kinds. Threads: the session's worker while tickets run, the engine thread otherwise.
class StateStore {
  public:
    StateStore() = default;
    StateStore(std::vector<KindLayout> layouts, std::span<const dsv4_state_pool> pools);

    const KindLayout* layout(std::int32_t kind) const;
    std::uint32_t pages(std::int32_t kind) const;
    std::uint64_t bytes() const;

    // Row holding `position` of a page in one layer.
    std::byte* row(std::int32_t kind, std::size_t layer_index, std::int32_t page, std::int64_t position) const;
    void copy_page(std::int32_t kind, std::int32_t from, std::int32_t to) const;

    // The blob of docs/contracts.md, section State blobs.
    std::uint64_t blob_bytes(const dsv4_transfer& transfer) const;
    void write_blob(const dsv4_transfer& transfer, std::int32_t rank, std::int32_t world) const;
    // Everything but the pages; throws Failure naming the first difference.
    void check_blob(const dsv4_transfer& transfer, std::int32_t rank, std::int32_t world) const;
    void read_blob(const dsv4_transfer& transfer) const; // after check_blob

  private:
    struct Pool {
        KindLayout layout;
        std::uint32_t pages = 0;
        Bytes memory;
    };
    const Pool& pool(std::int32_t kind) const;
    void check_pages(const dsv4_transfer& transfer) const;
    std::string blob_header(const dsv4_transfer& transfer, std::int32_t rank, std::int32_t world) const;
    std::vector<Pool> pools_;
};

// A stored row as float32 and back.
void load_row(const std::byte* row, bool half, std::span<float> out);
void store_row(std::byte* row, bool half, std::span<const float> in);

} // namespace dsv4::cpu
