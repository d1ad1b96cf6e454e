// The pass after the schema: sugar becomes the plain settings it stands for, and derived values are filled in.
#pragma once

#include "dsl/diagnostic.hpp"
#include "dsl/document.hpp"

namespace dsv4::dsl {

// Expands topology.shape to tp, dp, pp, pcp, dcp and ep; fills in what follows from them: the factors not written (1),
// ep (false), ep_size, mode and hardware.devices. A setting from a stronger origin wins without a word; two of equal
// strength are reported: DSV4-W0112 where one only repeats or hides the other, DSV4-E0103 where they contradict.
void expand(Node& root, const SourceMap& sources, Diagnostics& diagnostics);

} // namespace dsv4::dsl
