// Registers plugin classes: derive from Backend, Parser, Api, ... and write one line,
//
//   DSV4_PLUGIN((dsv4::sdk::About{.version = "1.0.0", .licence = "Apache-2.0"}), MyParser)
//
// A class is constructed with (const Host&, const Options&) and may throw Failure.
#pragma once

#include "dsv4/plugin.h"
#include "dsv4/sdk/host.hpp"

#include <memory>
#include <string>

namespace dsv4::sdk {

struct About {
    const char* version;
    const char* licence;
    dsv4_plugin_status status = DSV4_STATUS_STABLE;
    dsv4_security_posture posture = DSV4_POSTURE_TRUSTED_INPUT;
};

namespace detail {

// True when `kind` is T's kind and the instance was made.
template <class T>
bool create_one(const dsv4_host* host, std::int32_t kind, const dsv4_options* options, dsv4_instance* out) {
    if (kind != T::kind) return false;
    auto object = std::make_unique<T>(Host(host), Options(host, options));
    out->self = static_cast<typename T::Interface*>(object.release());
    out->table = &T::Interface::table();
    out->destroy = [](void* self) { delete static_cast<typename T::Interface*>(self); };
    return true;
}

template <class... Classes>
dsv4_error* create(const dsv4_host* host, std::int32_t kind, const dsv4_options* options, dsv4_instance* out) {
    return contain([&] {
        if (!(create_one<Classes>(host, kind, options, out) || ...))
            throw Failure(Code::unsupported,
                          std::string(DSV4_PLUGIN_NAME) + " offers no instance of kind " + std::to_string(kind));
    });
}

template <class... Classes> const dsv4_plugin* descriptor(const About& about) noexcept {
    static const dsv4_plugin plugin{sizeof(dsv4_plugin),  DSV4_ABI_MAJOR,     DSV4_ABI_MINOR, DSV4_PLUGIN_NAME,
                                    about.version,        about.licence,      about.status,   about.posture,
                                    DSV4_MANIFEST_SHA256, &create<Classes...>};
    return &plugin;
}

} // namespace detail
} // namespace dsv4::sdk

#define DSV4_PLUGIN(about, ...)                                                                                        \
    extern "C" __attribute__((visibility("default"))) const dsv4_plugin* dsv4_plugin_entry(std::uint32_t,              \
                                                                                           std::uint32_t) {            \
        return dsv4::sdk::detail::descriptor<__VA_ARGS__>(about);                                                      \
    }
