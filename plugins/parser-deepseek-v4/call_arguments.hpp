// Builds one tool call's arguments text, member by member, from the parameters of an invoke tag.
#pragma once

#include "json_text.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace dsv4::deepseek_v4 {

// The parameter schemas of a request's tools, as far as arguments depend on them.
class ToolSchemas {
  public:
    ToolSchemas() = default;
    // `functions` are the tools' `function` objects. Of two with the same name the first counts.
    explicit ToolSchemas(const std::vector<JsonValue>& functions);

    struct Function {
        std::unordered_map<std::string, bool> properties; // name -> its `type` is "string"
    };
    // nullptr when the function is unknown or its schema has no properties.
    const Function* find(std::string_view name) const;

  private:
    std::unordered_map<std::string, Function> functions_;
};

// What the `string` attribute of a parameter said.
enum class StringFlag : std::uint8_t { yes, no, unsaid };

// Each function appends to `out` the piece of arguments text that is certain by then; the pieces concatenate to a JSON
// object once close() was called. Values are UTF-8.
class CallArguments {
  public:
    CallArguments(const ToolSchemas::Function* function, bool* malformed)
        : function_(function), malformed_(malformed) {}

    // A parameter's head is complete. True: its text is to be passed to add_text as it comes. False: to be collected
    // and passed to finish_parameter whole (which ignores it for a key that was there before).
    bool begin_parameter(std::string key, StringFlag flag, std::string& out);
    void add_text(std::string_view text, std::string& out) const { append_escaped(out, text); }
    // The parameter's closer is complete. `value` is empty where begin_parameter returned true.
    void finish_parameter(std::string value, std::string& out);
    // The call is complete: ends the object.
    void close(std::string& out);

    bool has_parameters() const noexcept { return !keys_.empty(); }
    bool is_duplicate() const noexcept { return duplicate_; }     // the current parameter is ignored
    std::size_t key_bytes() const noexcept { return key_bytes_; } // what remembering the keys costs, roughly

  private:
    struct Parameter {
        std::string key;
        StringFlag flag = StringFlag::unsaid;
        std::string value;
    };
    void append_key(std::string_view key, std::string& out);
    void append_member(const Parameter& parameter, std::string& out);
    void flush_wrapper(std::string& out);
    bool unwraps(const Parameter& parameter) const;

    const ToolSchemas::Function* function_;
    bool* malformed_;
    std::unordered_set<std::string> keys_;
    std::size_t key_bytes_ = 0;
    Parameter current_;
    bool streaming_ = false;
    bool duplicate_ = false;
    bool maybe_wrapper_ = false;       // the current parameter may hold the whole argument object
    std::optional<Parameter> wrapper_; // such a parameter, complete, until more is known
    bool started_ = false;             // "{" was written
};

// Without blanks, tabs and line ends at both ends.
std::string_view trim(std::string_view text) noexcept;

} // namespace dsv4::deepseek_v4
