// Loads plugin libraries with Boost.DLL; no other file knows the loader.
#include "core/plugin/library.hpp"

#include <boost/dll/shared_library.hpp>
#include <fmt/format.h>

#include <atomic>
#include <new>

namespace dsv4::plugin {
namespace {

std::string text(const char* s) { return s ? s : ""; }

// The loader's reason without the wrapper's words around it: "... (dlerror system message: REASON): Bad file
// descriptor".
std::string loader_reason(const std::exception& e) {
    std::string reason = e.what();
    constexpr std::string_view before = "dlerror system message: ";
    if (const auto start = reason.find(before); start != reason.npos) reason.erase(0, start + before.size());
    if (const auto end = reason.rfind("): Bad file descriptor"); end != reason.npos) reason.erase(end);
    return reason;
}

} // namespace

struct Library::Handle {
    // Raw storage, so that a library which must stay is simply never closed.
    alignas(boost::dll::shared_library) unsigned char storage[sizeof(boost::dll::shared_library)];
    std::atomic<bool> keep{false};

    explicit Handle(const std::filesystem::path& path) {
        using boost::dll::load_mode::type;
        new (storage)
            boost::dll::shared_library(path, type(boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local));
    }
    ~Handle() {
        if (!keep) get().~shared_library();
    }
    boost::dll::shared_library& get() { return *std::launder(reinterpret_cast<boost::dll::shared_library*>(storage)); }
};

Library::Library(const Candidate& candidate) : path_(candidate.path), manifest_(*candidate.manifest) {
    try {
        handle_ = std::make_unique<Handle>(path_);
    } catch (const std::exception& e) {
        throw Failure(Code::environment,
                      fmt::format("plugin {} cannot be loaded: {}", candidate.name, loader_reason(e)),
                      "install the libraries that it needs, or build it for this machine");
    }
    if (!handle_->get().has(DSV4_PLUGIN_ENTRY_SYMBOL))
        throw Failure(Code::invalid,
                      fmt::format("plugin {} has no entry symbol {}", candidate.name, DSV4_PLUGIN_ENTRY_SYMBOL));
    const auto entry = handle_->get().get<const dsv4_plugin*(std::uint32_t, std::uint32_t)>(DSV4_PLUGIN_ENTRY_SYMBOL);
    try {
        descriptor_ = entry(DSV4_ABI_MAJOR, DSV4_ABI_MINOR);
    } catch (...) {
        throw Failure(
            Code::internal,
            fmt::format("the entry function of plugin {} threw a C++ exception over the C boundary", candidate.name),
            "report this to the plugin's author");
    }
    check_descriptor(candidate);
}

Library::~Library() = default;

void Library::check_descriptor(const Candidate& candidate) const {
    const auto& name = candidate.name;
    if (!descriptor_)
        throw Failure(Code::unsupported,
                      fmt::format("plugin {} refuses this program (ABI {}.{}): its entry function returned nothing",
                                  name, DSV4_ABI_MAJOR, DSV4_ABI_MINOR),
                      "use a version of the plugin made for this program");
    const auto& d = *descriptor_;
    if (d.struct_size < offsetof(dsv4_plugin, abi_minor) + sizeof d.abi_minor)
        throw Failure(Code::invalid, fmt::format("the descriptor of plugin {} has only {} bytes", name, d.struct_size));
    // The version decides how the rest may be read.
    if (auto refusal = refuse_abi(name, d.abi_major, d.abi_minor)) throw Failure(std::move(*refusal));
    if (d.struct_size < offsetof(dsv4_plugin, create) + sizeof d.create)
        throw Failure(Code::invalid,
                      fmt::format("the descriptor of plugin {} is too short: {} bytes where ABI {}.{} has {}", name,
                                  d.struct_size, d.abi_major, d.abi_minor,
                                  offsetof(dsv4_plugin, create) + sizeof d.create),
                      "set struct_size to sizeof(dsv4_plugin)");
    if (text(d.name) != name)
        throw Failure(
            Code::invalid,
            fmt::format("plugin file {} holds a plugin that calls itself \"{}\"", path_.string(), text(d.name)),
            "the descriptor's name must equal the file's base name");
    if (text(d.manifest_sha256) != candidate.manifest_sha256)
        throw Failure(
            Code::invalid,
            fmt::format("plugin {} was built with another manifest than the one embedded in it (SHA-256 {} and {})",
                        name, text(d.manifest_sha256), candidate.manifest_sha256),
            "build the plugin again");
    const auto differs = [&](std::string_view what, std::string_view code, std::string_view manifest) {
        throw Failure(Code::invalid,
                      fmt::format("the {0} of plugin {1} is \"{2}\" in its code and \"{3}\" in its manifest", what,
                                  name, code, manifest),
                      "make DSV4_PLUGIN's About say the same as the manifest");
    };
    if (text(d.version) != manifest_.version) differs("version", text(d.version), manifest_.version);
    if (text(d.licence) != manifest_.licence) differs("licence", text(d.licence), manifest_.licence);
    if (Maturity(d.status) != manifest_.status)
        differs("status", to_string(Maturity(d.status)), to_string(manifest_.status));
    if (Posture(d.security_posture) != manifest_.security)
        differs("security", to_string(Posture(d.security_posture)), to_string(manifest_.security));
    if (!d.create)
        throw Failure(Code::invalid, fmt::format("the descriptor of plugin {} has no create function", name));
}

void Library::keep_loaded() noexcept { handle_->keep = true; }

Result<std::shared_ptr<Library>> Library::load(const Candidate& candidate) {
    if (candidate.refusal) return *candidate.refusal;
    return guard([&] { return std::shared_ptr<Library>(new Library(candidate)); });
}

Result<std::shared_ptr<Library>> Library::load(const std::filesystem::path& file) { return load(examine(file)); }

} // namespace dsv4::plugin
