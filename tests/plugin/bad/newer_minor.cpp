// Its manifest is right, its code was built for a newer minor.
#include "descriptor.hpp"

static dsv4_plugin with_minor() {
    auto d = bad::descriptor();
    d.abi_minor = DSV4_ABI_MINOR + 1;
    return d;
}
BAD_ENTRY(with_minor())
