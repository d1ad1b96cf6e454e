// The kinds of plugin instances and their names in manifests and file names.
#pragma once

#include "dsv4/plugin.h"

#include <array>
#include <optional>
#include <string_view>

namespace dsv4::plugin {

enum class Kind : std::int32_t {
    backend = DSV4_KIND_BACKEND,
    spec = DSV4_KIND_SPEC,
    parser = DSV4_KIND_PARSER,
    transport = DSV4_KIND_TRANSPORT,
    api = DSV4_KIND_API,
    engine = DSV4_KIND_ENGINE,
};

struct KindName {
    Kind kind;
    std::string_view name;
};
inline constexpr std::array<KindName, 6> kind_names{{{Kind::backend, "backend"},
                                                     {Kind::spec, "spec"},
                                                     {Kind::parser, "parser"},
                                                     {Kind::transport, "transport"},
                                                     {Kind::api, "api"},
                                                     {Kind::engine, "engine"}}};

constexpr std::string_view to_string(Kind kind) noexcept {
    for (const auto& k : kind_names)
        if (k.kind == kind) return k.name;
    return "?";
}

constexpr std::optional<Kind> kind_of(std::string_view name) noexcept {
    for (const auto& k : kind_names)
        if (k.name == name) return k.kind;
    return std::nullopt;
}

} // namespace dsv4::plugin
