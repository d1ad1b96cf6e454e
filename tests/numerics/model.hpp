// A checkpoint loaded into the CPU backend that this build made.
#pragma once

#include "core/checkpoint/checkpoint.hpp"
#include "core/host/host.hpp"
#include "core/lower/weight_table.hpp"
#include "core/plugin/instance.hpp"
#include "core/runtime/backend_session.hpp"
#include "core/runtime/score.hpp"

#include <string>

namespace dsv4::numerics {

inline const std::string golden_a = DSV4_SOURCE_DIR "/tests/vectors/model/golden-a";
// Widths that fit no block, two streams, a window shorter than a chunk, experts named twice.
inline const std::string odd_widths = DSV4_SOURCE_DIR "/tests/backend_cpu/data/odd";
inline const std::string tiny = DSV4_SOURCE_DIR "/models/dsv4-tiny";

// What a test varies about the backend. `accumulate` is the plugin's option: "f64" is bit-equal to the reference.
struct Numbers {
    const char* name;
    dsv4_precision precision;
    const char* accumulate;
};
inline constexpr Numbers score_numbers{"score", DSV4_SCORE, "f32"};
inline constexpr Numbers serve_f32{"serve, f32", DSV4_SERVE, "f32"};
inline constexpr Numbers serve_f64{"serve, f64", DSV4_SERVE, "f64"};

// Errors are Failure exceptions. One thread at a time.
class Model {
  public:
    explicit Model(const std::string& directory, const Numbers& numbers, std::uint32_t threads = 2);

    const model::Geometry& geometry() const { return checkpoint_.card().geometry; }
    const lower::WeightTable& weights() const { return weights_; }
    const Numbers& numbers() const { return numbers_; }
    runtime::BackendSession& session() { return session_; }

    // runtime::score in this model's precision.
    runtime::Score score(const std::vector<std::int32_t>& tokens, runtime::ScoreOptions options);
    // The embedding of each token, hc_mult copies: the input streams of layer 0.
    std::vector<float> embedded(const std::vector<std::int32_t>& tokens) const;

  private:
    Numbers numbers_;
    host::Host host_;
    plugin::Instance backend_;
    checkpoint::Checkpoint checkpoint_;
    lower::WeightTable weights_;
    runtime::BackendSession session_;
};

} // namespace dsv4::numerics
