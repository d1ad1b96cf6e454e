// A short run of held-back completion text whose bytes remember where they came from, and the matching of markup on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dsv4::deepseek_v4 {

// Where bytes of a completion came from, which decides what they may be.
enum class Origin : std::uint8_t {
    ordinary, // ordinary tokens: the text around a marker (`<`, tag names), never the marker itself
    control,  // control tokens: markers, and tokens that do not belong into a text
    spelled,  // a text without its tokens: what is spelled like a marker is one
    literal,  // part of such a text that is known to be quoted: never part of markup
};

enum class Match : std::uint8_t { none, partial, full };

class MarkedText {
  public:
    void push(char byte, Origin origin) {
        bytes_ += byte;
        origins_ += static_cast<char>(origin);
    }
    void drop_front(std::size_t count) {
        bytes_.erase(0, count);
        origins_.erase(0, count);
    }
    void clear() {
        bytes_.clear();
        origins_.clear();
    }
    bool empty() const noexcept { return bytes_.empty(); }
    std::size_t size() const noexcept { return bytes_.size(); }
    char operator[](std::size_t i) const noexcept { return bytes_[i]; }
    Origin origin(std::size_t i) const noexcept { return static_cast<Origin>(origins_[i]); }
    const std::string& bytes() const noexcept { return bytes_; }

    // Compares what stands from `at` to the end with a marker that is a control token as a whole (`</think>`).
    Match match_marker(std::size_t at, std::string_view marker) const;

    // Compares it with a tag: `<` (closing: `</`), the DSML marker, an optional blank, then one of `tails`. `which`
    // receives the index of the tail in a full match. A full match takes everything to the end of the text.
    Match match_tag(std::size_t at, bool closing, std::span<const std::string_view> tails,
                    std::size_t* which = nullptr) const;

    // The length of a complete `<｜DSML｜` or `</｜DSML｜` at the front, or 0.
    std::size_t tag_start_length() const;

  private:
    static bool may_be_marker(Origin origin) noexcept { return origin == Origin::control || origin == Origin::spelled; }
    bool byte_is(std::size_t at, char expected, bool must_be_marker) const {
        return bytes_[at] == expected && (must_be_marker ? may_be_marker(origin(at)) : origin(at) != Origin::literal);
    }
    // How much of the tag's start stands at `at`: full when all of it does, with `end` behind it.
    Match match_tag_start(std::size_t at, bool closing, std::size_t& end) const;

    std::string bytes_;
    std::string origins_;
};

} // namespace dsv4::deepseek_v4
