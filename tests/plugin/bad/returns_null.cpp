// Refuses every host.
#include "descriptor.hpp"

extern "C" __attribute__((visibility("default"))) const dsv4_plugin* dsv4_plugin_entry(std::uint32_t, std::uint32_t) {
    return nullptr;
}
