// Writes through a null pointer in create, past every sanitizer, so that it is the signal that ends the process.
#include "descriptor.hpp"

__attribute__((no_sanitize("address", "undefined", "thread"))) static dsv4_error*
crash(const dsv4_host*, std::int32_t, const dsv4_options*, dsv4_instance*) {
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;
    return nullptr;
}

static dsv4_plugin crashing() {
    auto d = bad::descriptor();
    d.create = crash;
    return d;
}
BAD_ENTRY(crashing())
