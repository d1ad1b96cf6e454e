// Makes a table that ends before stream_feed.
#include "descriptor.hpp"

static dsv4_plugin with_short_table() {
    auto d = bad::descriptor();
    d.create = [](const dsv4_host*, std::int32_t, const dsv4_options*, dsv4_instance* out) -> dsv4_error* {
        static dsv4_parser_table table = bad::whole_table();
        table.struct_size = offsetof(dsv4_parser_table, stream_feed);
        out->table = &table;
        out->destroy = [](void*) {};
        return nullptr;
    };
    return d;
}
BAD_ENTRY(with_short_table())
