// The tensors that a checkpoint in the released layout must hold for a list of weights.
#pragma once

#include "core/model/dtype.hpp"
#include "core/model/weights.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dsv4::model {

struct ExpectedTensor {
    std::string name;
    Dtype dtype = Dtype::bf16;
    std::vector<std::int64_t> shape; // as stored: FP4 data is I8 [out, ceil(in/2)]
    Group group = Group::norms;      // Weight::accounting_group
    std::int64_t bytes() const;
};

// The tensor of the data and, where the format has one, of the scale.
ExpectedTensor data_tensor(const Weight& weight);
ExpectedTensor scale_tensor(const Weight& weight);

// Every tensor of `list`, data before scale, in the order of the weights.
std::vector<ExpectedTensor> expected_tensors(const std::vector<Weight>& list);
std::vector<ExpectedTensor> expected_tensors(const Geometry& geometry, const WeightOptions& options = {});

} // namespace dsv4::model
