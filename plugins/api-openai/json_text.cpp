// Slices come from nlohmann's event interface, fed through an iterator whose place is known at every event.
#include "json_text.hpp"

#include "dsv4/sdk/result.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>

namespace dsv4::openai {
namespace {

// Reads [*place, end) and leaves *place where the parser stands.
class TrackedInput {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    explicit TrackedInput(const char** place) : place_(place) {}
    explicit TrackedInput(const char* end) : end_(end) {}
    reference operator*() const { return **place_; }
    TrackedInput& operator++() {
        ++*place_;
        return *this;
    }
    friend bool operator==(const TrackedInput& a, const TrackedInput& b) { return a.at() == b.at(); }
    friend bool operator!=(const TrackedInput& a, const TrackedInput& b) { return !(a == b); }

  private:
    const char* at() const { return place_ ? *place_ : end_; }
    const char** place_ = nullptr;
    const char* end_ = nullptr;
};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Notes where the children of the top container begin and end.
class ChildFinder {
  public:
    ChildFinder(const char* begin, const char* end) : end_(end), place_(begin), mark_(begin) {}

    bool null() { return value(false); }
    bool boolean(bool) { return value(false); }
    bool number_integer(std::int64_t) { return value(true); }
    bool number_unsigned(std::uint64_t) { return value(true); }
    bool number_float(double, const std::string&) { return value(true); }
    bool string(std::string&) { return value(false); }
    bool binary(nlohmann::json::binary_t&) { return false; }
    bool start_object(std::size_t) { return open(true); }
    bool start_array(std::size_t) { return open(false); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(std::string& text) {
        if (depth_ == 1) {
            key_ = std::move(text);
            mark_ = place_;
        }
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
        position_ = position;
        overflow_ = error.id == 406;
        return false;
    }

    bool parse() { return nlohmann::json::sax_parse(TrackedInput(&place_), TrackedInput(end_), this) && !too_deep_; }
    bool is_object = false, too_deep_ = false, overflow_ = false;
    std::size_t position_ = 0;
    std::unordered_map<std::string, std::string_view> members;
    std::vector<std::string_view> elements;

  private:
    bool open(bool object) {
        if (depth_ == json_max_depth) {
            too_deep_ = true;
            return false;
        }
        if (depth_++ == 0) {
            is_object = object;
            mark_ = place_;
        }
        return true;
    }
    bool close() { return --depth_ == 1 ? note(place_) : true; }
    bool value(bool number) {
        if (depth_ != 1) return true;
        // A number ends where the parser saw something else, which it has taken already.
        const char* last = place_;
        if (number)
            while (last > mark_ && !(last[-1] >= '0' && last[-1] <= '9')) --last;
        return note(last);
    }
    // The child lies between the last mark and `last`, behind blanks and a separator.
    bool note(const char* last) {
        const char* first = mark_;
        while (first < last && (is_blank(*first) || *first == ':' || *first == ',')) ++first;
        const std::string_view text(first, static_cast<std::size_t>(last - first));
        if (is_object)
            members.insert_or_assign(std::move(key_), text);
        else
            elements.push_back(text);
        mark_ = last;
        return true;
    }

    const char* end_;
    const char* place_;
    const char* mark_;
    std::size_t depth_ = 0;
    std::string key_;
};

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// The code unit of the escape at `at` ("\uXXXX"), or -1.
int code_unit(const std::string& text, std::size_t at) {
    if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
    int unit = 0;
    for (std::size_t i = 2; i < 6; ++i) {
        const int digit = hex_value(text[at + i]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

// Length of the well-formed UTF-8 character at the front of `text`, or 0.
std::size_t character_size(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto tail = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        const unsigned low = first == 0xe0 ? 0xa0 : 0x80, high = first == 0xed ? 0x9f : 0xbf;
        return byte(1) >= low && byte(1) <= high && tail(2) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        const unsigned low = first == 0xf0 ? 0x90 : 0x80, high = first == 0xf4 ? 0x8f : 0xbf;
        return byte(1) >= low && byte(1) <= high && tail(2) && tail(3) ? 4 : 0;
    }
    return 0;
}

} // namespace

void repair_surrogates(std::string& text) noexcept {
    // Backslashes stand in strings only, and each takes the character behind it along.
    for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at)) {
        const int unit = code_unit(text, at);
        if (unit < 0xd800 || unit > 0xdfff) {
            at += 2;
            continue;
        }
        const int next = unit <= 0xdbff ? code_unit(text, at + 6) : -1;
        if (next >= 0xdc00 && next <= 0xdfff) {
            at += 12;
        } else {
            text.replace(at, 6, "\\ufffd");
            at += 6;
        }
    }
}

std::unordered_map<std::string, std::string_view> object_members(std::string_view text, std::string_view what) {
    ChildFinder finder(text.data(), text.data() + text.size());
    const std::string name(what);
    // The parser takes a zero byte for the end of its input.
    const std::size_t zero = text.find('\0');
    if (zero != std::string_view::npos)
        throw Failure(Code::invalid, name + " holds a zero byte at byte " + std::to_string(zero), "send JSON text");
    if (!finder.parse()) {
        if (finder.too_deep_)
            throw Failure(Code::invalid,
                          name + " nests deeper than " + std::to_string(json_max_depth) + " arrays and objects",
                          "flatten the value");
        if (finder.overflow_)
            throw Failure(Code::invalid, name + " holds a number too large for a double",
                          "send numbers of magnitude below 1.8e308");
        throw Failure(Code::invalid,
                      name + " is not valid JSON near byte " + std::to_string(std::min(finder.position_, text.size())),
                      "send strict JSON in UTF-8: no NaN, no Infinity, no comments, no trailing commas");
    }
    if (!finder.is_object) throw Failure(Code::invalid, name + " is not a JSON object", "send an object");
    return std::move(finder.members);
}

std::vector<std::string_view> array_elements(std::string_view checked) {
    if (checked.empty() || checked.front() != '[') return {};
    ChildFinder finder(checked.data(), checked.data() + checked.size());
    if (!finder.parse()) return {};
    return std::move(finder.elements);
}

void append_escaped(std::string& out, std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    // 0: copied as it is. 1: needs a look.
    static constexpr auto special = [] {
        std::array<bool, 256> table{};
        for (std::size_t i = 0; i < 256; ++i) table[i] = i < 0x20 || i == '"' || i == '\\' || i >= 0x7f;
        return table;
    }();
    std::size_t plain = 0;
    for (std::size_t i = 0; i < text.size();) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (!special[c]) {
            ++i;
            continue;
        }
        if (c >= 0x80) {
            if (const std::size_t size = character_size(text.substr(i))) {
                i += size;
                continue;
            }
        }
        out.append(text, plain, i - plain);
        switch (c) {
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        case '\b': out += "\\b"; break;
        case '\f': out += "\\f"; break;
        case '\n': out += "\\n"; break;
        case '\r': out += "\\r"; break;
        case '\t': out += "\\t"; break;
        default:
            if (c >= 0x80) {
                out += "\xef\xbf\xbd";
            } else {
                out += "\\u00";
                out += hex[c >> 4];
                out += hex[c & 15];
            }
        }
        plain = ++i;
    }
    out.append(text, plain, text.size() - plain);
}

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    append_escaped(out, text);
    out += '"';
}

void append_number(std::string& out, std::int64_t value) {
    char buffer[24];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

namespace {
template <class T> void append_floating(std::string& out, T value) {
    if (!std::isfinite(value)) {
        out += "null";
        return;
    }
    char buffer[40];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}
} // namespace

void append_number(std::string& out, double value) { append_floating(out, value); }
void append_number(std::string& out, float value) { append_floating(out, value); }

} // namespace dsv4::openai
