// One living object of a plugin, made for a pipeline and destroyed with its owner.
#pragma once

#include "core/host/host.hpp"
#include "core/host/host_table.hpp"
#include "core/plan/serving_plan.hpp"
#include "core/plugin/kind_tables.hpp"
#include "core/plugin/library.hpp"

namespace dsv4::plugin {

// Made and destroyed on the control thread; calls through the table follow the kind's header. Moved freely.
class Instance {
  public:
    // Checks `options` against the manifest, fills in defaults, and makes the instance. `host` outlives it. Errors:
    // those of resolve_options, unsupported for a kind that the manifest does not offer, the plugin's own error under
    // its name, and invalid for a table that lacks a required function.
    static Result<Instance> create(std::shared_ptr<Library> library, Kind kind, const plan::Options& options,
                                   host::Host& host);
    Instance(Instance&&) noexcept = default; // leaves the other one without host_, so it destroys nothing
    Instance& operator=(Instance&& other) noexcept;
    ~Instance();

    const Library& library() const noexcept { return *library_; }
    const std::string& name() const noexcept { return library_->manifest().name; }
    Kind kind() const noexcept { return kind_; }
    void* self() const noexcept { return object_.self; }
    // The table of this instance's kind; a table of another kind is Failure(internal). Use DSV4_HAS before an optional
    // function.
    template <class Table> const Table& table() const {
        if (KindOf<Table>::value != kind_)
            throw Failure(Code::internal, "an instance of plugin " + name() + " was used as another kind than its own");
        return *static_cast<const Table*>(object_.table);
    }

  private:
    Instance(std::shared_ptr<Library> library, Kind kind, std::unique_ptr<host::HostTable> table)
        : library_(std::move(library)), kind_(kind), host_(std::move(table)) {}
    void destroy() noexcept;

    std::shared_ptr<Library> library_;
    Kind kind_;
    std::unique_ptr<host::HostTable> host_; // absent in a moved-from instance
    dsv4_instance object_{};
};

} // namespace dsv4::plugin
