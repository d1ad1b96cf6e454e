// Finds the control tokens in a raw text by their spelling, for routes that are asked to.
#pragma once

#include "dsv4/host.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsv4::openai {

// Immutable once made.
class ControlSplitter {
  public:
    // Asks the tokenizer for every control token of the vocabulary.
    explicit ControlSplitter(const dsv4_host* host);

    struct Piece {
        std::string_view text;
        std::int32_t control_id; // -1: plain text
    };
    // The longest control token at each place counts.
    std::vector<Piece> split(std::string_view text) const;

  private:
    const std::pair<std::string, std::int32_t>* match(std::string_view text) const;
    std::vector<std::pair<std::string, std::int32_t>> tokens_; // sorted by spelling
};

} // namespace dsv4::openai
