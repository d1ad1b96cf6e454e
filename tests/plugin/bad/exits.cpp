// Ends the process in create.
#include "descriptor.hpp"

#include <cstdlib>

static dsv4_plugin exiting() {
    auto d = bad::descriptor();
    d.create = [](const dsv4_host*, std::int32_t, const dsv4_options*, dsv4_instance*) -> dsv4_error* {
        std::_Exit(7);
    };
    return d;
}
BAD_ENTRY(exiting())
