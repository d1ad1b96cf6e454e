// `checkpoint inspect` shows the card, exact totals, shards and findings.
#include "core/checkpoint/inspect.hpp"
#include "tests/checkpoint/support.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace dsv4;
using namespace dsv4::test;
using checkpoint::Checkpoint;

TEST_CASE("text for people") {
    const Checkpoint c = Checkpoint::open(source_dir() / "tests/vectors/model/golden-a").value();
    const std::string text = checkpoint::inspect_text(c);
    CHECK_THAT(text, ContainsSubstring(
                         "lineage            custom (no published model has these dimensions: hidden 256, 5 layers, "
                         "8 experts, vocabulary 1024)"));
    CHECK_THAT(text, ContainsSubstring("draft              none (no mtp.* tensor exists)"));
    CHECK_THAT(text, ContainsSubstring("5 (2 of ratio 0, 2 of ratio 4, 1 of ratio 128; 2 hash-routed)"));
    CHECK_THAT(text, ContainsSubstring("model-00002-of-00002.safetensors"));
    CHECK_THAT(text, ContainsSubstring("8,690,446"));
    CHECK_THAT(text, ContainsSubstring("none: every tensor of this geometry is here"));
}

TEST_CASE("JSON for programs") {
    const Checkpoint c = Checkpoint::open(source_dir() / "tests/vectors/model/golden-a").value();
    const auto report = nlohmann::json::parse(checkpoint::inspect_json(c));
    CHECK(report["loadable"] == true);
    CHECK(report["model"]["experts"] == "fp4");
    CHECK(report["model"]["encoding"] == "v4-0731");
    CHECK(report["geometry"]["compress_ratios"] == nlohmann::json({0, 0, 4, 128, 4}));
    CHECK(report["totals"]["total"]["tensors"] == 417);
    CHECK(report["totals"]["total"]["bytes"] == 8690446);
    // 5 layers of 8 experts, each three matrices of 128 x 256 values at 4 bits and a scale byte per 32.
    CHECK(report["totals"]["routed_experts"]["parameters"] == 5 * 8 * 3 * 128 * 256);
    CHECK(report["totals"]["routed_experts"]["bytes"] == 5 * 8 * 3 * (128 * 256 / 2 + 128 * 256 / 32));
    REQUIRE(report["shards"].size() == 2);
    CHECK(report["shards"][0]["bytes"] == 4838700);
    CHECK(report["shards"][1]["bytes"] == 3893170);
    CHECK(report["findings"].empty());
}

TEST_CASE("findings are listed, and counted beyond a limit") {
    const TempDir dir;
    for (const char* name : {"config.json", "model.safetensors"})
        std::filesystem::copy_file(source_dir() / "models/dsv4-tiny" / name, dir.path() / name);
    replace_in_file(dir.path() / "config.json", "\"vocab_size\": 2048", "\"vocab_size\": 2000");
    const Checkpoint c = Checkpoint::open(dir.path()).value();
    // embed, head and two token tables have another number of rows.
    const auto report = nlohmann::json::parse(checkpoint::inspect_json(c));
    CHECK(report["loadable"] == false);
    REQUIRE(report["findings"].size() == 4);
    CHECK(report["findings"][0]["severity"] == "error");
    CHECK(report["findings"][0]["message"] ==
          "tensor embed.weight in shard model.safetensors has shape [2048,256]; expected [2000,256]");
    CHECK_THAT(checkpoint::inspect_text(c, 3), ContainsSubstring("  and 1 more\n"));
    CHECK_THAT(checkpoint::inspect_text(c), ContainsSubstring("    fix: use the config.json that was published"));
}
