// The byte-level alphabet as two tables, computed once at compile time.
#include "core/tokenizer/byte_level.hpp"

#include <array>
#include <cstdint>

namespace dsv4::tokenizer {
namespace {

constexpr std::uint32_t alphabet_end = 0x100 + 68; // one past the last code point in use

constexpr bool stands_for_itself(std::uint32_t byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct Alphabet {
    std::array<std::uint16_t, 256> code_point{};         // of each byte
    std::array<std::int16_t, alphabet_end> byte_value{}; // of each code point; -1: none
};

constexpr Alphabet make_alphabet() {
    Alphabet a;
    a.byte_value.fill(-1);
    std::uint16_t next = 0x100;
    for (std::uint16_t byte = 0; byte < 256; ++byte) {
        a.code_point[byte] = stands_for_itself(byte) ? byte : next++;
        a.byte_value[a.code_point[byte]] = static_cast<std::int16_t>(byte);
    }
    return a;
}

constexpr Alphabet alphabet = make_alphabet();
static_assert(alphabet.code_point[' '] == 0x120 && alphabet.code_point['\n'] == 0x10A);
static_assert(alphabet.byte_value[alphabet_end - 1] == 0xAD);

} // namespace

std::optional<std::string> from_byte_level(std::string_view spelling) {
    std::string bytes;
    bytes.reserve(spelling.size());
    for (std::size_t i = 0; i < spelling.size();) {
        const auto lead = static_cast<std::uint8_t>(spelling[i]);
        std::uint32_t code_point = lead;
        if (lead >= 0x80) {
            // The alphabet ends below U+0144, so that two bytes are enough.
            if (lead < 0xC2 || lead > 0xDF || i + 1 == spelling.size()) return std::nullopt;
            code_point = (lead & 0x1Fu) << 6 | (static_cast<std::uint8_t>(spelling[i + 1]) & 0x3Fu);
        }
        if (code_point >= alphabet_end || alphabet.byte_value[code_point] < 0) return std::nullopt;
        bytes += static_cast<char>(alphabet.byte_value[code_point]);
        i += lead < 0x80 ? 1 : 2;
    }
    return bytes;
}

std::string to_byte_level(std::string_view bytes) {
    std::string spelling;
    spelling.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        const std::uint16_t code_point = alphabet.code_point[static_cast<std::uint8_t>(c)];
        if (code_point < 0x80) {
            spelling += static_cast<char>(code_point);
        } else {
            spelling += static_cast<char>(0xC0 | code_point >> 6);
            spelling += static_cast<char>(0x80 | (code_point & 0x3F));
        }
    }
    return spelling;
}

} // namespace dsv4::tokenizer
