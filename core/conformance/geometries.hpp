// The shapes that `dsv4 plugins check` runs: those of the tiny and golden test models and of the published models, cut
// to one layer of each kind.
#pragma once

#include "core/model/geometry.hpp"

#include <string_view>
#include <vector>

namespace dsv4::conformance {

// Three layers: 0 window only and hash-routed, 1 ratio 4, 2 ratio 128. Names: tiny, golden, flash, pro. Throws
// Failure(invalid) for another name.
model::Geometry geometry(std::string_view name);

const std::vector<std::string_view>& geometry_names();

} // namespace dsv4::conformance
