// Where a kernel gets its threads: tasks 0..count-1, any order, any thread; run() returns when all are done.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>

namespace dsv4::cpu {

class Parallel {
  public:
    virtual ~Parallel() = default;
    virtual void run(std::size_t tasks, const std::function<void(std::size_t)>& task) const = 0;
};

// Everything on the calling thread.
class Serial final : public Parallel {
  public:
    void run(std::size_t tasks, const std::function<void(std::size_t)>& task) const override {
        for (std::size_t i = 0; i < tasks; ++i) task(i);
    }
};

// Runs f(begin, end) over 0..count-1 cut into pieces of about `grain` items. Work worth less than two pieces stays
// here.
template <class F> void for_pieces(const Parallel& parallel, std::size_t count, std::size_t grain, F&& f) {
    grain = std::max<std::size_t>(grain, 1);
    if (count <= grain) {
        if (count > 0) f(std::size_t{0}, count);
        return;
    }
    const std::size_t pieces = (count + grain - 1) / grain;
    parallel.run(pieces, [&](std::size_t i) { f(i * grain, std::min(count, (i + 1) * grain)); });
}

} // namespace dsv4::cpu
