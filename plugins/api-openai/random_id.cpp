// Hexadecimal digits from the system's random source.
#include "random_id.hpp"

#include <random>

namespace dsv4::openai {

std::string random_hex(std::size_t digits) {
    static constexpr char hex[] = "0123456789abcdef";
    std::random_device source;
    std::string out;
    out.reserve(digits + 8);
    while (out.size() < digits) {
        auto word = source();
        for (int i = 0; i < 8; ++i, word >>= 4) out += hex[word & 15];
    }
    out.resize(digits);
    return out;
}

} // namespace dsv4::openai
