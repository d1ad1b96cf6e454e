// Scoring: logits, residual streams and indexer picks for every position of one token sequence.
#pragma once

#include "core/model/geometry.hpp"
#include "core/runtime/backend_session.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace dsv4::runtime {

struct ScoreOptions {
    dsv4_precision precision = DSV4_SCORE;
    std::uint32_t chunk_tokens = 256; // rows a batch; any value gives the same result on a deterministic backend
    bool streams = false;             // keep streams and picks of every layer
    // Run only layers [first_layer, end_layer) on given input streams [T, n, D] float32 (exact in the precision's
    // activation type); empty: from the embedding. end_layer -1: all layers, and only then logits.
    int first_layer = 0;
    int end_layer = -1;
    std::vector<float> input_streams;
};

struct Score {
    std::int64_t tokens = 0;
    std::vector<float> logits;                      // [T, V]
    std::vector<std::int32_t> argmax;               // [T], lowest id wins ties
    std::map<int, std::vector<float>> streams;      // layer -> [T, n, D]
    std::map<int, std::vector<std::int32_t>> picks; // layer -> [T, K] ascending, -1 (none) first
};

// Allocates state for the sequence (replacing the session's) and runs it. Weights must be loaded. Throws Failure.
Score score(BackendSession& session, const model::Geometry& geometry, const lower::WeightTable& weights,
            const std::vector<std::int32_t>& tokens, const ScoreOptions& options);

} // namespace dsv4::runtime
