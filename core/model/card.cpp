// Decides what a checkpoint is from its config, its tensor names and the files beside them.
#include "core/model/card.hpp"

#include <sodium/crypto_hash_sha256.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>

namespace dsv4::model {
namespace {

// SHA-256 of the config.json published with V4-Flash-0731 (1,888 bytes).
constexpr std::string_view config_0731_sha256 = "6c8f3d2d3b48707541b88f32f22ef3f0f8a6b57d8523281e2b8d3cdb0ae9a023";
// The opening of the effort text that 0731 added (with an em dash), as Python source may spell it.
constexpr std::string_view effort_0731 = "Beyond maximum \xE2\x80\x94";
constexpr std::string_view effort_0731_escaped = "Beyond maximum \\u2014";

std::string sha256_hex(std::string_view text) {
    std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
    crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
    std::string hex;
    for (const unsigned char byte : digest) {
        hex += "0123456789abcdef"[byte >> 4];
        hex += "0123456789abcdef"[byte & 15];
    }
    return hex;
}

// The stage of "mtp.<stage>.<rest>", or -1.
int draft_stage(std::string_view name) noexcept {
    if (!name.starts_with("mtp.")) return -1;
    int stage = -1;
    const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), stage);
    return error == std::errc{} && end != name.data() + name.size() && *end == '.' ? stage : -1;
}

bool contains(std::string_view text, std::string_view part) noexcept {
    return text.find(part) != std::string_view::npos;
}

void decide_draft(const CardInput& input, ModelCard& card) {
    bool mtp = false, main_proj = false;
    std::set<int> stages;
    std::string_view stray;
    for (const TensorFact& t : input.tensors) {
        if (!t.name.starts_with("mtp.")) continue;
        const int stage = draft_stage(t.name);
        if (stage < 0 || stage >= 64)
            stray = t.name;
        else
            stages.insert(stage);
        mtp = mtp || t.name.starts_with("mtp.0.e_proj.");
        main_proj = main_proj || t.name.starts_with("mtp.0.main_proj.");
    }
    const bool stated = card.geometry.dspark.has_value();
    const auto disagree = [&](const std::string& what, const std::string& fix) {
        throw Failure(Code::corrupt, input.config_name + " and the tensors disagree about the draft module: " + what,
                      fix);
    };
    if (!stray.empty())
        throw Failure(Code::corrupt, "tensor " + std::string(stray) + " does not belong to a numbered draft stage",
                      "expected names of the form mtp.0.<rest>");
    if (mtp && main_proj)
        throw Failure(Code::corrupt, "the checkpoint holds both mtp.0.e_proj (MTP) and mtp.0.main_proj (DSpark)",
                      "keep the tensors of one draft module");
    if (stated && mtp)
        disagree("dspark_block_size is stated, but mtp.0.e_proj is the tensor of an MTP draft",
                 "use the config.json that was published with these weights");
    if (stated && !main_proj)
        disagree("dspark_block_size is stated, but no tensor mtp.0.main_proj.weight exists",
                 "fetch the draft's shards, or remove the dspark_* fields to serve without a draft");
    if (!stated && main_proj)
        disagree("mtp.0.main_proj is the tensor of a DSpark draft, but dspark_block_size is not stated",
                 "use the config.json that was published with these weights");
    if (!stages.empty() && !mtp && !main_proj)
        throw Failure(Code::corrupt,
                      "the checkpoint holds mtp.* tensors but neither mtp.0.e_proj (MTP) nor mtp.0.main_proj (DSpark)",
                      "fetch the missing draft tensors, or remove all mtp.* tensors");
    card.draft_stages = static_cast<int>(stages.size());
    if (!stages.empty() && *stages.rbegin() + 1 != card.draft_stages)
        throw Failure(Code::corrupt, "draft stages mtp.0 to mtp." + std::to_string(*stages.rbegin()) +
                                         " are not consecutive: only " + std::to_string(card.draft_stages) +
                                         " of them exist");
    if ((card.geometry.num_hidden_layers + card.draft_stages) * card.geometry.n_routed_experts > max_total_experts)
        throw Failure(Code::corrupt, "the checkpoint holds " + std::to_string(card.draft_stages) +
                                         " draft stages, which with its layers have more than " +
                                         std::to_string(max_total_experts) + " experts");
    const auto listed = static_cast<int>(card.geometry.draft_ratios.size());
    if (card.draft_stages > 0 && listed > 0 && listed != card.draft_stages)
        disagree("compress_ratios lists " + std::to_string(listed) + " draft layers, the tensors hold " +
                     std::to_string(card.draft_stages) + " stages",
                 "use the config.json that was published with these weights");
    card.draft = main_proj ? DraftKind::dspark : mtp ? DraftKind::mtp : DraftKind::none;
    card.draft_reason = main_proj ? "dspark_block_size is stated and mtp.0.main_proj exists"
                        : mtp     ? "mtp.0.e_proj exists and no dspark_* field is stated"
                                  : "no mtp.* tensor exists";
}

