// Says that its descriptor ends before create.
#include "descriptor.hpp"

static dsv4_plugin cut() {
    auto d = bad::descriptor();
    d.struct_size = offsetof(dsv4_plugin, create);
    return d;
}
BAD_ENTRY(cut())
