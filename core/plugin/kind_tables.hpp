// What the table of each kind must hold.
#pragma once

#include "core/plugin/kind.hpp"
#include "dsv4/api.h"
#include "dsv4/backend.h"
#include "dsv4/engine.h"
#include "dsv4/parser.h"
#include "dsv4/sdk/result.hpp"
#include "dsv4/spec.h"
#include "dsv4/transport.h"

namespace dsv4::plugin {

template <class Table> struct KindOf;
template <> struct KindOf<dsv4_backend_table> { static constexpr Kind value = Kind::backend; };
template <> struct KindOf<dsv4_spec_table> { static constexpr Kind value = Kind::spec; };
template <> struct KindOf<dsv4_parser_table> { static constexpr Kind value = Kind::parser; };
template <> struct KindOf<dsv4_transport_table> { static constexpr Kind value = Kind::transport; };
template <> struct KindOf<dsv4_api_table> { static constexpr Kind value = Kind::api; };
template <> struct KindOf<dsv4_engine_table> { static constexpr Kind value = Kind::engine; };

// Invalid, naming the first required function that `table` lacks; `plugin` names its owner. Optional functions are
// those whose comment in the header says so.
Status check_table(Kind kind, const void* table, std::string_view plugin);

} // namespace dsv4::plugin