// The precision that one tensor of a routed expert reveals; unknown for tensors that reveal none (scales).
ExpertPrecision revealed(const TensorFact& t) noexcept {
    if (t.name.ends_with(".weight_packed")) return ExpertPrecision::int4;
    if (!t.name.ends_with(".weight")) return ExpertPrecision::unknown;
    switch (t.dtype) {
    case Dtype::i8: return ExpertPrecision::fp4;
    case Dtype::u8: return ExpertPrecision::nvfp4;
    case Dtype::f8_e4m3: return ExpertPrecision::fp8;
    case Dtype::bf16: return ExpertPrecision::bf16;
    default: return ExpertPrecision::unknown;
    }
}

ExpertPrecision expert_precision(const CardInput& input, bool draft) {
    ExpertPrecision precision = ExpertPrecision::unknown;
    std::string_view first;
    for (const TensorFact& t : input.tensors) {
        if (t.name.starts_with("mtp.") != draft || !contains(t.name, ".ffn.experts.")) continue;
        const ExpertPrecision p = revealed(t);
        if (p == ExpertPrecision::unknown) continue;
        if (first.empty()) {
            precision = p;
            first = t.name;
        } else if (p != precision) {
            throw Failure(
                Code::corrupt,
                "routed experts mix precisions: " + std::string(first) + " is " +
                    std::string(expert_precision_name(precision)) + ", " + std::string(t.name) + " is " +
                    std::string(expert_precision_name(p)),
                "all routed experts of the main model must share one precision, and so must those of the draft");
        }
    }
    return precision;
}

void decide_precision(const CardInput& input, ModelCard& card) {
    card.experts = expert_precision(input, false);
    card.draft_experts = expert_precision(input, true);
    const std::string& stated = card.geometry.expert_dtype;
    if ((stated == "fp4" && card.experts == ExpertPrecision::fp8) ||
        (stated == "fp8" && card.experts == ExpertPrecision::fp4))
        throw Failure(Code::corrupt,
                      input.config_name + " states expert_dtype \"" + stated +
                          "\", but the routed experts are stored as " +
                          std::string(expert_precision_name(card.experts)),
                      "use the config.json that was published with these weights");
}

bool encoder_is_0731(const CardInput& input) {
    return contains(input.encoder_text, effort_0731) || contains(input.encoder_text, effort_0731_escaped);
}

void decide_flash_dspark_lineage(const CardInput& input, ModelCard& card) {
    if (card.config_sha256 == config_0731_sha256) {
        card.lineage = Lineage::flash_0731;
        card.lineage_reason = "config.json is byte for byte the one published with V4-Flash-0731";
    } else if (!input.encoder_name.empty()) {
        const bool is_0731 = encoder_is_0731(input);
        card.lineage = is_0731 ? Lineage::flash_0731 : Lineage::dspark_preview;
        card.lineage_reason =
            input.encoder_name + (is_0731 ? " holds" : " does not hold") + " the effort texts of 0731";
    } else if (input.shards == 48 || input.shards == 46) {
        card.lineage = input.shards == 48 ? Lineage::flash_0731 : Lineage::dspark_preview;
        card.lineage_reason = "V4-Flash with a DSpark draft in " + std::to_string(input.shards) +
                              " shards; weak evidence, the prompt encoder is not in the directory";
    } else {
        card.lineage_reason =
            "V4-Flash with a DSpark draft, but nothing here tells 0731 from the preview: config.json is "
            "not the published one, no encoder is shipped, and " +
            std::to_string(input.shards) + " shards match neither";
    }
}

void decide_lineage(const CardInput& input, ModelCard& card) {
    const Geometry& g = card.geometry;
    card.family = family(g);
    card.lineage = Lineage::custom;
    if (card.family == Family::pro) {
        card.lineage = Lineage::pro;
        card.lineage_reason = "the dimensions are those of V4-Pro";
    } else if (card.family == Family::custom) {
        card.lineage_reason = "no published model has these dimensions: hidden " + std::to_string(g.hidden_size) +
                              ", " + std::to_string(g.num_hidden_layers) + " layers, " +
                              std::to_string(g.n_routed_experts) + " experts, vocabulary " +
                              std::to_string(g.vocab_size);
    } else if (card.draft == DraftKind::dspark) {
        decide_flash_dspark_lineage(input, card);
    } else if (card.draft == DraftKind::mtp) {
        card.lineage = Lineage::preview;
        card.lineage_reason = "the dimensions are those of V4-Flash, and only the preview has an MTP draft";
    } else if (card.experts == ExpertPrecision::fp8) {
        card.lineage = Lineage::base;
        card.lineage_reason = "the dimensions are those of V4-Flash, with FP8 experts and no draft, as V4-Flash-Base";
    } else {
        card.lineage_reason =
            "the dimensions are those of V4-Flash, but without a draft nothing tells which release it is";
    }
}

