// The whole model over the kernels, written for tests: layer order and states in the plainest form, one sequence.
#pragma once

#include <map>
#include <nlohmann/json.hpp>

#include "plugins/backend-cpu/kernels/attend.hpp"
#include "plugins/backend-cpu/kernels/compress.hpp"
#include "plugins/backend-cpu/kernels/experts.hpp"
#include "plugins/backend-cpu/kernels/hyper_connection.hpp"
#include "plugins/backend-cpu/kernels/numerics.hpp"
#include "plugins/backend-cpu/kernels/rope.hpp"
#include "tensors.hpp"

namespace dsv4::test {

class ReferenceModel {
  public:
    explicit ReferenceModel(const std::string& directory);

    std::size_t layers() const { return ratios_.size(); }
    std::size_t stream_width() const { return streams_ * hidden_; }
    std::size_t vocabulary() const { return vocabulary_; }
    std::size_t index_top_k() const { return top_k_; }

    // What one layer keeps of a sequence: everything, by position.
    struct LayerState {
        std::vector<float> window, u, z, entries, index_u, index_z, keys;
    };
    using State = std::vector<LayerState>;
    // Indexer choices of a layer's rows, in selection order.
    using Picks = std::map<std::size_t, std::vector<std::vector<std::int32_t>>>;

    std::vector<float> embed(std::span<const std::int32_t> ids) const;
    // Rows ids at positions first.. ; `streams` [N, n D] in and out.
    void layer(std::size_t index, std::span<const std::int32_t> ids, std::int64_t first, LayerState& state,
               std::vector<float>& streams, Picks& picks, const cpu::Numerics& numerics) const;
    std::vector<float> head(const std::vector<float>& streams, const cpu::Numerics& numerics) const;

  private:
    cpu::Matrix matrix(const std::string& name) const;
    cpu::HyperConnection site(const std::string& prefix) const;
    std::span<const float> floats(const std::string& name) const { return floats_.at(name); }

    nlohmann::json config_;
    Tensors tensors_;
    std::map<std::string, std::vector<float>> floats_;
    std::map<std::string, std::vector<std::int32_t>> tables_;
    std::vector<std::size_t> ratios_;
    std::vector<cpu::RopeTable> ropes_;
    std::size_t hidden_, streams_, heads_, head_dim_, vocabulary_, top_k_;
};

} // namespace dsv4::test
