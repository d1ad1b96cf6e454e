// Calls itself by another name in its descriptor.
#include "descriptor.hpp"

static dsv4_plugin renamed() {
    auto d = bad::descriptor();
    d.name = "parser-somebody-else";
    return d;
}
BAD_ENTRY(renamed())
