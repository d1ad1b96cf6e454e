// Translates a pattern of tokenizer.json, written for Oniguruma, into one that means the same to PCRE2.
//
// The two dialects agree on literals, groups, alternatives, look-around, greedy and lazy quantifiers and \p{...}. They
// disagree on the rest: `\s` (PCRE2 counts U+180E as white space), `\h`, `\w`, nested and intersected sets, `^`, `$`,
// `{,n}`, `{n,m}+`. What can be rewritten is; anything else is refused, because a silently different split gives
// different tokens. General categories (`\p{L}`, `\p{Lu}`) are those of Unicode 16, whatever version PCRE2 has; scripts
// are PCRE2's.
#pragma once

#include <string>
#include <string_view>

namespace dsv4::tokenizer {

// `pattern` is valid UTF-8. Throws Failure(unsupported) that names the construct and its byte offset.
std::string to_pcre2(std::string_view pattern);

} // namespace dsv4::tokenizer
