// Makes a table without encode.
#include "descriptor.hpp"

static dsv4_plugin with_hole() {
    auto d = bad::descriptor();
    d.create = [](const dsv4_host*, std::int32_t, const dsv4_options*, dsv4_instance* out) -> dsv4_error* {
        static dsv4_parser_table table = bad::whole_table();
        table.encode = nullptr;
        out->table = &table;
        out->destroy = [](void*) {};
        return nullptr;
    };
    return d;
}
BAD_ENTRY(with_hole())
