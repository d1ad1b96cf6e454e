// The byte-level alphabet: tokenizer.json spells every byte as one printable character, so that any byte string has a
// spelling (`Ġ` is a blank, `Ċ` a line feed). Printable Latin-1 stands for itself, the other 68 bytes for U+0100 on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dsv4::tokenizer {

// The bytes that `spelling` (valid UTF-8) stands for; nothing if a character is outside the alphabet.
std::optional<std::string> from_byte_level(std::string_view spelling);

// The spelling of any bytes.
std::string to_byte_level(std::string_view bytes);

} // namespace dsv4::tokenizer
