// A complete tokenizer.json small enough to change at will: the 256 bytes, then whatever a test adds.
#pragma once

#include "core/tokenizer/byte_level.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace dsv4::tokenizer::testing {

inline nlohmann::json split_step(const std::string& regex) {
    return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}

inline nlohmann::json byte_level_step(bool use_regex) {
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

inline nlohmann::json added_token(int id, const std::string& content) {
    return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
            {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// Ids 0..255 are the bytes, 256 is `ab`, 257 the control token `<end>`.
inline nlohmann::json small_definition() {
    nlohmann::json vocabulary = nlohmann::json::object();
    for (int byte = 0; byte < 256; ++byte) vocabulary[to_byte_level(std::string(1, static_cast<char>(byte)))] = byte;
    vocabulary["ab"] = 256;
    return {{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", {added_token(257, "<end>")}},
            {"normalizer", nullptr},
            {"pre_tokenizer",
             {{"type", "Sequence"}, {"pretokenizers", {split_step("\\p{N}{1,3}"), byte_level_step(false)}}}},
            {"post_processor", nullptr},
            {"decoder", byte_level_step(true)},
            {"model",
             {{"type", "BPE"},
              {"dropout", nullptr},
              {"unk_token", nullptr},
              {"continuing_subword_prefix", nullptr},
              {"end_of_word_suffix", nullptr},
              {"fuse_unk", false},
              {"byte_fallback", false},
              {"ignore_merges", false},
              {"vocab", vocabulary},
              {"merges", {"a b"}}}}};
}

} // namespace dsv4::tokenizer::testing
