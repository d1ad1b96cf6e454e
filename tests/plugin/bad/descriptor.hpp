// A plugin written against the C headers, with every part that a bad plugin may want to replace.
#pragma once

#include <dsv4/parser.h>
#include <dsv4/plugin.h>

#include <cstddef>
#include <cstdint>

namespace bad {

inline const dsv4_parser_table& whole_table() {
    static const dsv4_parser_table table = [] {
        dsv4_parser_table t{};
        t.struct_size = sizeof t;
        t.control_names = [](void*, const dsv4_str** names, std::uint32_t* count) -> dsv4_error* {
            *names = nullptr;
            *count = 0;
            return nullptr;
        };
        t.encode = [](void*, const dsv4_chat_request*, const dsv4_prompt**) -> dsv4_error* { return nullptr; };
        t.prompt_release = [](void*, const dsv4_prompt*) {};
        t.stream_open = [](void*, const dsv4_completion_options*, dsv4_completion_stream**) -> dsv4_error* {
            return nullptr;
        };
        t.stream_feed = [](dsv4_completion_stream*, const dsv4_piece*, std::size_t, dsv4_delta_sink,
                           void*) -> dsv4_error* { return nullptr; };
        t.stream_finish = [](dsv4_completion_stream*, std::int32_t, dsv4_delta_sink, void*,
                             dsv4_completion_end*) -> dsv4_error* { return nullptr; };
        t.stream_close = [](dsv4_completion_stream*) {};
        return t;
    }();
    return table;
}

inline dsv4_error* create(const dsv4_host*, std::int32_t, const dsv4_options*, dsv4_instance* out) {
    out->table = &whole_table();
    out->destroy = [](void*) {};
    return nullptr;
}

inline dsv4_plugin descriptor() {
    return {sizeof(dsv4_plugin),
            DSV4_ABI_MAJOR,
            DSV4_ABI_MINOR,
            DSV4_PLUGIN_NAME,
            "1.0.0",
            "Apache-2.0",
            DSV4_STATUS_STABLE,
            DSV4_POSTURE_TRUSTED_INPUT,
            DSV4_MANIFEST_SHA256,
            create};
}

} // namespace bad

// The entry function, returning `descriptor_expression`, evaluated once.
#define BAD_ENTRY(descriptor_expression)                                                                               \
    extern "C" __attribute__((visibility("default"))) const dsv4_plugin* dsv4_plugin_entry(std::uint32_t,              \
                                                                                           std::uint32_t) {            \
        static const dsv4_plugin plugin = descriptor_expression;                                                       \
        return &plugin;                                                                                                \
    }
