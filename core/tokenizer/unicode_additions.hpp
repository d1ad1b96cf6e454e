// Letters, marks, numbers, punctuation and symbols that Unicode 15.0 to 16.0 added.
//
// The regex library's own tables may be older (PCRE2 10.42 has Unicode 14) than those of the library that published
// tokenizers are used with. Without these additions, new emoji and scripts would be split differently there and here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace dsv4::tokenizer {

struct UnicodeAddition {
    std::uint32_t first, last; // code points, inclusive
    std::string_view category; // general category of all of them: "Lo", "So", ...
};

// In order of code points.
std::span<const UnicodeAddition> unicode_additions();

} // namespace dsv4::tokenizer
