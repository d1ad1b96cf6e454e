// Cards: lineage, draft, precision and encoding are decided from what is there, and contradictions are refused.
#include "core/model/card.hpp"
#include "core/model/expected_tensors.hpp"
#include "tests/checkpoint/support.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

#include <deque>

using namespace dsv4;
using namespace dsv4::test;
using model::DraftKind;
using model::Encoding;
using model::ExpertPrecision;
using model::Lineage;

namespace {

// A checkpoint as make_card sees it, to be bent by the tests.
struct Fake {
    std::string config;
    std::deque<model::ExpectedTensor> tensors;
    std::size_t shards = 1;
    std::string encoder_name, encoder_text;

    Fake(std::string text, const model::WeightOptions& options) : config(std::move(text)) {
        for (auto& t : model::expected_tensors(geometry_of(config), options)) tensors.push_back(std::move(t));
    }
    void erase_prefix(std::string_view prefix) {
        std::erase_if(tensors, [&](const auto& t) { return t.name.starts_with(prefix); });
    }
    Result<model::ModelCard> card() const {
        std::vector<model::TensorFact> facts;
        for (const auto& t : tensors) facts.push_back({t.name, t.dtype, t.shape, t.bytes()});
        return model::make_card({config, "config.json", facts, shards, encoder_name, encoder_text});
    }
    std::string error() const {
        const auto result = card();
        return result.ok() ? "accepted" : result.error().message;
    }
};

Fake flash_0731() { return {flash_0731_config(), {.draft = DraftKind::dspark}}; }
Fake preview() { return {preview_config(), {.draft = DraftKind::mtp}}; }

const std::string encoder_0731 = "MAX = 'Reasoning Effort: Beyond maximum \xE2\x80\x94 exhaustive, relentless'";
const std::string encoder_preview = "MAX = 'Reasoning Effort: Absolute maximum with no shortcuts permitted.'";

} // namespace

TEST_CASE("0731: draft, precision, totals") {
    Fake fake = flash_0731();
    fake.shards = 48;
    const model::ModelCard card = fake.card().value();
    CHECK(card.lineage == Lineage::flash_0731);
    CHECK_THAT(card.lineage_reason, ContainsSubstring("48 shards; weak evidence"));
    CHECK(card.draft == DraftKind::dspark);
    CHECK(card.draft_stages == 3);
    CHECK(card.experts == ExpertPrecision::fp4);
    CHECK(card.draft_experts == ExpertPrecision::fp4);
    CHECK(card.encoding == Encoding::v4_0731);
    CHECK(card.total.tensors == 72317);
    CHECK(card.total.bytes == 166878536440);
    CHECK(card.total.parameters == 284332240471 + 19845850983);
    const auto& routed = card.by_group[static_cast<std::size_t>(model::Group::routed_experts)];
    CHECK(routed.tensors == 66048);
    CHECK(routed.parameters == 277025390592);
    CHECK(routed.bytes == 147169738752);
    CHECK(card.by_group[static_cast<std::size_t>(model::Group::draft)].bytes == 10862838300);
    CHECK(model::expected_tensors(card.geometry, card.weight_options()).size() == 72317);
}

TEST_CASE("preview: an MTP draft, although num_nextn_predict_layers is 1 in both releases") {
    const model::ModelCard card = preview().card().value();
    CHECK(card.geometry.num_nextn_predict_layers == 1);
    CHECK(card.lineage == Lineage::preview);
    CHECK(card.draft == DraftKind::mtp);
    CHECK(card.draft_stages == 1);
    CHECK(card.encoding == Encoding::v4_preview);
    CHECK(card.total.tensors == 69187);
    CHECK(card.total.bytes == 159609485896);
}

TEST_CASE("the shipped encoder tells 0731 from preview weights with a DSpark draft") {
    Fake fake = flash_0731();
    fake.encoder_name = "encoding/encoding_dsv4.py";
    fake.encoder_text = encoder_0731;
    CHECK(fake.card()->lineage == Lineage::flash_0731);
    CHECK(fake.card()->encoding == Encoding::v4_0731);
    fake.encoder_text = "MAX = 'Reasoning Effort: Beyond maximum \\u2014 exhaustive'";
    CHECK(fake.card()->lineage == Lineage::flash_0731);
    fake.encoder_text = encoder_preview;
    CHECK(fake.card()->lineage == Lineage::dspark_preview);
    CHECK(fake.card()->encoding == Encoding::v4_preview);
    CHECK_THAT(fake.card()->encoding_reason, ContainsSubstring("encoding/encoding_dsv4.py does not hold"));
    fake.encoder_name.clear();
    fake.encoder_text.clear();
    fake.shards = 46;
    CHECK(fake.card()->lineage == Lineage::dspark_preview);
    fake.shards = 7;
    CHECK(fake.card()->lineage == Lineage::custom);
    CHECK_THAT(fake.card()->lineage_reason, ContainsSubstring("nothing here tells 0731 from the preview"));
    CHECK(fake.card()->encoding == Encoding::v4_0731);
}

