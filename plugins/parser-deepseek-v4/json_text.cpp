// Reading JSON through nlohmann's event interface, writing it by Python's rules.
#include "json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

namespace dsv4::deepseek_v4 {

JsonValue JsonValue::boolean(bool value) {
    JsonValue v;
    v.kind_ = Kind::boolean;
    v.truth_ = value;
    return v;
}
JsonValue JsonValue::number(std::string canonical_text) {
    JsonValue v;
    v.kind_ = Kind::number;
    v.text_ = std::move(canonical_text);
    return v;
}
JsonValue JsonValue::string(std::string text) {
    JsonValue v;
    v.kind_ = Kind::string;
    v.text_ = std::move(text);
    return v;
}
JsonValue JsonValue::array(std::vector<JsonValue> items) {
    JsonValue v;
    v.kind_ = Kind::array;
    v.items_ = std::move(items);
    return v;
}
JsonValue JsonValue::object(std::vector<Member> members) {
    JsonValue v;
    v.kind_ = Kind::object;
    v.members_ = std::move(members);
    return v;
}

const JsonValue* JsonValue::find(std::string_view key) const noexcept {
    for (const Member& member : members_)
        if (member.first == key) return &member.second;
    return nullptr;
}

const JsonValue* JsonValue::find_set(std::string_view key) const noexcept {
    const JsonValue* value = find(key);
    return value && !value->is_null() ? value : nullptr;
}

// Receives the parser's events; keeps its own stack, so depth costs heap and not the call stack.
class JsonBuilder {
  public:
    bool null() { return put({}); }
    bool boolean(bool value) { return put(JsonValue::boolean(value)); }
    bool number_integer(std::int64_t value) { return put(JsonValue::number(std::to_string(value))); }
    bool number_unsigned(std::uint64_t value) { return put(JsonValue::number(std::to_string(value))); }
    bool number_float(double value, const std::string& spelling) {
        // An integer too wide for 64 bits arrives here too; its digits are exact only in the spelling.
        const bool integer = spelling.find_first_of(".eE") == std::string::npos;
        return put(JsonValue::number(integer ? spelling : float_text(value)));
    }
    bool string(std::string& text) { return put(JsonValue::string(std::move(text))); }
    bool binary(nlohmann::json::binary_t&) { return false; }
    bool start_object(std::size_t) { return open(JsonValue::Kind::object); }
    bool end_object() { return close(); }
    bool start_array(std::size_t) { return open(JsonValue::Kind::array); }
    bool end_array() { return close(); }
    bool key(std::string& text) {
        Open& top = stack_.back();
        auto [place, fresh] = top.places.try_emplace(text, top.value.members_.size());
        if (fresh) top.value.members_.emplace_back(std::move(text), JsonValue{});
        top.place = place->second;
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
        position_ = position;
        overflow_ = error.id == 406;
        return false;
    }

    JsonValue take() { return std::move(root_); }
    bool too_deep() const noexcept { return too_deep_; }
    bool overflow() const noexcept { return overflow_; }
    std::size_t position() const noexcept { return position_; }

  private:
    struct Open {
        JsonValue value;
        std::unordered_map<std::string, std::size_t> places; // objects: where each key stands
        std::size_t place = 0;                               // objects: the member being filled
    };

    bool open(JsonValue::Kind kind) {
        if (stack_.size() == json_max_depth) return too_deep_ = true, false;
        stack_.emplace_back();
        stack_.back().value.kind_ = kind;
        return true;
    }
    bool close() {
        JsonValue value = std::move(stack_.back().value);
        stack_.pop_back();
        return put(std::move(value));
    }
    bool put(JsonValue value) {
        if (stack_.empty()) {
            root_ = std::move(value);
        } else if (Open& top = stack_.back(); top.value.is_object()) {
            top.value.members_[top.place].second = std::move(value);
        } else {
            top.value.items_.push_back(std::move(value));
        }
        return true;
    }

