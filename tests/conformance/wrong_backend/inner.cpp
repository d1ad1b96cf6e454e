// Loads backend-cpu the short way: the check under test looks at the numbers, not at the library.
#include "inner.hpp"

#include "dsv4/sdk/error.hpp"

#include <dlfcn.h>

namespace dsv4::wrong {
namespace {

// The only option that backend-cpu has; what it gets as options is the text.
dsv4_error* accumulate_option(const dsv4_options* options, dsv4_str, dsv4_str* out) {
    *out = sdk::str(*reinterpret_cast<const std::string*>(options));
    return nullptr;
}

} // namespace

Inner::Inner(const std::string& path, const dsv4_host& host, const std::string& accumulate) : host_(host) {
    host_.option_string = accumulate_option;
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Failure(Code::environment, "cannot load '" + path + "': " + ::dlerror());
    const auto entry = reinterpret_cast<dsv4_plugin_entry_fn>(::dlsym(library, DSV4_PLUGIN_ENTRY_SYMBOL));
    if (!entry) throw Failure(Code::invalid, "'" + path + "' is no plugin");
    const dsv4_plugin* plugin = entry(DSV4_ABI_MAJOR, DSV4_ABI_MINOR);
    if (!plugin) throw Failure(Code::unsupported, "'" + path + "' refuses this host");
    instance_.struct_size = sizeof instance_;
    sdk::check(
        plugin->create(&host_, DSV4_KIND_BACKEND, reinterpret_cast<const dsv4_options*>(&accumulate), &instance_));
}

Inner::~Inner() { instance_.destroy(instance_.self); }

InnerSession::InnerSession(const Inner& inner, const dsv4_session_config& config) : table_(inner.table()) {
    sdk::check(table_.open(inner.self(), &config, &session_));
}

InnerSession::~InnerSession() { table_.close(session_); }

} // namespace dsv4::wrong
