// A bounds-checked reader of the few ELF structures that a plugin's check needs.
#include "core/plugin/elf_manifest.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace dsv4::plugin {
namespace {

constexpr std::string_view manifest_section = ".dsv4.manifest";
constexpr std::uint64_t max_table_bytes = std::uint64_t{64} << 20; // section headers, symbols, names

#if defined(__x86_64__)
constexpr std::uint16_t host_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t host_machine = EM_AARCH64;
#else
#error "name this machine's ELF type here"
#endif

class File {
  public:
    explicit File(const std::filesystem::path& path) : path_(path.string()) {
        descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor_ < 0) {
            const int reason = errno;
            if (reason == ENOENT || reason == ENOTDIR)
                throw Failure(Code::not_found, fmt::format("there is no plugin file {}", path_));
            throw Failure(Code::environment,
                          fmt::format("plugin file {} cannot be read: {}", path_, std::strerror(reason)),
                          "give this user permission to read the file");
        }
        struct stat info {};
        if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
            ::close(descriptor_);
            throw Failure(Code::invalid, fmt::format("{} is not a regular file, so it cannot be a plugin", path_));
        }
        size_ = std::uint64_t(info.st_size);
    }
    ~File() { ::close(descriptor_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    std::uint64_t size() const { return size_; }

    [[noreturn]] void corrupt(std::string_view what) const {
        throw Failure(Code::corrupt, fmt::format("plugin file {} is damaged: {}", path_, what),
                      "install the plugin again");
    }
    [[noreturn]] void refuse(std::string_view what, std::string_view fix) const {
        throw Failure(Code::invalid, fmt::format("{} {}", path_, what), std::string(fix));
    }

    // `count` bytes at `offset`; `what` names them in the error when they are not all there or above `limit`.
    std::string read(std::uint64_t offset, std::uint64_t count, std::uint64_t limit, std::string_view what) const {
        if (offset > size_ || count > size_ - offset) corrupt(fmt::format("{} lies outside the file", what));
        if (count > limit)
            throw Failure(Code::exhausted, fmt::format("{} of plugin file {} has {} bytes, more than the limit of {}",
                                                       what, path_, count, limit));
        std::string bytes(count, '\0');
        std::uint64_t done = 0;
        while (done < count) {
            const auto n = ::pread(descriptor_, bytes.data() + done, count - done, off_t(offset + done));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) corrupt(fmt::format("{} cannot be read", what));
            done += std::uint64_t(n);
        }
        return bytes;
    }

    template <class T>
    std::vector<T> read_array(std::uint64_t offset, std::uint64_t count, std::string_view what) const {
        static_assert(std::is_trivially_copyable_v<T>);
        if (count > max_table_bytes / sizeof(T)) corrupt(fmt::format("{} has {} entries", what, count));
        const auto bytes = read(offset, count * sizeof(T), max_table_bytes, what);
        std::vector<T> values(count);
        if (count) std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }

  private:
    std::string path_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
};

// The name at `index` of a string table; nothing when it does not end inside it.
std::optional<std::string_view> name_at(std::string_view table, std::uint64_t index) {
    if (index >= table.size()) return std::nullopt;
    const auto end = table.find('\0', index);
    if (end == std::string_view::npos) return std::nullopt;
    return table.substr(index, end - index);
}

Elf64_Ehdr read_header(const File& file) {
    if (file.size() < SELFMAG || file.read(0, SELFMAG, SELFMAG, "the ELF magic") != std::string_view(ELFMAG, SELFMAG))
        file.refuse("is not an ELF file, so it cannot be a plugin", "build the plugin with dsv4_add_plugin");
    const auto header = file.read_array<Elf64_Ehdr>(0, 1, "the ELF header")[0];
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != host_machine)
        file.refuse(fmt::format("is built for another machine (ELF machine {}; this program runs on {})",
                                header.e_machine, host_machine),
                    "build the plugin for this machine");
    if (header.e_type != ET_DYN) file.refuse("is not a shared library", "build the plugin with dsv4_add_plugin");
    if (header.e_shoff != 0 && header.e_shentsize != sizeof(Elf64_Shdr))
        file.corrupt("its section headers have a wrong size");
    return header;
}

struct Sections {
    std::vector<Elf64_Shdr> headers;
    std::string names;
};

Sections read_sections(const File& file, const Elf64_Ehdr& header) {
    Sections s;
    if (header.e_shoff == 0) return s;
    std::uint64_t count = header.e_shnum;
    std::uint64_t names_index = header.e_shstrndx;
    if (count == 0 || names_index == SHN_XINDEX) {
        const auto first = file.read_array<Elf64_Shdr>(header.e_shoff, 1, "the section header table")[0];
        if (count == 0) count = first.sh_size;
        if (names_index == SHN_XINDEX) names_index = first.sh_link;
    }
    s.headers = file.read_array<Elf64_Shdr>(header.e_shoff, count, "the section header table");
    if (names_index >= s.headers.size()) file.corrupt("its section name table does not exist");
    const auto& names = s.headers[names_index];
    if (names.sh_type != SHT_STRTAB) file.corrupt("its section name table is no string table");
    s.names = file.read(names.sh_offset, names.sh_size, max_table_bytes, "the section name table");
    return s;
}

std::string read_manifest(const File& file, const Sections& sections) {
    const Elf64_Shdr* found = nullptr;
    for (const auto& header : sections.headers) {
        const auto name = name_at(sections.names, header.sh_name);
        if (!name) file.corrupt("a section name lies outside the name table");
        if (*name != manifest_section) continue;
        if (found) file.corrupt("it has two manifest sections");
        found = &header;
    }
    if (!found)
        file.refuse(fmt::format("has no section {}, so it is not a plugin", manifest_section),
                    "build the plugin with dsv4_add_plugin, which embeds the manifest");
    if (found->sh_type != SHT_PROGBITS || (found->sh_flags & SHF_COMPRESSED))
        file.corrupt("its manifest section holds no bytes");
    return file.read(found->sh_offset, found->sh_size, max_manifest_bytes, "the manifest section");
}

std::vector<std::string> read_exports(const File& file, const Sections& sections) {
    std::vector<std::string> exports;
    for (const auto& table : sections.headers) {
        if (table.sh_type != SHT_DYNSYM) continue;
        if (table.sh_entsize != sizeof(Elf64_Sym) || table.sh_size % sizeof(Elf64_Sym))
            file.corrupt("its dynamic symbol table has a wrong size");
        if (table.sh_link >= sections.headers.size()) file.corrupt("its dynamic symbols have no names");
        const auto& names_header = sections.headers[table.sh_link];
        const auto names =
            file.read(names_header.sh_offset, names_header.sh_size, max_table_bytes, "the dynamic symbol names");
        for (const auto& symbol : file.read_array<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym),
                                                             "the dynamic symbol table")) {
            if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
            const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other);
            if (visibility == STV_HIDDEN || visibility == STV_INTERNAL) continue;
            const auto name = name_at(names, symbol.st_name);
            if (!name) file.corrupt("a dynamic symbol's name lies outside the name table");
            exports.emplace_back(*name);
        }
    }
    std::sort(exports.begin(), exports.end());
    return exports;
}

} // namespace

Result<ElfFacts> read_elf(const std::filesystem::path& path) {
    return guard([&] {
        const File file(path);
        const auto header = read_header(file);
        const auto sections = read_sections(file, header);
        ElfFacts facts;
        facts.manifest = read_manifest(file, sections);
        facts.exports = read_exports(file, sections);
        return facts;
    });
}

} // namespace dsv4::plugin
