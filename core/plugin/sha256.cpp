// SHA-256 through libsodium.
#include "core/plugin/sha256.hpp"

#include <sodium.h>

#include <array>

namespace dsv4::plugin {

std::string sha256_hex(std::string_view bytes) {
    std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
    crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    std::array<char, 2 * crypto_hash_sha256_BYTES + 1> hex{};
    sodium_bin2hex(hex.data(), hex.size(), hash.data(), hash.size());
    return std::string(hex.data(), hex.size() - 1);
}

} // namespace dsv4::plugin