void decide_encoding(const CardInput& input, ModelCard& card) {
    const auto set = [&](Encoding encoding, std::string reason) {
        card.encoding = encoding;
        card.encoding_reason = std::move(reason);
    };
    const std::string& stated = card.geometry.dsv4_encoding;
    if (!stated.empty())
        set(stated == "v4-0731" ? Encoding::v4_0731 : Encoding::v4_preview,
            input.config_name + " states dsv4_encoding");
    else if (!input.encoder_name.empty() && encoder_is_0731(input))
        set(Encoding::v4_0731, input.encoder_name + " holds the effort texts of 0731");
    else if (!input.encoder_name.empty())
        set(Encoding::v4_preview, input.encoder_name + " does not hold the effort texts of 0731");
    else if (card.geometry.dspark)
        set(Encoding::v4_0731, "dspark_* fields are stated and no encoder is shipped");
    else if (card.family == Family::custom)
        set(Encoding::v4_0731, "a custom model that states no dsv4_encoding takes the newest");
    else
        set(Encoding::v4_preview, "no encoder is shipped and no dspark_* field is stated");
}

bool is_scale(std::string_view name) noexcept {
    for (const std::string_view end : {".scale", ".weight_scale", ".weight_scale_2", ".input_scale", ".weight_shape"})
        if (name.ends_with(end)) return true;
    return false;
}

std::int64_t logical_parameters(const TensorFact& t) noexcept {
    if (is_scale(t.name) || t.name.ends_with(".tid2eid")) return 0;
    const std::int64_t stored = t.bytes / static_cast<std::int64_t>(width_bytes(t.dtype));
    if (t.name.ends_with(".weight_packed")) return stored * 8;
    const bool packed = t.dtype == Dtype::i8 || t.dtype == Dtype::u8;
    return packed && contains(t.name, ".ffn.experts.") ? stored * 2 : stored;
}

void add_totals(const CardInput& input, ModelCard& card) {
    for (const TensorFact& t : input.tensors) {
        const std::int64_t parameters = logical_parameters(t);
        for (Total* total : {&card.by_group[static_cast<std::size_t>(tensor_group(t.name))], &card.total}) {
            ++total->tensors;
            total->parameters += parameters;
            total->bytes += t.bytes;
        }
    }
}

constexpr std::array<std::string_view, 6> lineage_names{"preview", "0731", "dspark-preview", "base", "pro", "custom"};

} // namespace

std::string_view lineage_name(Lineage lineage) noexcept { return lineage_names[static_cast<std::size_t>(lineage)]; }

std::string_view encoding_name(Encoding encoding) noexcept {
    return encoding == Encoding::v4_0731 ? "v4-0731" : "v4-preview";
}

Group tensor_group(std::string_view name) noexcept {
    if (name.starts_with("mtp.")) return Group::draft;
    if (name == "embed.weight") return Group::embedding;
    if (name == "head.weight") return Group::head;
    if (contains(name, "hc_")) return Group::hyper_connections;
    if (contains(name, ".ffn.experts.")) return Group::routed_experts;
    if (contains(name, ".ffn.shared_experts.")) return Group::shared_experts;
    if (contains(name, ".ffn.gate.")) return Group::router;
    if (contains(name, ".attn.indexer.")) return Group::indexer;
    if (contains(name, ".attn.compressor.")) return Group::compressor;
    if (contains(name, ".attn.")) return Group::attention;
    return Group::norms;
}

WeightOptions ModelCard::weight_options() const {
    // Where no expert was seen the released precision is expected, so that the missing tensors can be named.
    const auto known = [](ExpertPrecision p) { return p == ExpertPrecision::unknown ? ExpertPrecision::fp4 : p; };
    return {draft, draft_stages, known(experts), known(draft_experts)};
}

Result<ModelCard> make_card(const CardInput& input) {
    return guard([&] {
        ModelCard card;
        card.geometry = parse_geometry(input.config_json, input.config_name).value();
        card.config_sha256 = sha256_hex(input.config_json);
        decide_draft(input, card);
        decide_precision(input, card);
        decide_lineage(input, card);
        decide_encoding(input, card);
        add_totals(input, card);
        return card;
    });
}

} // namespace dsv4::model
