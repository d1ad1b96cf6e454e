// Every weight of a model by its canonical name: the one list that the lowering, the loader and the checks share.
#pragma once

#include "core/model/geometry.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::model {

// How the elements of one weight are stored. Sizes below are of the released files; all data is row-major.
enum class Format : std::uint8_t {
    bf16,
    f32,
    i32,
    i64,
    fp8_block128, // E4M3 [out,in]; scale E8M0 [ceil(out/128), ceil(in/128)], laid over the whole matrix
    fp4_block32,  // two E2M1 a byte, [out, in/2], the low nibble is the even column; scale E8M0 [out, ceil(in/32)]
};
std::string_view format_name(Format format) noexcept;

// What a weight is for. `draft` holds what only a draft module has (projections, Markov and confidence heads); its
// blocks carry the group of the main layer's counterpart and Weight::draft.
enum class Group : std::uint8_t {
    embedding,
    head,
    attention,
    compressor,
    indexer, // with the indexer's own compressor
    router,
    routed_experts,
    shared_experts,
    hyper_connections,
    norms,
    draft,
};
inline constexpr std::size_t group_count = 11;
std::string_view group_name(Group group) noexcept;

enum class DraftKind : std::uint8_t { none, mtp, dspark };
std::string_view draft_kind_name(DraftKind kind) noexcept;

// How routed experts are stored.
enum class ExpertPrecision : std::uint8_t { fp4, fp8, nvfp4, int4, bf16, unknown };
std::string_view expert_precision_name(ExpertPrecision precision) noexcept;

struct Weight {
    std::string name; // canonical: the released name without ".weight", as "layers.3.attn.wq_a"
    Format format = Format::bf16;
    std::vector<std::int64_t> dims; // logical, [out, in] for a matrix
    std::string data_tensor;        // name in the checkpoint
    std::string scale_tensor;       // empty where the format has no scale
    Group group = Group::norms;
    bool draft = false;
    int layer = -1;  // main layer, or draft stage where `draft`; -1 for the root
    int expert = -1; // routed expert, or -1

    std::int64_t elements() const; // logical
    Group accounting_group() const { return draft ? Group::draft : group; }
};

struct WeightOptions {
    DraftKind draft = DraftKind::none;
    int draft_stages =
        0; // blocks under mtp.*; 0 takes what the geometry's compress_ratios list, or 1 (mtp) or 3 (dspark)
    ExpertPrecision experts = ExpertPrecision::fp4;       // fp4 or fp8
    ExpertPrecision draft_experts = ExpertPrecision::fp4; // fp4 or fp8
};

// The weights in a fixed order: embedding, layers, final norm and heads, draft stages. Throws Failure(unsupported) for
// an expert precision without a Format and Failure(invalid) for a dspark draft without dspark fields.
std::vector<Weight> weights(const Geometry& geometry, const WeightOptions& options = {});

} // namespace dsv4::model
