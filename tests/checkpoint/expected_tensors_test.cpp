// The expected tensors of the released models equal the published inventories: names, types, shapes, counts, bytes.
#include "core/model/card.hpp"
#include "core/model/expected_tensors.hpp"
#include "tests/checkpoint/support.hpp"
#include "tests/support/catch.hpp"

#include <array>
#include <map>
#include <sstream>

using namespace dsv4;
using namespace dsv4::test;
using model::DraftKind;
using model::Group;

namespace {

std::vector<model::ExpectedTensor> flash_0731() {
    return model::expected_tensors(geometry_of(flash_0731_config()), {.draft = DraftKind::dspark});
}
std::vector<model::ExpectedTensor> preview() {
    return model::expected_tensors(geometry_of(preview_config()), {.draft = DraftKind::mtp});
}

std::int64_t bytes_of(const std::vector<model::ExpectedTensor>& list) {
    std::int64_t total = 0;
    for (const auto& t : list) total += t.bytes();
    return total;
}

std::vector<std::string> split(const std::string& line, char at) {
    std::vector<std::string> cells;
    std::stringstream in(line);
    for (std::string cell; std::getline(in, cell, at);) cells.push_back(cell);
    return cells;
}

// "layers.17.ffn.experts.3.w1.scale" as "layers.{L}.ffn.experts.{E}.w1.scale".
std::string pattern_of(const std::string& name) {
    auto parts = split(name, '.');
    if (parts[0] == "layers") parts[1] = "{L}";
    for (std::size_t i = 1; i < parts.size(); ++i)
        if (parts[i - 1] == "experts") parts[i] = "{E}";
    std::string out;
    for (const auto& p : parts) {
        if (!out.empty()) out += '.';
        out += p;
    }
    return out;
}

struct Row {
    std::int64_t count = 0, bytes = 0;
    bool operator==(const Row&) const = default;
};
// By pattern, type and shape, since one pattern has two shapes (compressors of ratio 4 and 128).
using Inventory = std::map<std::array<std::string, 3>, Row>;

Inventory inventory_of(const std::vector<model::ExpectedTensor>& list) {
    Inventory out;
    for (const auto& t : list) {
        std::string shape;
        for (const auto d : t.shape) {
            if (!shape.empty()) shape += 'x';
            shape += std::to_string(d);
        }
        Row& row = out[{pattern_of(t.name), std::string(model::dtype_name(t.dtype)), shape}];
        ++row.count;
        row.bytes += t.bytes();
    }
    return out;
}

Inventory published(const std::string& draft) {
    Inventory out;
    std::stringstream in(read_file(source_dir() / "tests/checkpoint/data/tensors.tsv"));
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
        const auto cells = split(line, '\t');
        if (cells[0] != "all" && cells[0] != draft) continue;
        Row& row = out[{cells[1], cells[4], cells[5]}];
        row.count += std::stoll(cells[3]);
        row.bytes += std::stoll(cells[7]);
    }
    return out;
}

void check_equal(const Inventory& ours, const Inventory& theirs) {
    for (const auto& [key, row] : theirs) {
        INFO(key[0] << " " << key[1] << " " << key[2]);
        REQUIRE(ours.contains(key));
        CHECK(ours.at(key).count == row.count);
        CHECK(ours.at(key).bytes == row.bytes);
    }
    for (const auto& [key, row] : ours) {
        INFO(key[0] << " " << key[1] << " " << key[2]);
        CHECK(theirs.contains(key));
    }
}

} // namespace

TEST_CASE("totals of the released checkpoints") {
    CHECK(flash_0731().size() == 72317);
    CHECK(bytes_of(flash_0731()) == 166878536440);
    CHECK(preview().size() == 69187);
    CHECK(bytes_of(preview()) == 159609485896);
    const auto main_only = model::expected_tensors(geometry_of(preview_config()));
    CHECK(main_only.size() == 67612);
    CHECK(bytes_of(main_only) == 156015698140);
}

TEST_CASE("every row of the published tensor table, and nothing else") {
    check_equal(inventory_of(flash_0731()), published("0731/DSpark"));
    check_equal(inventory_of(preview()), published("preview"));
}

TEST_CASE("totals by group, as published for the main model") {
    struct Expected {
        Group group;
        std::int64_t tensors, parameters, bytes;
    };
    const Expected rows[] = {
        {Group::routed_experts, 66048, 277025390592, 147169738752},
        {Group::attention, 559, 4599123136, 4599478144},
        {Group::shared_experts, 258, 1082130432, 1082196480},
        {Group::embedding, 1, 529530880, 1059061760},
        {Group::head, 1, 529530880, 1059061760},
        {Group::compressor, 164, 261464576, 525722624},
        {Group::indexer, 147, 225730176, 275353344},
        {Group::router, 86, 45099008, 108834816},
        {Group::hyper_connections, 261, 33884439, 135537756},
        {Group::norms, 87, 356352, 712704},
        {Group::draft, 4705, 19845850983, 10862838300},
    };
    const auto list = model::weights(geometry_of(flash_0731_config()), {.draft = DraftKind::dspark});
    for (const Expected& row : rows) {
        INFO(model::group_name(row.group));
        std::int64_t tensors = 0, parameters = 0, bytes = 0;
        for (const auto& w : list) {
            if (w.accounting_group() != row.group) continue;
            if (w.format != model::Format::i64) parameters += w.elements();
            bytes += model::data_tensor(w).bytes();
            ++tensors;
            if (w.scale_tensor.empty()) continue;
            bytes += model::scale_tensor(w).bytes();
            ++tensors;
        }
        CHECK(tensors == row.tensors);
        CHECK(parameters == row.parameters);
        CHECK(bytes == row.bytes);
    }
}

