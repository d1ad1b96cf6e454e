// UTF-8 checks, and the stream that turns token bytes into text without ever cutting a character.
//
// A generated character may be spread over several tokens, and a sampled byte sequence may be no UTF-8 at all.
// Utf8Stream emits what is complete, holds back what may still become a character, and replaces only what can no
// longer become one by U+FFFD, one for each maximal invalid part (the practice of the Unicode standard, also that of
// Python's errors="replace"). The result does not depend on how the bytes were cut into pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dsv4::tokenizer {

// Length in bytes of the longest prefix of `text` that is well-formed UTF-8; equals text.size() for valid text.
std::size_t utf8_valid_prefix(std::string_view text) noexcept;

// The first characters of `text` for an error message: at most `limit_bytes`, valid UTF-8 whatever `text` holds.
std::string utf8_excerpt(std::string_view text, std::size_t limit_bytes = 80);

// Not thread-safe: one stream belongs to one generated text.
class Utf8Stream {
  public:
    // Appends to `out` everything that is complete after `bytes`; holds at most 3 bytes back.
    void feed(std::string_view bytes, std::string& out);
    // The same, as a new string.
    std::string feed(std::string_view bytes);
    // Ends the text: an incomplete tail becomes one U+FFFD. The stream is empty afterwards and may be used again.
    std::string flush();
    // Bytes held back, 0..3.
    std::size_t pending_bytes() const noexcept { return held_size_; }

  private:
    char held_[4] = {};
    std::size_t held_size_ = 0;
};

} // namespace dsv4::tokenizer
