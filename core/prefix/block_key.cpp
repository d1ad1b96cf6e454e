// Chained BLAKE2b of salt and tokens.
#include "core/prefix/block_key.hpp"

#include <sodium.h>

namespace dsv4::prefix {

BlockKey root_key(std::string_view salt) {
    BlockKey key{};
    crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(salt.data()), salt.size(),
                       nullptr, 0);
    return key;
}

BlockKey chain_key(const BlockKey& parent, std::span<const std::int32_t> tokens) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, nullptr, 0, BlockKey{}.size());
    crypto_generichash_update(&state, parent.data(), parent.size());
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(tokens.data()), tokens.size_bytes());
    BlockKey key{};
    crypto_generichash_final(&state, key.data(), key.size());
    return key;
}

} // namespace dsv4::prefix
