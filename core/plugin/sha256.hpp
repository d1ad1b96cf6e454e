// SHA-256 of bytes in memory, as lower-case hex.
#pragma once

#include <string>
#include <string_view>

namespace dsv4::plugin {

std::string sha256_hex(std::string_view bytes);

} // namespace dsv4::plugin
