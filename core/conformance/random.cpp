// Seeded random bytes in every stored format.
#include "core/conformance/random.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace dsv4::conformance {
namespace {

std::uint16_t to_bf16(float v) {
    const auto u = std::bit_cast<std::uint32_t>(v);
    return std::uint16_t((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
}

// An E8M0 byte near `value`, one step up or down.
unsigned char e8m0_near(Random& random, double value) {
    return static_cast<unsigned char>(127 + int(std::lround(std::log2(value))) + int(random.below(3)) - 1);
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
    for (auto end : ends)
        if (name.ends_with(end)) return true;
    return false;
}

} // namespace

std::uint64_t Random::bits() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

float Random::uniform() { return float(bits() >> 40) * 0x1p-24f; }

float Random::normal() {
    const std::uint64_t b = bits();
    std::uint32_t sum = 0;
    for (int i = 0; i < 64; i += 16) sum += std::uint32_t(b >> i) & 0xFFFFu;
    constexpr float scale = 1.7320508f / 65536; // of one uniform: variance 1/12; four of them: 1/3
    return (float(sum) - 2 * 65535.0f) * scale;
}

std::uint64_t seed_of(std::string_view text, std::uint64_t salt) {
    std::uint64_t h = 0xCBF29CE484222325ull ^ salt;
    for (unsigned char c : text) h = (h ^ c) * 0x100000001B3ull;
    return h;
}

Bytes random_values(Random& random, dsv4_element element, std::size_t count, float scale, float shift) {
    const std::size_t width = element == DSV4_BF16 ? 2 : 4;
    Bytes bytes(count * width);
    for (std::size_t i = 0; i < count; ++i) {
        const float v = random.normal() * scale + shift;
        if (element == DSV4_BF16) {
            const std::uint16_t b = to_bf16(v);
            std::memcpy(bytes.data() + 2 * i, &b, 2);
        } else
            std::memcpy(bytes.data() + 4 * i, &v, 4);
    }
    return bytes;
}

WeightBytes random_weight(const lower::TableEntry& entry, std::uint32_t part, std::uint64_t seed,
                          std::int64_t experts) {
    Random random(seed_of(entry.name, seed * 1000003 + part));
    const std::size_t first = entry.dims.size() == 3 ? 1 : 0;
    const bool matrix = entry.dims.size() - first == 2;
    const std::int64_t rows = matrix ? entry.dims[first] : 1;
    const std::int64_t columns = entry.dims.back();
    const std::size_t count = std::size_t(rows) * std::size_t(columns);
    const double gain = 1.2 / std::sqrt(double(columns));
    WeightBytes w;
    switch (entry.format.element) {
    case DSV4_F8_E4M3:
        w.data.resize(count);
        // Magnitudes 2^-2 .. 2^2: exponent field 5 .. 8.
        for (auto& b : w.data)
            b = static_cast<unsigned char>((random.below(2) << 7) | ((5 + random.below(4)) << 3) | random.below(8));
        w.scale.resize(program::part_bytes(entry.format, rows, columns).scale);
        for (auto& b : w.scale) b = e8m0_near(random, gain);
        break;
    case DSV4_F4_E2M1:
        w.data.resize(program::part_bytes(entry.format, rows, columns).data);
        for (auto& b : w.data) b = static_cast<unsigned char>(random.bits() >> 56);
        w.scale.resize(program::part_bytes(entry.format, rows, columns).scale);
        for (auto& b : w.scale) b = e8m0_near(random, gain / 2);
        break;
    case DSV4_I64:
        // Rows of distinct expert ids, as the released tables are read.
        w.data.resize(count * 8);
        for (std::int64_t r = 0; r < rows; ++r) {
            const auto start = std::int64_t(random.below(std::uint32_t(experts)));
            for (std::int64_t c = 0; c < columns; ++c) {
                const std::int64_t id = (start + c) % experts;
                std::memcpy(w.data.data() + std::size_t(r * columns + c) * 8, &id, 8);
            }
        }
        break;
    default: {
        const auto element = dsv4_element(entry.format.element);
        float scale = float(gain), shift = 0;
        if (ends_with_any(entry.name, {"norm"}))
            scale = 0.2f, shift = 1;
        else if (ends_with_any(entry.name, {"_scale"}))
            scale = 0.15f, shift = 0.75f;
        else if (ends_with_any(entry.name, {"_base", ".ape"}))
            scale = 0.5f;
        else if (ends_with_any(entry.name, {"attn_sink", "embed"}))
            scale = 1;
        else if (ends_with_any(entry.name, {"gate.bias"}))
            scale = 0.1f;
        w.data = random_values(random, element, count, scale, shift);
    }
    }
    return w;
}

} // namespace dsv4::conformance
