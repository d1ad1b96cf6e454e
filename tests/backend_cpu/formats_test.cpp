// Number formats against tables and digests computed independently (tests/vectors/formats).
#include <sodium.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "plugins/backend-cpu/formats/bf16.hpp"
#include "plugins/backend-cpu/formats/e2m1.hpp"
#include "plugins/backend-cpu/formats/e4m3.hpp"
#include "plugins/backend-cpu/formats/e8m0.hpp"
#include "plugins/backend-cpu/formats/quantise.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4::cpu;
using nlohmann::json;

namespace {

json vectors(const std::string& name) {
    std::ifstream in(std::string(DSV4_SOURCE_DIR "/tests/vectors/formats/") + name + ".json");
    REQUIRE(in);
    return json::parse(in);
}

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

std::string sha256_hex(const void* data, std::size_t size) {
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, static_cast<const unsigned char*>(data), size);
    std::string hex(2 * sizeof digest + 1, '\0');
    sodium_bin2hex(hex.data(), hex.size(), digest, sizeof digest);
    hex.pop_back();
    return hex;
}

// Checks a decode table: float32 bits, null = NaN.
template <class Decode> void check_decode(const json& table, Decode&& decode) {
    for (std::size_t code = 0; code < table.size(); ++code) {
        INFO("code " << code);
        const float value = decode(static_cast<std::uint8_t>(code));
        if (table[code].is_null())
            CHECK(std::isnan(value));
        else
            CHECK(std::bit_cast<std::uint32_t>(value) == table[code].get<std::uint32_t>());
    }
}

template <class Encode> void check_encode(const json& file, Encode&& encode) {
    for (const auto& pair : file["encode"]) {
        INFO("float bits " << pair[0]);
        CHECK(encode(from_bits(pair[0].get<std::uint32_t>())) == pair[1].get<int>());
    }
    std::vector<std::uint8_t> codes;
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const float value = bf16_decode(static_cast<std::uint16_t>(bits));
        if (!std::isnan(value)) codes.push_back(encode(value));
    }
    CHECK(codes.size() == file["bf16_count"].get<std::size_t>());
    CHECK(sha256_hex(codes.data(), codes.size()) == file["bf16_sha256"].get<std::string>());
}

} // namespace

TEST_CASE("bf16 rounds to nearest even", "[formats]") {
    const json file = vectors("bf16");
    for (const auto& pair : file["round"]) {
        INFO("float bits " << pair[0]);
        CHECK(bf16_encode(from_bits(pair[0].get<std::uint32_t>())) == pair[1].get<int>());
    }
    std::vector<std::uint16_t> results;
    for (const std::uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
        for (std::uint32_t high = 0; high < 65536; ++high) {
            const float value = from_bits(high << 16 | low);
            if (!std::isnan(value)) results.push_back(bf16_encode(value));
        }
    CHECK(results.size() == file["count"].get<std::size_t>());
    CHECK(sha256_hex(results.data(), results.size() * 2) == file["sha256"].get<std::string>());
}

TEST_CASE("bf16 keeps NaN a NaN of its sign", "[formats]") {
    CHECK(std::isnan(bf16_round(from_bits(0x7F800001u)))); // its upper half alone would be infinity
    CHECK(std::isnan(bf16_round(from_bits(0xFFFFFFFFu))));
    CHECK(bf16_encode(from_bits(0xFF800001u)) >> 15 == 1);
}

TEST_CASE("E4M3 decodes and encodes every case", "[formats]") {
    const json file = vectors("e4m3");
    check_decode(file["decode"], e4m3_decode);
    check_encode(file, e4m3_encode);
    CHECK(e4m3_encode(NAN) == 0x7F);
    CHECK(e4m3_encode(-INFINITY) == 0xFE);
}

TEST_CASE("E2M1 decodes and encodes every case", "[formats]") {
    const json file = vectors("e2m1");
    check_decode(file["decode"], e2m1_decode);
    check_encode(file, e2m1_encode);
    CHECK(e2m1_encode(-INFINITY) == 15);
}

TEST_CASE("E8M0 scales and exp_ceil", "[formats]") {
    const json file = vectors("e8m0");
    check_decode(file["decode"], e8m0_decode);
    for (const auto& pair : file["exp_ceil"]) {
        INFO("float bits " << pair[0]);
        CHECK(exp_ceil(from_bits(pair[0].get<std::uint32_t>())) == pair[1].get<int>());
    }
    for (const auto& row : file["dequant"]) {
        INFO(row.dump());
        const auto code = row[1].get<std::uint8_t>();
        const float element = row[0] == "e4m3" ? e4m3_decode(code) : e2m1_decode(code);
        const float product = element * e8m0_decode(row[2].get<std::uint8_t>());
        CHECK(std::bit_cast<std::uint32_t>(product) == row[3].get<std::uint32_t>());
        CHECK(bf16_encode(product) == row[4].get<int>());
    }
}

TEST_CASE("block quantisers with short groups, floors, ties and outliers", "[formats]") {
    const json file = vectors("blocks");
    for (const auto& c : file["cases"]) {
        INFO(c["name"].get<std::string>());
        const bool fp8 = c["format"] == "e4m3";
        const auto group = c["group"].get<std::size_t>();
        std::vector<float> x;
        for (const auto& bits : c["x"]) x.push_back(bf16_decode(bits.get<std::uint16_t>()));
        std::vector<std::uint8_t> codes(x.size());
        std::vector<int> k(c["k"].size());
        if (fp8)
            quant_fp8(x, group, codes, k);
        else
            quant_fp4(x, codes, k);
        CHECK(k == c["k"].get<std::vector<int>>());
        std::vector<float> y = x;
        if (fp8)
            round_to_fp8(y, group);
        else
            round_to_fp4(y);
        const std::uint8_t sign = fp8 ? 0x80 : 8;
        for (std::size_t i = 0; i < x.size(); ++i) {
            INFO("element " << i);
            auto expected = c["codes"][i].get<std::uint8_t>();
            // Zeros compare by value, as the file says.
            if ((expected & ~sign) == 0)
                CHECK((codes[i] & ~sign) == 0);
            else
                CHECK(codes[i] == expected);
            CHECK(y[i] == bf16_decode(c["y"][i].get<std::uint16_t>()));
        }
    }
}

TEST_CASE("scale exponents of single maxima", "[formats]") {
    const auto fp8 = [](float a) { return fp8_scale_exponent(std::vector<float>{0.0f, -a}); };
    const auto fp4 = [](float a) { return fp4_scale_exponent(std::vector<float>{0.0f, -a}); };
    const std::pair<float, int> fp8_cases[] = {{0, -22}, {0.01f, -15}, {1, -8},  {3.5f, -7},
                                               {448, 0}, {450, 1},     {1000, 2}};
    for (const auto& [a, k] : fp8_cases) CHECK(fp8(a) == k);
    const std::pair<float, int> fp4_cases[] = {{0, -126}, {0.5f, -3}, {1, -2},       {1.5f, -2},
                                               {3, -1},   {6, 0},     {6.03125f, 1}, {7, 1}};
    for (const auto& [a, k] : fp4_cases) CHECK(fp4(a) == k);
}
