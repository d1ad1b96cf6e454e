// Needs a symbol that no library has.
#include "descriptor.hpp"

extern "C" int dsv4_test_symbol_of_nobody();
static dsv4_plugin needy() {
    auto d = bad::descriptor();
    d.abi_minor = std::uint16_t(dsv4_test_symbol_of_nobody());
    return d;
}
BAD_ENTRY(needy())
