// DeepSeek-V4 as a Program: the one place that knows layer order, compression ratios, hash layers and rotary tables.
#pragma once

#include "core/lower/weight_table.hpp"
#include "core/model/geometry.hpp"
#include "dsv4/sdk/program.hpp"

#include <string_view>

namespace dsv4::lower {

struct Options {
    dsv4_precision precision = DSV4_SERVE;
    // Layers [first_layer, end_layer); end_layer -1: all. With first_layer > 0 or `streams_input` the Program takes the
    // residual streams as input "streams.in" instead of embedding ids.
    int first_layer = 0;
    int end_layer = -1;
    bool streams_input = false;
    bool head = true;   // final mixer, norm and logits; only with end_layer at the end
    bool sample = true; // mask and sample behind the head
    // Values to hand to the host: "logits", "streams.L" for each layer, "picks.L" for each layer with an indexer.
    bool logits_output = false;
    bool streams_output = false;
    bool picks_output = false;
};

// Throws Failure naming the weight that is missing or the option that makes no sense.
program::Program lower(const model::Geometry& geometry, const WeightTable& weights, const Options& options);

// One layer alone, for plugins that compose drafts: weights start with `prefix` ("layers.3", "mtp.0"), input and output
// "streams". `block` lowers draft attention: the sequence's draft window, then all rows of the slot, no causal order.
struct LayerOptions {
    dsv4_precision precision = DSV4_SERVE;
    int state_layer = 0; // layer number of its state
    int ratio = 0;
    bool hash_routed = false;
    bool block = false;
};
program::Program lower_layer(const model::Geometry& geometry, const WeightTable& weights, std::string_view prefix,
                             const LayerOptions& options);

} // namespace dsv4::lower