TEST_CASE("tensors and bytes of single layers and draft stages") {
    std::map<std::string, Row> by_block;
    for (const auto& t : flash_0731()) {
        const auto parts = split(t.name, '.');
        if (parts.size() < 2) continue;
        Row& row = by_block[parts[0] + "." + parts[1]];
        ++row.count;
        row.bytes += t.bytes();
    }
    CHECK(by_block["layers.0"] == Row{1565, 3566148952});
    CHECK(by_block["layers.1"] == Row{1565, 3566148952});
    CHECK(by_block["layers.2"] == Row{1576, 3596055640});
    CHECK(by_block["layers.3"] == Row{1569, 3568596312});
    CHECK(by_block["layers.4"] == Row{1576, 3589851224});
    CHECK(by_block["layers.42"] == Row{1576, 3589851224});
    CHECK(by_block["mtp.0"] == Row{1568, 3610287448});
    CHECK(by_block["mtp.1"] == Row{1565, 3559944536});
    CHECK(by_block["mtp.2"] == Row{1572, 3692606316});
}

TEST_CASE("canonical names drop .weight and fold the scale") {
    const auto list = model::weights(geometry_of(flash_0731_config()), {.draft = DraftKind::dspark});
    std::map<std::string, const model::Weight*> by_name;
    for (const auto& w : list) CHECK(by_name.emplace(w.name, &w).second);
    const model::Weight& wq_a = *by_name.at("layers.3.attn.wq_a");
    CHECK(wq_a.format == model::Format::fp8_block128);
    CHECK(wq_a.dims == std::vector<std::int64_t>{1024, 4096});
    CHECK(wq_a.data_tensor == "layers.3.attn.wq_a.weight");
    CHECK(wq_a.scale_tensor == "layers.3.attn.wq_a.scale");
    CHECK(wq_a.layer == 3);
    CHECK(wq_a.expert == -1);
    const model::Weight& w2 = *by_name.at("mtp.1.ffn.experts.255.w2");
    CHECK(w2.format == model::Format::fp4_block32);
    CHECK(w2.dims == std::vector<std::int64_t>{4096, 2048});
    CHECK(w2.draft);
    CHECK(w2.layer == 1);
    CHECK(w2.expert == 255);
    CHECK(w2.group == Group::routed_experts);
    CHECK(w2.accounting_group() == Group::draft);
    CHECK(by_name.at("layers.2.hc_attn_fn")->data_tensor == "layers.2.hc_attn_fn");
    CHECK(by_name.at("layers.2.ffn.gate.tid2eid")->format == model::Format::i64);
    CHECK(by_name.at("embed")->layer == -1);
}

TEST_CASE("short blocks: scales of widths that are not multiples of the block") {
    model::Geometry g = geometry_of(flash_0731_config());
    g.hidden_size = 200;
    g.moe_intermediate_size = 70;
    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (const auto& t : model::expected_tensors(g)) shapes[t.name] = t.shape;
    using Shape = std::vector<std::int64_t>;
    CHECK(shapes["layers.0.ffn.experts.0.w1.weight"] == Shape{70, 100});
    CHECK(shapes["layers.0.ffn.experts.0.w1.scale"] == Shape{70, 7});
    CHECK(shapes["layers.0.ffn.experts.0.w2.weight"] == Shape{200, 35});
    CHECK(shapes["layers.0.ffn.experts.0.w2.scale"] == Shape{200, 3});
    CHECK(shapes["layers.0.ffn.shared_experts.w1.scale"] == Shape{1, 2});
}

TEST_CASE("fp8 experts carry block scales, other precisions are refused by name") {
    const model::Geometry g = geometry_of(preview_config());
    std::map<std::string, model::ExpectedTensor> tensors;
    for (auto& t : model::expected_tensors(g, {.experts = model::ExpertPrecision::fp8})) tensors[t.name] = t;
    CHECK(tensors["layers.0.ffn.experts.0.w1.weight"].dtype == model::Dtype::f8_e4m3);
    CHECK(tensors["layers.0.ffn.experts.0.w1.scale"].shape == std::vector<std::int64_t>{16, 32});
    CHECK_THROWS_WITH(model::weights(g, {.experts = model::ExpertPrecision::nvfp4}),
                      ContainsSubstring("routed experts stored as nvfp4 cannot be read"));
    CHECK_THROWS_WITH(model::weights(g, {.draft = DraftKind::dspark}), ContainsSubstring("needs the dspark_* fields"));
}

TEST_CASE("the group of a tensor name agrees with the group of its weight") {
    std::vector<std::string> different;
    for (const auto& list : {flash_0731(), preview()})
        for (const auto& t : list)
            if (model::tensor_group(t.name) != t.group) different.push_back(t.name);
    CHECK(different == std::vector<std::string>{});
}
