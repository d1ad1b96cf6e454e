// Streams the weights of a checkpoint into memory that somebody else owns, each weight once and never held twice.
#pragma once

#include "core/checkpoint/checkpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace dsv4::checkpoint {

// Receives weights one at a time, all calls from the thread that called stream_weights. Members may throw Failure,
// which ends the streaming with that error.
class WeightSink {
  public:
    virtual ~WeightSink() = default;
    // Memory for the next weight: at least `bytes` bytes, aligned to 64, owned by the sink and valid until deliver()
    // for it returns. Null means that the sink is out of memory.
    virtual void* stage(std::size_t bytes) = 0;
    // The weight staged last. `data` is at the start of the staged memory, `scale` (empty where the format has none)
    // at the next multiple of 64 behind it; both as they lie in the file (formats: model::Format).
    virtual void deliver(const model::Weight& weight, std::span<const std::byte> data,
                         std::span<const std::byte> scale) = 0;
};

struct Progress {
    std::uint64_t done_bytes = 0;
    std::uint64_t total_bytes = 0;
    std::size_t done_weights = 0;
    std::size_t total_weights = 0;
    std::string_view weight; // delivered last; valid during the call
};

struct StreamOptions {
    // Which weights to stream; all where empty. A rank of an expert-parallel group asks for its own experts only.
    std::function<bool(const model::Weight&)> wanted;
    // Called after each weight; false stops with Code::cancelled. May be empty.
    std::function<bool(const Progress&)> progress;
    // How far ahead the kernel is asked to read.
    std::uint64_t lookahead_bytes = 64u << 20;
};

// Bytes to stage for one weight, with the gap before the scale.
std::size_t staged_bytes(std::size_t data_bytes, std::size_t scale_bytes) noexcept;

// Streams in file order, so that disks see sequential reads. Refuses a checkpoint that is not loadable(). Token tables
// are checked to name existing experts, since a backend uses them as indices.
Status stream_weights(const Checkpoint& checkpoint, WeightSink& sink, const StreamOptions& options = {});

} // namespace dsv4::checkpoint
