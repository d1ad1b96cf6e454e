// One pass over the pattern that copies what both dialects share, rewrites `\s`, `\S`, `\p` and `\uHHHH`, and refuses
// the rest.
#include "core/tokenizer/hf_pattern.hpp"

#include "core/tokenizer/unicode_additions.hpp"
#include "core/tokenizer/utf8.hpp"
#include "dsv4/sdk/result.hpp"

#include <cstddef>
#include <cstdio>
#include <utility>

namespace dsv4::tokenizer {
namespace {

// The characters of Unicode's White_Space property, as the inside of a set.
constexpr std::string_view white_space =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Translation {
  public:
    explicit Translation(std::string_view pattern) : pattern_(pattern) {}

    std::string run() {
        while (!at_end()) {
            const char c = peek();
            if (c == '\\') {
                escape(false);
            } else if (c == '[') {
                set();
            } else if (c == '(') {
                group();
            } else if (c == '{') {
                interval();
            } else if (c == '^' || c == '$') {
                refuse(1, "a line anchor");
            } else {
                copy(1);
            }
        }
        return std::move(out_);
    }

  private:
    bool at_end() const { return at_ == pattern_.size(); }
    // The character `ahead` bytes on; NUL after the end (a real NUL never means anything here).
    char peek(std::size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
    void copy(std::size_t size) {
        out_ += pattern_.substr(at_, size);
        at_ += size;
    }
    void replace(std::size_t size, std::string_view text) {
        at_ += size;
        out_ += text;
    }
    [[noreturn]] void refuse(std::size_t size, std::string_view what) const {
        throw Failure(Code::unsupported,
                      std::string("the split pattern uses ") + std::string(what) + " ('" +
                          utf8_excerpt(pattern_.substr(at_, size)) + "' at byte " + std::to_string(at_) +
                          "), which is not supported",
                      "use a tokenizer of the DeepSeek family; patterns may use literals, sets, groups, look-around, "
                      "quantifiers, \\p and \\s");
    }

    void escape(bool in_set) {
        const char c = peek(1);
        switch (c) {
        case 's': return in_set ? replace(2, white_space) : replace(2, "[" + std::string(white_space) + "]");
        case 'S':
            if (in_set) refuse(2, "a negated class inside a set");
            return replace(2, "[^" + std::string(white_space) + "]");
        case 'p':
        case 'P': return property(in_set);
        case 'u': return code_point();
        case 'r':
        case 'n':
        case 't':
        case 'f': return copy(2);
        default: break;
        }
        const bool is_plain = static_cast<unsigned char>(c) < 0x80 && c > ' ' && !is_letter(c) && !is_digit(c);
        if (!is_plain) refuse(2, "an escape");
        copy(2);
    }

    // `\p{X}` or `\P{X}`. General categories also get what newer versions of Unicode added to them.
    void property(bool in_set) {
        const std::size_t close = pattern_.find('}', at_);
        if (peek(2) != '{' || close == std::string_view::npos) refuse(3, "a property without braces");
        const std::size_t size = close + 1 - at_;
        bool is_negated = peek(1) == 'P';
        std::string_view name = pattern_.substr(at_ + 3, size - 4);
        if (name.starts_with('^')) {
            is_negated = !is_negated;
            name.remove_prefix(1);
        }
        const std::string more = additions_to(name);
        if (more.empty()) return copy(size);
        if (in_set && is_negated) refuse(size, "a negated class inside a set");
        const std::string members = "\\p{" + std::string(name) + "}" + more;
        replace(size, in_set ? members : (is_negated ? "[^" : "[") + members + "]");
    }

    // As the inside of a set. A category's name is one letter, or two for a part of it.
    static std::string additions_to(std::string_view category) {
        std::string ranges;
        if (category.empty()) return ranges;
        for (const UnicodeAddition& added : unicode_additions()) {
            if (!added.category.starts_with(category)) continue;
            char range[40];
            std::snprintf(range, sizeof range, "\\x{%x}-\\x{%x}", unsigned{added.first}, unsigned{added.last});
            ranges += range;
        }
        return ranges;
    }

    void code_point() {
        for (std::size_t i = 2; i < 6; ++i) {
            if (!is_hex(peek(i))) refuse(2, "an escape that is not \\uHHHH");
        }
        const std::string digits(pattern_.substr(at_ + 2, 4));
        replace(6, "\\x{" + digits + "}");
    }

    void set() {
        copy(1);
        if (peek() == '^') copy(1);
        if (peek() == ']') refuse(1, "an empty set");
        const std::size_t first = at_;
        bool is_after_dash = false; // an unescaped dash that may make a range
        while (!at_end() && peek() != ']') {
            const bool may_end_range = std::exchange(is_after_dash, peek() == '-' && at_ != first);
            if (peek() == '[') refuse(1, "a set inside a set");
            if (peek() == '&' && peek(1) == '&') refuse(2, "a set intersection");
            if (peek() == '\\') {
                const std::size_t begin = at_;
                const bool is_class = peek(1) == 's' || peek(1) == 'p' || peek(1) == 'P';
                escape(true);
                const bool may_start_range = peek() == '-' && peek(1) != ']';
                if (is_class && (may_end_range || may_start_range)) {
                    at_ = begin;
                    refuse(2, "a range with a class at its end");
                }
            } else {
                copy(1);
            }
        }
        if (at_end()) {
            throw Failure(Code::corrupt, "the split pattern has a set without its closing bracket",
                          "repair the pattern in tokenizer.json");
        }
        copy(1);
    }

    void group() {
        if (peek(1) == '*') refuse(2, "a verb");
        if (peek(1) != '?') return copy(1);
        for (const std::string_view opener : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"}) {
            if (pattern_.substr(at_).starts_with(opener)) return copy(opener.size());
        }
        // Further on, the dialects disagree about which alternatives it covers.
        if (at_ == 0 && pattern_.starts_with("(?i)")) return copy(4);
        refuse(3, "a group");
    }

    void interval() {
        std::size_t size = 1;
        while (is_digit(peek(size))) ++size;
        bool is_counted = size > 1;
        const bool is_exact = peek(size) == '}';
        if (peek(size) == ',') {
            ++size;
            while (is_digit(peek(size))) ++size;
        }
        is_counted = is_counted && peek(size) == '}';
        if (!is_counted) refuse(1, "a brace that is no {n}, {n,} or {n,m}");
        ++size;
        const bool is_other_quantifier = peek(size) == '+' || (is_exact && peek(size) == '?');
        if (is_other_quantifier) refuse(size + 1, "a repeated interval");
        copy(size);
    }

    std::string_view pattern_;
    std::size_t at_ = 0;
    std::string out_;
};

} // namespace

std::string to_pcre2(std::string_view pattern) { return Translation(pattern).run(); }

} // namespace dsv4::tokenizer
