// Fills dsv4_batch.
#include "core/runtime/batch.hpp"

namespace dsv4::runtime {

dsv4_batch_slot& Batch::slot(std::int32_t number, const std::vector<dsv4_page_table>& tables) {
    dsv4_batch_slot s{};
    s.slot = number;
    s.tables = tables.data();
    s.table_count = std::uint32_t(tables.size());
    slots_.push_back(s);
    return slots_.back();
}

void Batch::row(std::int64_t position, std::int32_t input, std::int32_t token, std::uint32_t flags) {
    rows_.push_back({std::int32_t(slots_.size()) - 1, input, token, flags, position});
}

void Batch::input(const std::string& name, const void* data, std::uint64_t bytes) {
    inputs_.push_back({name, const_cast<void*>(data), bytes});
}

void Batch::output(const std::string& name, void* data, std::uint64_t bytes) {
    outputs_.push_back({name, data, bytes});
}

const dsv4_batch& Batch::view() {
    auto tensors = [](const std::vector<Named>& named, std::vector<dsv4_tensor>& views) {
        views.clear();
        for (const Named& n : named) views.push_back({{n.name.data(), n.name.size()}, n.data, n.bytes});
    };
    tensors(inputs_, input_views_);
    tensors(outputs_, output_views_);
    batch_ = {};
    batch_.struct_size = sizeof batch_;
    batch_.row_bytes = sizeof(dsv4_row);
    batch_.slot_bytes = sizeof(dsv4_batch_slot);
    batch_.row_count = rows();
    batch_.slot_count = std::uint32_t(slots_.size());
    batch_.rows = rows_.data();
    batch_.slots = slots_.data();
    batch_.copies = copies_.data();
    batch_.copy_count = std::uint32_t(copies_.size());
    batch_.inputs = input_views_.data();
    batch_.input_count = std::uint32_t(input_views_.size());
    batch_.outputs = output_views_.data();
    batch_.output_count = std::uint32_t(output_views_.size());
    return batch_;
}

} // namespace dsv4::runtime
