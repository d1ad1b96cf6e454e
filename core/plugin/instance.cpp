// Makes plugin instances and ends them.
#include "core/plugin/instance.hpp"

#include "core/plugin/options.hpp"
#include "dsv4/sdk/error.hpp"

#include <fmt/format.h>

namespace dsv4::plugin {
namespace {

// A plugin that throws over the C boundary broke the contract; with a common unwinder the host can still say so.
template <class F> dsv4_error* call(std::string_view name, F&& create) {
    std::string thrown;
    try {
        return create();
    } catch (const std::exception& e) {
        thrown = fmt::format(": {}", e.what());
    } catch (...) {}
    throw Failure(Code::internal,
                  fmt::format("plugin {} threw a C++ exception over the C boundary in create{}", name, thrown),
                  "report this to the plugin's author");
}

} // namespace

Result<Instance> Instance::create(std::shared_ptr<Library> library, Kind kind, const plan::Options& options,
                                  host::Host& host) {
    return guard([&] {
        const auto& manifest = library->manifest();
        if (!manifest.offers(kind))
            throw Failure(
                Code::unsupported, fmt::format("plugin {} is no {}", manifest.name, to_string(kind)),
                fmt::format("name a plugin of kind {}; `dsv4 plugins list` shows the kinds", to_string(kind)));
        const auto values = resolve_options(manifest, options).value();
        Instance instance(library, kind, std::make_unique<host::HostTable>(host, manifest.name));
        dsv4_instance made{};
        made.struct_size = sizeof made;
        auto* error = call(manifest.name, [&] {
            return library->descriptor().create(instance.host_->table(), std::int32_t(kind), host::as_options(values),
                                                &made);
        });
        if (error) {
            auto e = sdk::take_error(error);
            e.message = fmt::format("plugin {} cannot start: {}", manifest.name, e.message);
            throw Failure(std::move(e));
        }
        library->keep_loaded();
        instance.object_ = made;
        if (!made.destroy)
            throw Failure(Code::invalid, fmt::format("plugin {} made a {} without a destroy function", manifest.name,
                                                     to_string(kind)));
        check_table(kind, made.table, manifest.name).value();
        return instance;
    });
}

void Instance::destroy() noexcept {
    if (host_ && object_.destroy) object_.destroy(object_.self);
    host_.reset();
}

Instance& Instance::operator=(Instance&& other) noexcept {
    if (this == &other) return *this;
    destroy();
    library_ = std::move(other.library_);
    kind_ = other.kind_;
    host_ = std::move(other.host_);
    object_ = other.object_;
    return *this;
}

Instance::~Instance() { destroy(); }

} // namespace dsv4::plugin
