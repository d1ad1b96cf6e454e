// Its manifest is right, its code was built for another major.
#include "descriptor.hpp"

static dsv4_plugin with_major() {
    auto d = bad::descriptor();
    d.abi_major = DSV4_ABI_MAJOR + 1;
    return d;
}
BAD_ENTRY(with_major())
