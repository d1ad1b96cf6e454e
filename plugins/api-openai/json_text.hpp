// JSON as text: finds the members of an object without rebuilding them, and writes strings and numbers.
//
// A prompt must show what the client wrote, so parts of a body are handed on as slices of it: key order and the
// spelling of numbers survive.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dsv4::openai {

inline constexpr std::size_t json_max_depth = 128; // arrays and objects around a value

// Escapes of half a surrogate pair (a client cut a string inside an emoji) become \ufffd, in place and of equal length.
void repair_surrogates(std::string& text) noexcept;

// Checks all of `text` as strict JSON in UTF-8 and returns the top object's members as slices of `text`; of a repeated
// key the last counts. Failure(invalid) names `what` and the byte.
std::unordered_map<std::string, std::string_view> object_members(std::string_view text, std::string_view what);

// The elements of an array that was checked before, as slices; empty for any other value.
std::vector<std::string_view> array_elements(std::string_view checked);

// A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so the output is always valid.
void append_quoted(std::string& out, std::string_view text);
// The same without quotes.
void append_escaped(std::string& out, std::string_view text);
void append_number(std::string& out, std::int64_t value);
// Shortest spelling that reads back the same; null for what JSON cannot say.
void append_number(std::string& out, double value);
void append_number(std::string& out, float value);

} // namespace dsv4::openai
