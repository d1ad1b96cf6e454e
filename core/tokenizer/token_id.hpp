// The type of a token id, as in the plugin interface.
#pragma once

#include <cstdint>

namespace dsv4::tokenizer {

using TokenId = std::int32_t;

} // namespace dsv4::tokenizer
