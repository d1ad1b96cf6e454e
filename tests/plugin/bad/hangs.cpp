// Never returns from create.
#include "descriptor.hpp"

#include <unistd.h>

static dsv4_plugin hanging() {
    auto d = bad::descriptor();
    d.create = [](const dsv4_host*, std::int32_t, const dsv4_options*, dsv4_instance*) -> dsv4_error* {
        while (true) ::pause();
    };
    return d;
}
BAD_ENTRY(hanging())
