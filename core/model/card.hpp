// What a checkpoint is: geometry, lineage of the weights, draft module, precision, prompt encoding and totals, each
// decided from what the directory holds and with the reason kept.
#pragma once

#include "core/model/dtype.hpp"
#include "core/model/geometry.hpp"
#include "core/model/weights.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::model {

// Lineage belongs to the parameters, not to a repository's name: an NVFP4 conversion of the preview is `preview`.
enum class Lineage : std::uint8_t {
    preview,        // V4-Flash, April 2026
    flash_0731,     // V4-Flash-0731: retrained, with a DSpark draft
    dspark_preview, // preview weights with a DSpark draft added
    base,           // V4-Flash-Base: pre-training only, FP8 experts, no draft
    pro,
    custom, // tiny models, other shapes, and released shapes whose lineage nothing tells
};
std::string_view lineage_name(Lineage lineage) noexcept; // "preview", "0731", "dspark-preview", ...

enum class Encoding : std::uint8_t { v4_preview, v4_0731 };
std::string_view encoding_name(Encoding encoding) noexcept; // "v4-preview", "v4-0731"

struct Total {
    std::int64_t tensors = 0;
    std::int64_t parameters = 0; // logical: two for an FP4 byte, none for scales and for the token-to-expert tables
    std::int64_t bytes = 0;
};

struct ModelCard {
    Geometry geometry;
    Family family = Family::custom;
    Lineage lineage = Lineage::custom;
    std::string lineage_reason;
    DraftKind draft = DraftKind::none;
    int draft_stages = 0; // blocks under mtp.*
    std::string draft_reason;
    ExpertPrecision experts = ExpertPrecision::unknown;
    ExpertPrecision draft_experts = ExpertPrecision::unknown; // unknown where there is no draft
    Encoding encoding = Encoding::v4_0731;
    std::string encoding_reason;
    std::string config_sha256;               // of the text of config.json, hexadecimal
    std::array<Total, group_count> by_group; // indexed by Group; everything under mtp.* counts as Group::draft
    Total total;

    // What weights() needs to list this checkpoint.
    WeightOptions weight_options() const;
};

// One tensor of the checkpoint, as its shard's header states it.
struct TensorFact {
    std::string_view name;
    Dtype dtype = Dtype::bf16;
    std::span<const std::int64_t> shape;
    std::int64_t bytes = 0;
};

struct CardInput {
    std::string_view config_json;        // text of config.json
    std::string config_name;             // how messages name it
    std::span<const TensorFact> tensors; // any order
    std::size_t shards = 0;
    std::string encoder_name; // the prompt encoder shipped under encoding/, empty where there is none
    std::string encoder_text;
};

// Errors: those of parse_geometry; a draft module that contradicts the dspark_* fields; experts of mixed precision.
// `num_nextn_predict_layers` is never used: released files state 1 beside three draft stages.
Result<ModelCard> make_card(const CardInput& input);

// The group of a tensor by its name in the released layout; anything under mtp.* is Group::draft.
Group tensor_group(std::string_view tensor_name) noexcept;

} // namespace dsv4::model
