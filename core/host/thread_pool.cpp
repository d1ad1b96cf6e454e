// A pool that hands out the indices of parallel loops one by one.
#include "core/host/thread_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace dsv4::host {
namespace {

// Spins before a thread sleeps: a loop often follows the last one within microseconds, and waking costs more than that.
constexpr int spins = 2000;

inline void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

thread_local bool inside_body = false;

std::uint32_t usable_processors() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
        if (const int n = CPU_COUNT(&set); n > 0) return std::uint32_t(n);
    return std::max(1u, std::thread::hardware_concurrency());
}

// One loop; lives on the stack of its caller.
struct Loop {
    void (*body)(void*, std::uint32_t);
    void* arg;
    std::uint32_t count;
    std::atomic<std::uint32_t> next{0};
    std::atomic<std::uint32_t> helpers{0}; // changed under the mutex

    void work() noexcept {
        inside_body = true;
        for (auto i = next.fetch_add(1, std::memory_order_relaxed); i < count;
             i = next.fetch_add(1, std::memory_order_relaxed))
            body(arg, i);
        inside_body = false;
    }
    bool exhausted() const noexcept { return next.load(std::memory_order_relaxed) >= count; }
};

} // namespace

struct ThreadPool::State {
    std::mutex mutex;
    std::condition_variable wake, done;
    std::list<Loop*> loops;
    std::atomic<std::uint32_t> open_loops{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> workers;

    void serve() noexcept {
        while (true) {
            for (int i = 0; i < spins && !open_loops.load(std::memory_order_relaxed) && !stop; ++i) pause();
            std::unique_lock lock(mutex);
            wake.wait(lock, [&] { return stop || !loops.empty(); });
            if (stop) return;
            Loop& loop = *loops.front();
            if (loop.exhausted()) {
                loops.pop_front();
                --open_loops;
                continue;
            }
            ++loop.helpers;
            lock.unlock();
            loop.work();
            lock.lock();
            if (--loop.helpers == 0) done.notify_all();
        }
    }
};

ThreadPool::ThreadPool(std::uint32_t threads) : state_(std::make_unique<State>()) {
    if (threads == 0) threads = usable_processors();
    for (std::uint32_t i = 1; i < threads; ++i) state_->workers.emplace_back([s = state_.get()] { s->serve(); });
}

ThreadPool::~ThreadPool() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stop = true;
    }
    state_->wake.notify_all();
    for (auto& worker : state_->workers) worker.join();
}

std::uint32_t ThreadPool::threads() const noexcept { return std::uint32_t(state_->workers.size()) + 1; }

void ThreadPool::run(std::uint32_t count, void (*body)(void*, std::uint32_t), void* arg) noexcept {
    if (count < 2 || inside_body || state_->workers.empty()) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const bool before = std::exchange(inside_body, true);
            body(arg, i);
            inside_body = before;
        }
        return;
    }
    Loop loop{body, arg, count};
    {
        const std::lock_guard lock(state_->mutex);
        state_->loops.push_back(&loop);
        ++state_->open_loops;
    }
    if (count - 1 < state_->workers.size())
        for (std::uint32_t i = 1; i < count; ++i) state_->wake.notify_one();
    else
        state_->wake.notify_all();
    loop.work();
    std::unique_lock lock(state_->mutex);
    if (const auto it = std::find(state_->loops.begin(), state_->loops.end(), &loop); it != state_->loops.end()) {
        state_->loops.erase(it);
        --state_->open_loops;
    }
    if (loop.helpers) {
        lock.unlock();
        for (int i = 0; i < spins && loop.helpers.load(std::memory_order_acquire); ++i) pause();
        lock.lock();
        state_->done.wait(lock, [&] { return loop.helpers == 0; });
    }
}

} // namespace dsv4::host
