// A tokenizer.json as plain data, after every field of it was understood and checked on its own.
#pragma once

#include "core/tokenizer/token_id.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsv4::tokenizer {

// A token outside the byte-pair vocabulary's reach: a control token, or text the model was given one id for.
struct AddedToken {
    TokenId id;
    std::string content; // valid UTF-8, not empty
    bool is_special;     // what decoders of other engines leave out of visible text; no meaning here
};

struct Definition {
    struct Entry {
        std::string spelling; // in the byte-level alphabet
        TokenId id;
    };
    std::vector<Entry> vocabulary;                           // spellings are unique, ids are checked by the tokenizer
    std::vector<std::pair<std::string, std::string>> merges; // by rank; in the byte-level alphabet
    std::vector<AddedToken> added_tokens;
    std::vector<std::string> split_patterns; // in order; Oniguruma syntax
};

// What a file may hold; a larger one is refused before anything is allocated for it.
inline constexpr std::size_t max_json_bytes = std::size_t{64} << 20;
inline constexpr std::size_t max_entries = std::size_t{1} << 20; // of the vocabulary, the merges and the added tokens
inline constexpr std::size_t max_token_bytes = 4096;
inline constexpr std::size_t max_splits = 16;
inline constexpr std::size_t max_pattern_bytes = 4096;

// Reads the JSON text of a tokenizer.json. Throws Failure: corrupt for text that contradicts the format, unsupported
// for a field, type or value that is not understood (never skipped), exhausted for a size above the limits.
Definition parse_definition(std::string_view json);

} // namespace dsv4::tokenizer
