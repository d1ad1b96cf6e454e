// Throws inside a noexcept create, which ends the process.
#include "descriptor.hpp"

#include <stdexcept>

static dsv4_error* aborting_create(const dsv4_host*, std::int32_t, const dsv4_options*, dsv4_instance*) noexcept {
    struct Bomb {
        static void go() { throw std::runtime_error("boom"); }
    };
    void (*volatile go)() = Bomb::go;
    go();
    return nullptr;
}
static dsv4_plugin aborting() {
    auto d = bad::descriptor();
    d.create = aborting_create;
    return d;
}
BAD_ENTRY(aborting())
