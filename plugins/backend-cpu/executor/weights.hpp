// The weights of a session: taken in as the reader delivers them, kept in their stored format, found by name.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../kernels/matrix.hpp"
#include "dsv4/backend.h"
#include "dsv4/sdk/program.hpp"

namespace dsv4::cpu {

// Zero-filled memory aligned for vector loads.
class Bytes {
  public:
    Bytes() = default;
    explicit Bytes(std::size_t size); // throws Failure(exhausted)
    std::byte* data() const { return data_.get(); }
    std::size_t size() const { return size_; }

  private:
    struct Free {
        void operator()(std::byte* p) const noexcept;
    };
    std::unique_ptr<std::byte[], Free> data_;
    std::size_t size_ = 0;
};

// Whether the kernels can multiply by weights of this format, and as what.
bool matrix_format(const dsv4_format& format, WeightFormat& out);

// Threads: announce, done, sizes and the look-ups on the engine thread; stage and take on one loader thread.
class WeightStore {
  public:
    void announce(std::span<const dsv4_weight> weights);
    // A buffer for one part. Taking a part that lies in it makes the buffer the weight's home: nothing is copied.
    void* stage(std::uint64_t bytes);
    void take(std::uint32_t index, std::uint32_t part, std::string_view data, std::string_view scale);
    void done();
    bool complete() const { return complete_; }
    std::uint64_t resident_bytes() const;

    // Look-ups for a Program's weight; Failure(not_found / unsupported) names what differs from the announcement.
    // 2-d weight as a matrix; part `part` of a 3-d stack as a matrix.
    Matrix matrix(const program::Weight& weight, std::size_t part = 0) const;
    // All elements as float32 (f32 and bf16 weights); converted once, owned by the store.
    std::span<const float> floats(const program::Weight& weight);
    // All elements as int32 (i32 and i64 weights), every one in [0, limit).
    std::span<const std::int32_t> integers(const program::Weight& weight, std::int64_t limit);

  private:
    struct Part {
        Bytes home;
        const std::byte* data = nullptr;
        const std::byte* scale = nullptr;
        bool present = false;
    };
    struct Entry {
        std::string name;
        dsv4_format format{};
        std::vector<std::int64_t> dims;
        std::uint64_t data_bytes = 0, scale_bytes = 0; // of a part
        std::vector<Part> parts;
        std::vector<float> floats;
        std::vector<std::int32_t> integers;
        std::uint64_t elements() const;
    };
    Entry& find(const program::Weight& weight);
    const Entry& find(const program::Weight& weight) const { return const_cast<WeightStore*>(this)->find(weight); }

    std::vector<Entry> entries_;
    std::map<std::string, std::size_t, std::less<>> by_name_;
    mutable std::mutex mutex_; // loader and engine thread
    std::deque<Bytes> staged_; // at most two: the reader may fill one while the other is taken
    bool announced_ = false;
    bool complete_ = false;
};

} // namespace dsv4::cpu
