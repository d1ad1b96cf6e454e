// Trace spans: ids in W3C form and a log line at level debug when one ends.
#pragma once

#include "core/host/log.hpp"

#include <string>
#include <string_view>

namespace dsv4::host {

struct TraceIds {
    std::string trace_id;  // 32 hex digits
    std::string parent_id; // 16 hex digits, or empty
};
// The ids of a traceparent; a new trace for an empty or malformed one.
TraceIds trace_ids(std::string_view traceparent);
std::string new_span_id(); // 16 hex digits

} // namespace dsv4::host
