// Random names for requests and tool calls, too many to guess.
#pragma once

#include <cstddef>
#include <string>

namespace dsv4::openai {

// `digits` lower-case hexadecimal digits from the system's random source.
std::string random_hex(std::size_t digits);

} // namespace dsv4::openai
