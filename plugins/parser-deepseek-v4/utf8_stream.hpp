// Cuts a byte stream into whole UTF-8 characters, holding one that a chunk boundary splits.
#pragma once

#include <string_view>

namespace dsv4::deepseek_v4 {

class Utf8Stream {
  public:
    // Calls sink(std::string_view) for each whole character in order. A byte that can belong to no character becomes
    // U+FFFD, as in the WHATWG decoder: one replacement for each maximal ill-formed part.
    template <class Sink> void feed(std::string_view bytes, Sink&& sink) {
        for (const char c : bytes) {
            const unsigned char byte = static_cast<unsigned char>(c);
            if (size_ > 0) {
                if (byte >= low_ && byte <= high_) {
                    low_ = 0x80;
                    high_ = 0xBF;
                    held_[size_++] = c;
                    if (size_ == wanted_) sink(std::string_view(held_, size_)), size_ = 0;
                    continue;
                }
                size_ = 0;
                sink(replacement);
            }
            start(byte);
            if (wanted_ == 1)
                sink(std::string_view(&c, 1));
            else if (wanted_ == 0)
                sink(replacement);
            else
                held_[0] = c, size_ = 1;
        }
    }

    // Bytes of an unfinished character are held.
    bool holds() const noexcept { return size_ > 0; }
    // Forgets them.
    void drop() noexcept { size_ = 0; }

    static constexpr std::string_view replacement = "\xEF\xBF\xBD";

  private:
    // Sets how many bytes a character with this first byte has (0: none begins so) and the range of its second byte.
    void start(unsigned char byte) noexcept {
        low_ = 0x80;
        high_ = 0xBF;
        wanted_ = 0;
        if (byte < 0x80) {
            wanted_ = 1;
        } else if (byte >= 0xC2 && byte <= 0xDF) {
            wanted_ = 2;
        } else if (byte >= 0xE0 && byte <= 0xEF) {
            wanted_ = 3;
            if (byte == 0xE0) low_ = 0xA0;  // shorter forms exist
            if (byte == 0xED) high_ = 0x9F; // surrogates
        } else if (byte >= 0xF0 && byte <= 0xF4) {
            wanted_ = 4;
            if (byte == 0xF0) low_ = 0x90;
            if (byte == 0xF4) high_ = 0x8F; // beyond U+10FFFF
        }
    }

    char held_[4] = {};
    unsigned size_ = 0;
    unsigned wanted_ = 0;
    unsigned char low_ = 0x80;
    unsigned char high_ = 0xBF;
};

} // namespace dsv4::deepseek_v4
