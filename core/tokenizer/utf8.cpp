// UTF-8 decoding by the table of well-formed byte sequences (Unicode standard, table 3-7).
#include "core/tokenizer/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace dsv4::tokenizer {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD"; // U+FFFD

enum class Form { complete, incomplete, invalid };

struct Sequence {
    Form form;
    std::size_t size_bytes; // complete: the character; incomplete: all that is there; invalid: its maximal part, >= 1
};

// Looks at the character that starts at text[0]; `text` is not empty.
Sequence first_sequence(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t lead = byte(0);
    if (lead < 0x80) return {Form::complete, 1};
    if (lead < 0xC2 || lead > 0xF4) return {Form::invalid, 1};
    const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    // The second byte's range excludes overlong forms, surrogates and values above U+10FFFF.
    std::uint8_t low = 0x80, high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    for (std::size_t i = 1; i < size; ++i) {
        if (i == text.size()) return {Form::incomplete, i};
        if (byte(i) < low || byte(i) > high) return {Form::invalid, i};
        low = 0x80, high = 0xBF;
    }
    return {Form::complete, size};
}

bool next_eight_are_ascii(const char* at) noexcept {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return (word & 0x8080808080808080u) == 0;
}

} // namespace

std::size_t utf8_valid_prefix(std::string_view text) noexcept {
    std::size_t at = 0;
    while (at < text.size()) {
        if (text.size() - at >= 8 && next_eight_are_ascii(text.data() + at)) {
            at += 8;
            continue;
        }
        const Sequence next = first_sequence(text.substr(at));
        if (next.form != Form::complete) break;
        at += next.size_bytes;
    }
    return at;
}

std::string utf8_excerpt(std::string_view text, std::size_t limit_bytes) {
    const std::string_view start = text.substr(0, limit_bytes);
    return std::string(start.substr(0, utf8_valid_prefix(start)));
}

void Utf8Stream::feed(std::string_view bytes, std::string& out) {
    // First settle what is held, byte by byte: a held part never exceeds 3 bytes.
    while (held_size_ > 0 && !bytes.empty()) {
        held_[held_size_] = bytes.front();
        const std::string_view held(held_, held_size_ + 1);
        const Sequence next = first_sequence(held);
        if (next.form == Form::invalid) { // the new byte does not continue it, and is looked at again below
            out += replacement;
            held_size_ = 0;
            break;
        }
        bytes.remove_prefix(1);
        held_size_ = held.size();
        if (next.form == Form::complete) {
            out += held;
            held_size_ = 0;
        }
    }
    while (!bytes.empty()) {
        const std::size_t valid = utf8_valid_prefix(bytes);
        out += bytes.substr(0, valid);
        bytes.remove_prefix(valid);
        if (bytes.empty()) break;
        const Sequence next = first_sequence(bytes);
        if (next.form == Form::incomplete) {
            std::memcpy(held_, bytes.data(), bytes.size());
            held_size_ = bytes.size();
            break;
        }
        out += replacement;
        bytes.remove_prefix(next.size_bytes);
    }
}

std::string Utf8Stream::feed(std::string_view bytes) {
    std::string out;
    feed(bytes, out);
    return out;
}

std::string Utf8Stream::flush() {
    std::string out;
    if (held_size_ > 0) out = replacement;
    held_size_ = 0;
    return out;
}

} // namespace dsv4::tokenizer
