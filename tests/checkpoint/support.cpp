// Helpers of the checkpoint tests.
#include "tests/checkpoint/support.hpp"

#include <nlohmann/json.hpp>
#include <sodium/crypto_hash_sha256.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace dsv4::test {

TempDir::TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dsv4-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("cannot create " + pattern);
    path_ = pattern;
}

TempDir::~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path source_dir() { return DSV4_SOURCE_DIR; }

std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path.string());
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::filesystem::path& path, std::string_view content) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

void replace_in_file(const std::filesystem::path& path, const std::string& from, const std::string& to) {
    std::string text = read_file(path);
    const std::size_t at = text.find(from);
    if (at == std::string::npos) throw std::runtime_error(path.string() + " does not hold " + from);
    text.replace(at, from.size(), to);
    write_file(path, text);
}

std::string container(std::string_view header, std::string_view payload) {
    std::string file;
    for (int i = 0; i < 8; ++i) file += static_cast<char>((header.size() >> (8 * i)) & 255);
    file += header;
    file += payload;
    return file;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    std::string hex;
    for (const unsigned char b : digest) {
        hex += "0123456789abcdef"[b >> 4];
        hex += "0123456789abcdef"[b & 15];
    }
    return hex;
}

std::string flash_0731_config() { return read_file(source_dir() / "tests/checkpoint/data/flash-0731.config.json"); }

std::string preview_config() {
    auto config = nlohmann::json::parse(flash_0731_config());
    for (const char* field :
         {"dspark_block_size", "dspark_markov_rank", "dspark_noise_token_id", "dspark_target_layer_ids"})
        config.erase(field);
    auto& ratios = config["compress_ratios"];
    ratios.erase(ratios.begin() + 44, ratios.end());
    return config.dump();
}

model::Geometry geometry_of(const std::string& config) { return model::parse_geometry(config).value(); }

} // namespace dsv4::test
