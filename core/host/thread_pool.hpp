// The threads that all plugins share.
#pragma once

#include <cstdint>
#include <memory>

namespace dsv4::host {

// Any thread may call run at the same time. Which thread runs which index is not fixed; a body whose results depend on
// its own index only gives the same results for every thread count.
class ThreadPool {
  public:
    // `threads` counts the calling thread too; 0: one for each processor that this process may use.
    explicit ThreadPool(std::uint32_t threads = 0);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    std::uint32_t threads() const noexcept;
    // Calls body(arg, i) once for every i < count, on the pool and on the calling thread; returns when all have
    // returned. From inside a body everything runs on the calling thread, in order. `body` must not throw.
    void run(std::uint32_t count, void (*body)(void* arg, std::uint32_t index), void* arg) noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace dsv4::host
