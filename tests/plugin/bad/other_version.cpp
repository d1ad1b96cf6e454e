// Has another version in its code than in its manifest.
#include "descriptor.hpp"

static dsv4_plugin reversioned() {
    auto d = bad::descriptor();
    d.version = "2.0.0";
    return d;
}
BAD_ENTRY(reversioned())
