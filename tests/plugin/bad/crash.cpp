// Writes through a null pointer in create.
#include "descriptor.hpp"

static dsv4_plugin crashing() {
    auto d = bad::descriptor();
    d.create = [](const dsv4_host*, std::int32_t, const dsv4_options*, dsv4_instance*) -> dsv4_error* {
        volatile int* volatile nowhere = nullptr;
        *nowhere = 1;
        return nullptr;
    };
    return d;
}
BAD_ENTRY(crashing())
