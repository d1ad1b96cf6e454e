// A batch under construction: owns the arrays that a dsv4_batch points to.
#pragma once

#include "dsv4/backend.h"

#include <string>
#include <vector>

namespace dsv4::runtime {

// Not thread-safe. Pointers passed in (tables, sampling, tensors' memory) must live until submit; outputs until wait.
class Batch {
  public:
    // Starts the rows of a slot; returns it to set flags, committed length, sampling and token lists.
    dsv4_batch_slot& slot(std::int32_t number, const std::vector<dsv4_page_table>& tables);
    // A row of the slot started last.
    void row(std::int64_t position, std::int32_t input, std::int32_t token, std::uint32_t flags);
    // Copies a page before the rows run.
    void copy(const dsv4_page_copy& copy) { copies_.push_back(copy); }
    void input(const std::string& name, const void* data, std::uint64_t bytes);
    void output(const std::string& name, void* data, std::uint64_t bytes);
    std::uint32_t rows() const noexcept { return std::uint32_t(rows_.size()); }
    std::uint32_t slots() const noexcept { return std::uint32_t(slots_.size()); }
    std::uint32_t copies() const noexcept { return std::uint32_t(copies_.size()); }
    // Points into this object: valid until it changes.
    const dsv4_batch& view();

  private:
    std::vector<dsv4_batch_slot> slots_;
    std::vector<dsv4_row> rows_;
    std::vector<dsv4_page_copy> copies_;
    struct Named {
        std::string name;
        void* data;
        std::uint64_t bytes;
    };
    std::vector<Named> inputs_, outputs_;
    std::vector<dsv4_tensor> input_views_, output_views_;
    dsv4_batch batch_{};
};

} // namespace dsv4::runtime
