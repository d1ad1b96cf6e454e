// The pool: each index once, nested loops on one thread, loops from many threads at the same time.
#include "core/host/thread_pool.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using dsv4::host::ThreadPool;

namespace {
template <class F> void run(ThreadPool& pool, std::uint32_t count, F f) {
    pool.run(
        count, [](void* arg, std::uint32_t i) { (*static_cast<F*>(arg))(i); }, &f);
}
} // namespace

TEST_CASE("every index runs exactly once, whatever the number of threads") {
    for (const std::uint32_t threads : {1u, 2u, 3u, 8u}) {
        ThreadPool pool(threads);
        CHECK(pool.threads() == threads);
        for (const std::uint32_t count : {0u, 1u, 2u, 7u, 1000u}) {
            std::vector<std::atomic<int>> calls(count);
            run(pool, count, [&](std::uint32_t i) { ++calls[i]; });
            int wrong = 0;
            for (const auto& c : calls) wrong += c != 1;
            CHECK(wrong == 0);
        }
    }
    CHECK(ThreadPool().threads() >= 1);
}

TEST_CASE("work is shared between threads") {
    ThreadPool pool(2);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<int> waiting{0};
    run(pool, 2, [&](std::uint32_t) {
        {
            const std::lock_guard lock(mutex);
            seen.insert(std::this_thread::get_id());
        }
        ++waiting;
        while (waiting < 2) std::this_thread::yield(); // ends only when both indices run at the same time
    });
    CHECK(seen.size() == 2);
}

TEST_CASE("a nested loop runs in order on the thread that began it") {
    ThreadPool pool(4);
    std::atomic<int> wrong{0};
    run(pool, 64, [&](std::uint32_t) {
        const auto self = std::this_thread::get_id();
        std::uint32_t expected = 0;
        run(pool, 10, [&](std::uint32_t i) {
            if (std::this_thread::get_id() != self || i != expected++) ++wrong;
        });
        if (expected != 10) ++wrong;
    });
    CHECK(wrong == 0);
}

TEST_CASE("loops of several threads do not disturb each other") {
    ThreadPool pool(3);
    std::vector<std::thread> callers;
    std::vector<std::uint64_t> sums(4);
    for (std::size_t t = 0; t < sums.size(); ++t)
        callers.emplace_back([&, t] {
            for (int round = 0; round < 200; ++round) {
                std::atomic<std::uint64_t> sum{0};
                run(pool, 100, [&](std::uint32_t i) { sum += i; });
                sums[t] += sum;
            }
        });
    for (auto& c : callers) c.join();
    for (const auto sum : sums) CHECK(sum == 200u * 4950u);
}
