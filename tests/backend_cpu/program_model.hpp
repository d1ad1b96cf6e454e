// A checkpoint in the released layout as a Program and its weights, written for tests.
#pragma once

#include <string>
#include <vector>

#include "client.hpp"
#include "tensors.hpp"

namespace dsv4::test {

struct ProgramModel {
    program::Program program;
    std::vector<WeightData> weights;
    std::size_t layers = 0, vocabulary = 0, stream_width = 0, top_k = 0;
};

// Outputs "streams.L", "picks.L" and "logits" unless `sampling`, which ends in mask and sample instead.
ProgramModel program_model(const std::string& directory, dsv4_precision precision, bool sampling);

} // namespace dsv4::test
