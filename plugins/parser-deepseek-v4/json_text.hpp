// JSON values that keep key order and number spelling, and their one-line text as the model was trained to read it.
//
// The text form is that of Python's json.dumps(json.loads(text), ensure_ascii=False): separators ", " and ": ", keys in
// order of first appearance, integers digit by digit, floats by their shortest round-trip digits, and only quotes,
// backslashes and control characters escaped.
#pragma once

#include "dsv4/sdk/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsv4::deepseek_v4 {

class JsonValue {
  public:
    enum class Kind : std::uint8_t { null, boolean, number, string, array, object };
    using Member = std::pair<std::string, JsonValue>;

    JsonValue() = default; // null
    static JsonValue boolean(bool value);
    static JsonValue number(std::string canonical_text);
    static JsonValue string(std::string text);
    static JsonValue array(std::vector<JsonValue> items);
    static JsonValue object(std::vector<Member> members);

    Kind kind() const noexcept { return kind_; }
    bool is_null() const noexcept { return kind_ == Kind::null; }
    bool is_string() const noexcept { return kind_ == Kind::string; }
    bool is_array() const noexcept { return kind_ == Kind::array; }
    bool is_object() const noexcept { return kind_ == Kind::object; }
    bool is_boolean() const noexcept { return kind_ == Kind::boolean; }
    bool truth() const noexcept { return truth_; }                           // booleans
    const std::string& text() const noexcept { return text_; }               // strings (decoded), numbers (canonical)
    const std::vector<JsonValue>& items() const noexcept { return items_; }  // arrays
    const std::vector<Member>& members() const noexcept { return members_; } // objects

    // The member of that name, or nullptr; nullptr for anything but an object.
    const JsonValue* find(std::string_view key) const noexcept;
    // As find, with null counting as absent.
    const JsonValue* find_set(std::string_view key) const noexcept;

  private:
    friend class JsonBuilder;
    Kind kind_ = Kind::null;
    bool truth_ = false;
    std::string text_;
    std::vector<JsonValue> items_;
    std::vector<Member> members_;
};

inline constexpr std::size_t json_max_depth = 256;

// Strict RFC 8259 text to a value. Code::invalid for anything else, for nesting deeper than json_max_depth, for lone
// surrogates and bytes that are not UTF-8, and for numbers whose double is infinite (an integer of more than 308 digits
// is one). Of a key that appears twice the first place and the last value are kept. `what` names the text in messages.
Result<JsonValue> parse_json(std::string_view text, std::string_view what);

// True where parse_json would succeed. Builds nothing.
bool is_strict_json(std::string_view text) noexcept;

// The value as one line of text.
std::string to_text(const JsonValue& value);
void append_text(std::string& out, const JsonValue& value);

// One string as a JSON literal, quotes included, or one piece of its inside. `text` is UTF-8.
void append_quoted(std::string& out, std::string_view text);
void append_escaped(std::string& out, std::string_view text);

// A finite double as Python's repr spells it.
std::string float_text(double value);

} // namespace dsv4::deepseek_v4
