// The identity of a block of tokens in the prefix cache: a hash over its tokens and everything before them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace dsv4::prefix {

// BLAKE2b-256. A client that chooses its tokens must not be able to make two prompts share a block.
using BlockKey = std::array<std::uint8_t, 32>;

struct BlockKeyHash {
    std::size_t operator()(const BlockKey& key) const noexcept {
        std::size_t value = 0;
        std::memcpy(&value, key.data(), sizeof value);
        return value;
    }
};

// Where the chain of a salt begins.
BlockKey root_key(std::string_view salt);
// The key of the block `tokens` behind `parent`.
BlockKey chain_key(const BlockKey& parent, std::span<const std::int32_t> tokens);

} // namespace dsv4::prefix
