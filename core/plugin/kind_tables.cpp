// The required functions of each kind's table.
#include "core/plugin/kind_tables.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>

namespace dsv4::plugin {
namespace {

struct Slot {
    const char* name;
    std::size_t offset;
};

#define DSV4_SLOT(table, member)                                                                                       \
    { #member, offsetof(table, member) }
#define B(member) DSV4_SLOT(dsv4_backend_table, member)
constexpr Slot backend_slots[] = {
    B(devices), B(supports), B(state_layouts), B(open),        B(close),          B(weights_announce),
    B(stage),   B(weight),   B(weights_done),  B(state_alloc), B(compile),        B(executable_release),
    B(submit),  B(supply),   B(poll),          B(wait),        B(ticket_release), B(memory)};
#undef B
#define S(member) DSV4_SLOT(dsv4_spec_table, member)
constexpr Slot spec_slots[] = {S(info), S(context_program), S(draft_program), S(choose_lengths)};
#undef S
#define P(member) DSV4_SLOT(dsv4_parser_table, member)
constexpr Slot parser_slots[] = {P(control_names), P(encode),        P(prompt_release), P(stream_open),
                                 P(stream_feed),   P(stream_finish), P(stream_close)};
#undef P
#define T(member) DSV4_SLOT(dsv4_transport_table, member)
constexpr Slot transport_slots[] = {T(open), T(close), T(send), T(receive), T(put), T(get), T(health)};
#undef T
#define A(member) DSV4_SLOT(dsv4_api_table, member)
constexpr Slot api_slots[] = {A(translate), A(translation_release), A(start), A(endpoint), A(drain), A(stop)};
#undef A
#define E(member) DSV4_SLOT(dsv4_engine_table, member)
constexpr Slot engine_slots[] = {E(launch), E(launch_release), E(parse_version)};
#undef E
#undef DSV4_SLOT

std::span<const Slot> slots_of(Kind kind) {
    switch (kind) {
    case Kind::backend: return backend_slots;
    case Kind::spec: return spec_slots;
    case Kind::parser: return parser_slots;
    case Kind::transport: return transport_slots;
    case Kind::api: return api_slots;
    case Kind::engine: return engine_slots;
    }
    return {};
}

} // namespace

Status check_table(Kind kind, const void* table, std::string_view plugin) {
    if (!table)
        return Error{Code::invalid, fmt::format("plugin {} made a {} without a table", plugin, to_string(kind)), {}};
    std::uint32_t struct_size = 0; // first member of every table
    std::memcpy(&struct_size, table, sizeof struct_size);
    for (const auto& slot : slots_of(kind)) {
        constexpr std::size_t pointer = sizeof(void (*)());
        if (struct_size < slot.offset + pointer)
            return Error{Code::invalid,
                         fmt::format("the {} table of plugin {} is too short: its {} bytes end before `{}`",
                                     to_string(kind), plugin, struct_size, slot.name),
                         "set struct_size to the size of the table and fill it"};
        static constexpr unsigned char null[pointer] = {};
        if (std::memcmp(static_cast<const unsigned char*>(table) + slot.offset, null, pointer) == 0)
            return Error{Code::invalid,
                         fmt::format("the {} table of plugin {} lacks the required function `{}`", to_string(kind),
                                     plugin, slot.name),
                         "fill every function that the header does not call optional"};
    }
    return {};
}

} // namespace dsv4::plugin
