// Fuzz target: any bytes as a tokenizer.json; if they load, a small text must encode and come back byte for byte.
// clang++-19 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. -Isdk/include tests/fuzz/tokenizer_json.cpp \
//     core/tokenizer/*.cpp -lpcre2-8 -lsimdjson
#include "core/tokenizer/tokenizer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace dsv4::tokenizer;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto tokenizer = Tokenizer::parse(bytes);
    if (!tokenizer.ok()) {
        if (tokenizer.error().message.empty()) std::abort();
        return 0;
    }
    for (const std::string text : {"Hello  world's 12345\r\n", "<think>\u4E2D\u6587 \U0001F680", "aaaaaaaaaaaaaaaab"}) {
        const auto ids = tokenizer->encode(text);
        if (!ids.ok()) continue; // a pattern may give up
        std::string joined;
        for (const TokenId id : *ids) {
            if (tokenizer->is_control(id)) std::abort();
            joined += tokenizer->bytes(id);
        }
        if (joined != text) std::abort();
        if (!tokenizer->encode_with_control(text).ok()) continue;
    }
    return 0;
}
