// Was built with the hash of another manifest.
#include "descriptor.hpp"

static dsv4_plugin rehashed() {
    auto d = bad::descriptor();
    d.manifest_sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
    return d;
}
BAD_ENTRY(rehashed())