TEST_CASE("base, pro and custom models") {
    Fake base{preview_config(), {.experts = ExpertPrecision::fp8}};
    auto config = nlohmann::json::parse(base.config);
    config.erase("expert_dtype");
    base.config = config.dump();
    CHECK(base.card()->lineage == Lineage::base);
    CHECK(base.card()->draft == DraftKind::none);
    CHECK(base.card()->experts == ExpertPrecision::fp8);

    config["hidden_size"] = 7168;
    config["num_hidden_layers"] = 61;
    config["num_attention_heads"] = 128;
    config["q_lora_rank"] = 1536;
    config["o_groups"] = 16;
    config["n_routed_experts"] = 384;
    config["moe_intermediate_size"] = 3072;
    config["index_topk"] = 1024;
    std::vector<int> ratios{128, 128};
    while (ratios.size() < 61) ratios.push_back(ratios.size() % 2 == 0 ? 4 : 128);
    ratios.push_back(0);
    config["compress_ratios"] = ratios;
    const Fake pro{config.dump(), {.draft = DraftKind::mtp}};
    CHECK(pro.card()->lineage == Lineage::pro);
    CHECK(pro.card()->encoding == Encoding::v4_preview);
    // The published count of tensors of V4-Pro.
    CHECK(pro.card()->total.tensors == 145116);

    Fake tiny{read_file(source_dir() / "models/dsv4-tiny/config.json"), {}};
    CHECK(tiny.card()->lineage == Lineage::custom);
    CHECK_THAT(tiny.card()->lineage_reason, ContainsSubstring("hidden 256, 7 layers, 16 experts, vocabulary 2048"));
    CHECK(tiny.card()->encoding == Encoding::v4_0731);
    config = nlohmann::json::parse(tiny.config);
    config["dsv4_encoding"] = "v4-preview";
    tiny.config = config.dump();
    CHECK(tiny.card()->encoding == Encoding::v4_preview);
}

TEST_CASE("config and tensors that disagree about the draft are refused") {
    Fake fake = flash_0731();
    fake.config = preview_config();
    CHECK_THAT(fake.error(),
               ContainsSubstring("mtp.0.main_proj is the tensor of a DSpark draft, but dspark_block_size is not"));
    fake = preview();
    fake.config = flash_0731_config();
    CHECK_THAT(fake.error(),
               ContainsSubstring("dspark_block_size is stated, but mtp.0.e_proj is the tensor of an MTP draft"));
    fake = flash_0731();
    fake.erase_prefix("mtp.");
    CHECK_THAT(fake.error(),
               ContainsSubstring("dspark_block_size is stated, but no tensor mtp.0.main_proj.weight exists"));
    fake = flash_0731();
    fake.erase_prefix("mtp.1.");
    CHECK_THAT(fake.error(), ContainsSubstring("not consecutive"));
    fake = flash_0731();
    fake.erase_prefix("mtp.2.");
    CHECK_THAT(fake.error(), ContainsSubstring("compress_ratios lists 3 draft layers, the tensors hold 2 stages"));
    fake = preview();
    fake.erase_prefix("mtp.0.e_proj");
    CHECK_THAT(fake.error(), ContainsSubstring("neither mtp.0.e_proj (MTP) nor mtp.0.main_proj (DSpark)"));
    fake = preview();
    fake.tensors.push_back({"mtp.0.main_proj.weight", model::Dtype::f8_e4m3, {4096, 12288}, model::Group::draft});
    CHECK_THAT(fake.error(), ContainsSubstring("both mtp.0.e_proj (MTP) and mtp.0.main_proj (DSpark)"));
    fake = preview();
    fake.tensors.push_back({"mtp.x.norm.weight", model::Dtype::bf16, {4096}, model::Group::draft});
    CHECK_THAT(fake.error(), ContainsSubstring("tensor mtp.x.norm.weight does not belong to a numbered draft stage"));
}

TEST_CASE("draft stages that the config does not list cannot make the list of weights unbounded") {
    auto config = nlohmann::json::parse(preview_config());
    config["num_hidden_layers"] = 1;
    config["num_hash_layers"] = 0;
    config["n_routed_experts"] = 65536;
    config["compress_ratios"] = {0};
    Fake fake{preview_config(), {.draft = DraftKind::mtp}};
    fake.config = config.dump();
    CHECK(fake.card().ok());
    for (const char* stage : {"1", "2", "3"})
        fake.tensors.push_back(
            {"mtp." + std::string(stage) + ".norm.weight", model::Dtype::bf16, {4096}, model::Group::draft});
    CHECK_THAT(fake.error(),
               ContainsSubstring("holds 4 draft stages, which with its layers have more than 262144 experts"));
}

TEST_CASE("expert precision comes from the tensors") {
    Fake fake = preview();
    for (auto& t : fake.tensors)
        if (t.name.starts_with("layers.") && t.name.find(".ffn.experts.") != std::string::npos &&
            t.name.ends_with(".weight"))
            t.dtype = model::Dtype::u8;
    CHECK(fake.card()->experts == ExpertPrecision::nvfp4);
    CHECK(fake.card()->draft_experts == ExpertPrecision::fp4);
    CHECK(fake.card()->lineage == Lineage::preview);
    for (auto& t : fake.tensors)
        if (t.name == "layers.7.ffn.experts.9.w2.weight") t.dtype = model::Dtype::f8_e4m3;
    CHECK_THAT(fake.error(),
               ContainsSubstring("routed experts mix precisions: layers.0.ffn.experts.0.w1.weight is nvfp4, "
                                 "layers.7.ffn.experts.9.w2.weight is fp8"));
    Fake fp8{preview_config(), {.draft = DraftKind::mtp, .experts = ExpertPrecision::fp8}};
    CHECK_THAT(fp8.error(), ContainsSubstring("states expert_dtype \"fp4\", but the routed experts are stored as fp8"));
}
