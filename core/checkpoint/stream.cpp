// Reads weights in file order, with the kernel reading ahead, straight into the sink's memory.
#include "core/checkpoint/stream.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace dsv4::checkpoint {
namespace {

constexpr std::size_t scale_alignment_bytes = 64;

struct Item {
    const model::Weight* weight = nullptr;
    const Tensor* data = nullptr;
    const Tensor* scale = nullptr; // may be null

    std::uint64_t size_bytes() const { return data->entry->size_bytes + (scale ? scale->entry->size_bytes : 0); }
};

std::size_t align_up(std::size_t bytes) { return (bytes + scale_alignment_bytes - 1) & ~(scale_alignment_bytes - 1); }

std::vector<Item> plan(const Checkpoint& checkpoint, const StreamOptions& options) {
    std::vector<Item> items;
    for (const model::Weight& w : checkpoint.weights()) {
        if (options.wanted && !options.wanted(w)) continue;
        // Both exist: the checkpoint is loadable.
        items.push_back(
            {&w, checkpoint.find(w.data_tensor), w.scale_tensor.empty() ? nullptr : checkpoint.find(w.scale_tensor)});
    }
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
        return std::tie(a.data->shard, a.data->file_offset_bytes) < std::tie(b.data->shard, b.data->file_offset_bytes);
    });
    return items;
}

void will_need(const Checkpoint& checkpoint, const Item& item) {
    for (const Tensor* t : {item.data, item.scale})
        if (t) checkpoint.shards()[t->shard].file.file().will_need(t->file_offset_bytes, t->entry->size_bytes);
}

void check_token_table(const model::Weight& weight, std::span<const std::byte> data, std::int64_t experts) {
    const std::int64_t columns = weight.dims.back();
    for (std::size_t i = 0; i < data.size() / sizeof(std::int64_t); ++i) {
        std::int64_t expert = 0;
        std::memcpy(&expert, data.data() + i * sizeof expert, sizeof expert);
        if (expert < 0 || expert >= experts)
            throw Failure(Code::corrupt,
                          "weight " + weight.name + " sends token " +
                              std::to_string(static_cast<std::int64_t>(i) / columns) + " to expert " +
                              std::to_string(expert) + "; there are " + std::to_string(experts),
                          "fetch the shard that holds it again");
    }
}

void deliver(const Checkpoint& checkpoint, WeightSink& sink, const Item& item) {
    const std::size_t data_bytes = item.data->entry->size_bytes;
    const std::size_t scale_bytes = item.scale ? item.scale->entry->size_bytes : 0;
    auto* staged = static_cast<std::byte*>(sink.stage(staged_bytes(data_bytes, scale_bytes)));
    if (!staged)
        throw Failure(Code::exhausted, "no memory was given for weight " + item.weight->name + " (" +
                                           std::to_string(data_bytes + scale_bytes) + " bytes)");
    const std::span data(staged, data_bytes);
    const std::span scale(scale_bytes ? staged + align_up(data_bytes) : staged + data_bytes, scale_bytes);
    checkpoint.read(*item.data, data);
    if (item.scale) checkpoint.read(*item.scale, scale);
    if (item.weight->format == model::Format::i64)
        check_token_table(*item.weight, data, checkpoint.card().geometry.n_routed_experts);
    sink.deliver(*item.weight, data, scale);
}

} // namespace

std::size_t staged_bytes(std::size_t data_bytes, std::size_t scale_bytes) noexcept {
    return scale_bytes == 0 ? data_bytes : align_up(data_bytes) + scale_bytes;
}

Status stream_weights(const Checkpoint& checkpoint, WeightSink& sink, const StreamOptions& options) {
    return guard([&] {
        checkpoint.loadable().value();
        const std::vector<Item> items = plan(checkpoint, options);
        Progress progress;
        progress.total_weights = items.size();
        for (const Item& item : items) progress.total_bytes += item.size_bytes();
        std::size_t ahead = 0;
        std::uint64_t asked_bytes = 0;
        for (const Item& item : items) {
            for (; ahead < items.size() && asked_bytes <= progress.done_bytes + options.lookahead_bytes; ++ahead) {
                will_need(checkpoint, items[ahead]);
                asked_bytes += items[ahead].size_bytes();
            }
            deliver(checkpoint, sink, item);
            progress.done_bytes += item.size_bytes();
            ++progress.done_weights;
            progress.weight = item.weight->name;
            if (options.progress && !options.progress(progress))
                throw Failure(Code::cancelled, "loading stopped after weight " + item.weight->name);
        }
    });
}

} // namespace dsv4::checkpoint
