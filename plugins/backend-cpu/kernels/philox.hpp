// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as easy as 1,
// 2, 3").
#pragma once

#include <array>
#include <cstdint>

namespace dsv4::cpu {

// What a random number is for; part of the counter, so that uses never share numbers.
enum class Stream : std::uint32_t { resample = 0, accept = 1, draft = 2 };

inline std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        if (round > 0) {
            key[0] += 0x9E3779B9u;
            key[1] += 0xBB67AE85u;
        }
        const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0], b = std::uint64_t{0xCD9E8D57u} * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    }
    return counter;
}

// Uniform in (0, 1), never 0 or 1: a pure function of its arguments. `position` is that of the emitted token. 24
// bits at most, so that a backend may hold it in float32.
inline double uniform(std::uint64_t seed, std::int64_t position, Stream stream, std::uint32_t v) {
    const auto p = static_cast<std::uint64_t>(position);
    const auto words = philox4x32_10(
        {static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(p >> 32), static_cast<std::uint32_t>(stream), v / 4},
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    return (static_cast<double>(words[v % 4] >> 9) + 0.5) * 0x1p-23;
}

} // namespace dsv4::cpu
