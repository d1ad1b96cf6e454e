// Judges a plugin file by its permissions, its ELF structures and its manifest.
#include "core/plugin/candidate.hpp"

#include "core/plugin/elf_manifest.hpp"
#include "core/plugin/sha256.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dsv4::plugin {
namespace {

struct stat status_of(const std::filesystem::path& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return info;
    const int reason = errno;
    if (reason == ENOENT || reason == ENOTDIR)
        throw Failure(Code::not_found, fmt::format("there is no plugin file {}", path.string()));
    throw Failure(Code::environment,
                  fmt::format("plugin file {} cannot be read: {}", path.string(), std::strerror(reason)),
                  "give this user permission to read the file");
}

void check_permissions(const std::filesystem::path& path) {
    if (status_of(path).st_mode & S_IWOTH)
        throw Failure(Code::environment,
                      fmt::format("plugin file {} is world-writable, so anyone could replace its code", path.string()),
                      fmt::format("chmod o-w {}", path.string()));
    const auto directory = path.parent_path();
    const auto mode = status_of(directory).st_mode;
    if ((mode & S_IWOTH) && !(mode & S_ISVTX))
        throw Failure(Code::environment,
                      fmt::format("plugin directory {} is world-writable, so anyone could replace {}",
                                  directory.string(), path.filename().string()),
                      fmt::format("chmod o-w {}", directory.string()));
}

void check_exports(const Candidate& c, const std::vector<std::string>& exports) {
    if (std::find(exports.begin(), exports.end(), DSV4_PLUGIN_ENTRY_SYMBOL) == exports.end())
        throw Failure(
            Code::invalid,
            fmt::format("{} does not export {}, so it is not a plugin", c.path.string(), DSV4_PLUGIN_ENTRY_SYMBOL),
            "register the class with DSV4_PLUGIN, or define the entry function with default visibility");
    std::vector<std::string> others;
    std::copy_if(exports.begin(), exports.end(), std::back_inserter(others),
                 [](const auto& e) { return e != DSV4_PLUGIN_ENTRY_SYMBOL; });
    if (others.empty()) return;
    const auto shown = std::min<std::size_t>(others.size(), 5);
    throw Failure(Code::invalid,
                  fmt::format("{} exports {} besides {}: {}{}", c.path.string(),
                              others.size() == 1 ? "one symbol" : fmt::format("{} symbols", others.size()),
                              DSV4_PLUGIN_ENTRY_SYMBOL,
                              fmt::join(others.begin(), others.begin() + std::ptrdiff_t(shown), ", "),
                              others.size() > shown ? ", ..." : ""),
                  "link with the version script of dsv4_add_plugin");
}

} // namespace

std::optional<Error> refuse_abi(std::string_view name, std::uint32_t major, std::uint32_t minor) {
    if (major != DSV4_ABI_MAJOR)
        return Error{Code::unsupported,
                     fmt::format("plugin {} was built for ABI {}.{}; this program loads ABI {}", name, major, minor,
                                 DSV4_ABI_MAJOR),
                     fmt::format("build the plugin with an SDK of ABI {}.{}", DSV4_ABI_MAJOR, DSV4_ABI_MINOR)};
    if (minor > DSV4_ABI_MINOR)
        return Error{Code::unsupported,
                     fmt::format("plugin {} was built for ABI {}.{}, which is newer than this program's {}.{}", name,
                                 major, minor, DSV4_ABI_MAJOR, DSV4_ABI_MINOR),
                     "update this program, or build the plugin with its SDK"};
    return std::nullopt;
}

Candidate examine(const std::filesystem::path& file) {
    Candidate c;
    c.name = file.stem().string();
    c.path = file;
    const auto checked = guard([&] {
        c.path = std::filesystem::absolute(file).lexically_normal();
        if (c.path.extension() != ".so")
            throw Failure(Code::invalid, fmt::format("plugin file {} must end in .so", c.path.string()));
        check_permissions(c.path);
        const auto facts = read_elf(c.path).value();
        c.manifest_sha256 = sha256_hex(facts.manifest);
        c.manifest = parse_manifest(facts.manifest, c.path.string()).value();
        if (c.manifest->name != c.name)
            throw Failure(Code::invalid,
                          fmt::format("plugin file {} says in its manifest that its name is {}", c.path.string(),
                                      c.manifest->name),
                          fmt::format("name the file {}.so", c.manifest->name));
        check_exports(c, facts.exports);
        if (auto refusal = refuse_abi(c.name, c.manifest->abi_major, c.manifest->abi_minor))
            throw Failure(std::move(*refusal));
    });
    if (!checked) c.refusal = checked.error();
    return c;
}

} // namespace dsv4::plugin
