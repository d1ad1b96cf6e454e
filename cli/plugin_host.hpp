// Plugins for a command: the registry with the right search path, and instances by name.
#pragma once

#include "core/host/host.hpp"
#include "core/plugin/instance.hpp"
#include "core/plugin/registry.hpp"

#include <string>
#include <vector>

namespace dsv4::cli {

// The process's host services and plugin registry. Log lines below warnings are left out, so that a command's output
// is its result.
class PluginHost {
  public:
    explicit PluginHost(const std::vector<std::string>& more_paths = {});
    host::Host& host() noexcept { return host_; }
    plugin::Registry& registry() noexcept { return registry_; }
    // Throws Failure with the registry's reason.
    plugin::Instance make(const std::string& name, plugin::Kind kind, const plan::Options& options = {});

  private:
    host::Host host_;
    plugin::Registry registry_;
};

// "name=value" texts to options: true, false, integers, floats, else text. Throws Failure(invalid).
plan::Options parse_options(const std::vector<std::string>& texts);

} // namespace dsv4::cli
