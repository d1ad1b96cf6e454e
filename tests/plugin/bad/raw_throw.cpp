// Throws a C++ exception over the C boundary in create.
#include "descriptor.hpp"

#include <stdexcept>

static dsv4_plugin throwing() {
    auto d = bad::descriptor();
    d.create = [](const dsv4_host*, std::int32_t, const dsv4_options*, dsv4_instance*) -> dsv4_error* {
        throw std::runtime_error("not over this border");
    };
    return d;
}
BAD_ENTRY(throwing())