    JsonValue root_;
    std::vector<Open> stack_;
    std::size_t position_ = 0;
    bool too_deep_ = false;
    bool overflow_ = false;
};

namespace {

// Counts depth and accepts everything else: checks a text without building it.
struct JsonChecker {
    std::size_t depth = 0;
    bool null() { return true; }
    bool boolean(bool) { return true; }
    bool number_integer(std::int64_t) { return true; }
    bool number_unsigned(std::uint64_t) { return true; }
    bool number_float(double, const std::string&) { return true; }
    bool string(std::string&) { return true; }
    bool binary(nlohmann::json::binary_t&) { return false; }
    bool start_object(std::size_t) { return depth++ < json_max_depth; }
    bool end_object() { return --depth, true; }
    bool start_array(std::size_t) { return depth++ < json_max_depth; }
    bool end_array() { return --depth, true; }
    bool key(std::string&) { return true; }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }
};

// nlohmann skips a byte order mark and takes a zero byte for the end of the text; RFC 8259 has neither.
bool is_plain(std::string_view text) {
    return text.substr(0, 3) != "\xEF\xBB\xBF" && text.find('\0') == std::string_view::npos;
}

} // namespace

Result<JsonValue> parse_json(std::string_view text, std::string_view what) {
    return guard([&]() -> JsonValue {
        JsonBuilder builder;
        if (is_plain(text) && nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
        const std::string name(what);
        if (builder.too_deep())
            throw Failure(Code::invalid,
                          name + " nests deeper than " + std::to_string(json_max_depth) + " arrays and objects",
                          "flatten the value");
        if (builder.overflow())
            throw Failure(Code::invalid, name + " holds a number too large for a double",
                          "send numbers of magnitude below 1.8e308");
        throw Failure(Code::invalid,
                      name + " is not valid JSON near byte " +
                          std::to_string(std::min(builder.position(), text.size())),
                      "send strict JSON in UTF-8: no NaN, no Infinity, no comments, no trailing commas");
    });
}

bool is_strict_json(std::string_view text) noexcept {
    try {
        JsonChecker checker;
        return is_plain(text) && nlohmann::json::sax_parse(text.begin(), text.end(), &checker);
    } catch (...) {
        return false; // out of memory: the text is then treated as a string, which is always safe
    }
}

std::string float_text(double value) {
    // Shortest digits and exponent first ("-1.5e+300"), laid out afterwards.
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    const std::string_view scientific(buffer, static_cast<std::size_t>(end - buffer));
    const std::size_t e = scientific.find('e');
    int exponent = 0;
    const std::size_t digits_at = scientific[e + 1] == '+' ? e + 2 : e + 1;
    std::from_chars(scientific.data() + digits_at, scientific.data() + scientific.size(), exponent);
    if (exponent < -4 || exponent >= 16) return std::string(scientific);

    std::string out = std::signbit(value) ? "-" : "";
    std::string digits;
    for (char c : scientific.substr(0, e))
        if (c >= '0' && c <= '9') digits += c;
    if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() < whole) digits.append(whole - digits.size(), '0');
    out += digits.substr(0, whole);
    out += '.';
    out += digits.size() > whole ? digits.substr(whole) : "0";
    return out;
}

void append_escaped(std::string& out, std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    for (char c : text) {
        switch (c) {
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        case '\b': out += "\\b"; break;
        case '\f': out += "\\f"; break;
        case '\n': out += "\\n"; break;
        case '\r': out += "\\r"; break;
        case '\t': out += "\\t"; break;
        default:
            if (static_cast<unsigned char>(c) < 0x20) {
                out += "\\u00";
                out += hex[c >> 4];
                out += hex[c & 15];
            } else {
                out += c;
            }
        }
    }
}

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    append_escaped(out, text);
    out += '"';
}

void append_text(std::string& out, const JsonValue& value) {
    switch (value.kind()) {
    case JsonValue::Kind::null: out += "null"; break;
    case JsonValue::Kind::boolean: out += value.truth() ? "true" : "false"; break;
    case JsonValue::Kind::number: out += value.text(); break;
    case JsonValue::Kind::string: append_quoted(out, value.text()); break;
    case JsonValue::Kind::array: {
        const char* separator = "";
        out += '[';
        for (const JsonValue& item : value.items()) {
            out += separator;
            append_text(out, item);
            separator = ", ";
        }
        out += ']';
        break;
    }
    case JsonValue::Kind::object: {
        const char* separator = "";
        out += '{';
        for (const JsonValue::Member& member : value.members()) {
            out += separator;
            append_quoted(out, member.first);
            out += ": ";
            append_text(out, member.second);
            separator = ", ";
        }
        out += '}';
        break;
    }
    }
}

std::string to_text(const JsonValue& value) {
    std::string out;
    append_text(out, value);
    return out;
}

} // namespace dsv4::deepseek_v4
