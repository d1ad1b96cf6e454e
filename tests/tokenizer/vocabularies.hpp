// The two vocabularies that the tokenizer tests run on, and the JSON files with their expected values.
#pragma once

#include "core/tokenizer/tokenizer.hpp"
#include "tests/support/catch.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dsv4::tokenizer::testing {

inline const std::filesystem::path source_dir = DSV4_SOURCE_DIR;

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    INFO(path.string());
    REQUIRE(stream.is_open());
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline nlohmann::json read_json(const std::filesystem::path& path) { return nlohmann::json::parse(read_text(path)); }

inline nlohmann::json expected(const std::string& name) {
    return read_json(source_dir / "tests/tokenizer/data" / name);
}

template <class T> T take(Result<T> result) {
    INFO((result.ok() ? std::string() : result.error().message));
    REQUIRE(result.ok());
    return std::move(result).value();
}

inline Tokenizer tiny() { return take(Tokenizer::load(source_dir / "models/dsv4-tiny/tokenizer.json")); }

// The published V4 vocabulary is not part of the repository; a missing file is a failure, never a skip.
inline Tokenizer v4() {
    const char* named = std::getenv("DSV4_V4_TOKENIZER");
    const std::filesystem::path path = named ? named : source_dir / "build/test-data/v4-tokenizer.json";
    if (!std::filesystem::exists(path)) {
        FAIL("the V4 tokenizer '" << path.string() << "' is missing: run tools/fetch_v4_tokenizer.sh, or set "
                                  << "DSV4_V4_TOKENIZER to its path");
    }
    return take(Tokenizer::load(path));
}

inline std::string joined_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    std::string bytes;
    for (const TokenId id : ids) bytes += tokenizer.bytes(id);
    return bytes;
}

} // namespace dsv4::tokenizer::testing
