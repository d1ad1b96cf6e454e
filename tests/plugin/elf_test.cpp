// The ELF reader: what it finds in a good file, and that no damaged file crashes it or is believed.
#include "core/plugin/elf_manifest.hpp"
#include "core/plugin/sha256.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

#include <elf.h>

#include <cstring>
#include <random>

using namespace dsv4;
using namespace dsv4::plugin;

TEST_CASE("SHA-256 of the standard's own examples") {
    CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("the manifest and the exports of a plugin are read without loading it") {
    const auto facts = read_elf(built("parser-good"));
    REQUIRE(facts.ok());
    CHECK(facts->manifest == read_file(std::filesystem::path(DSV4_SOURCE_DIR) / "tests/plugin/good/parser-good.toml"));
    CHECK(facts->exports == std::vector<std::string>{"dsv4_plugin_entry"});
}

TEST_CASE("all cuts of a file give an error") {
    const TempDir dir;
    const auto good = read_file(built("parser-plain"));
    for (std::size_t size = 0; size < good.size(); size += 1 + good.size() / 97) {
        INFO(size);
        CHECK_FALSE(read_elf(dir.write("parser-plain.so", std::string_view(good).substr(0, size))).ok());
    }
}

TEST_CASE("headers with hostile numbers give errors") {
    const TempDir dir;
    const auto good = read_file(built("parser-plain"));
    Elf64_Ehdr header;
    std::memcpy(&header, good.data(), sizeof header);
    const auto with = [&](auto change) {
        auto bytes = good;
        Elf64_Ehdr h = header;
        std::vector<Elf64_Shdr> sections(h.e_shnum);
        std::memcpy(sections.data(), bytes.data() + h.e_shoff, sections.size() * sizeof(Elf64_Shdr));
        const auto at = h.e_shoff;
        change(h, sections);
        std::memcpy(bytes.data() + at, sections.data(), sections.size() * sizeof(Elf64_Shdr));
        std::memcpy(bytes.data(), &h, sizeof h);
        const auto result = read_elf(dir.write("parser-plain.so", bytes));
        REQUIRE_FALSE(result.ok());
        return result.error().message;
    };
    using Sections = std::vector<Elf64_Shdr>;
    const auto section_of = [](Sections& s, std::uint32_t type) -> Elf64_Shdr& {
        for (auto& x : s)
            if (x.sh_type == type) return x;
        throw std::runtime_error("no such section");
    };
    constexpr auto huge = ~std::uint64_t{0};
    CHECK_THAT(with([](auto& h, Sections&) { h.e_shoff = huge - 10; }), ContainsSubstring("lies outside the file"));
    CHECK_THAT(with([](auto& h, Sections&) { h.e_shentsize = 1; }), ContainsSubstring("wrong size"));
    CHECK_THAT(with([](auto& h, Sections&) { h.e_shstrndx = 0xfff0; }),
               ContainsSubstring("section name table does not exist"));
    CHECK_THAT(with([](auto& h, Sections& s) {
                   h.e_shnum = 0;
                   s[0].sh_size = huge;
               }),
               ContainsSubstring("entries"));
    CHECK_THAT(with([](auto& h, Sections&) { h.e_type = ET_EXEC; }), ContainsSubstring("is not a shared library"));
    CHECK_THAT(with([](auto& h, Sections&) { h.e_ident[EI_CLASS] = ELFCLASS32; }),
               ContainsSubstring("another machine"));
    CHECK_THAT(with([&](auto&, Sections& s) { section_of(s, SHT_DYNSYM).sh_size = huge - 7; }),
               ContainsSubstring("damaged"));
    CHECK_THAT(with([&](auto&, Sections& s) { section_of(s, SHT_DYNSYM).sh_link = 0xffffffff; }),
               ContainsSubstring("have no names"));
    CHECK_THAT(with([&](auto&, Sections& s) { section_of(s, SHT_DYNSYM).sh_entsize = 0; }),
               ContainsSubstring("wrong size"));
    CHECK_THAT(with([&](auto&, Sections& s) { s[s.size() - 1].sh_name = 0xffffffff; }), ContainsSubstring("name"));
}

TEST_CASE("random damage never crashes the reader") {
    const TempDir dir;
    const auto good = read_file(built("parser-plain"));
    std::mt19937 random(7);
    Elf64_Ehdr header;
    std::memcpy(&header, good.data(), sizeof header);
    for (int round = 0; round < 400; ++round) {
        auto bytes = good;
        for (int i = 0; i < 4; ++i) {
            // Half of the damage goes to the headers that are read.
            const auto at =
                i % 2 ? random() % sizeof header : header.e_shoff + random() % (bytes.size() - header.e_shoff);
            bytes[at] = char(random());
        }
        const auto result = read_elf(dir.write("parser-plain.so", bytes));
        if (result.ok())
            CHECK(result->manifest.size() <= max_manifest_bytes);
        else
            CHECK_FALSE(result.error().message.empty());
    }
}
