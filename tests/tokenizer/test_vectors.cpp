// Ids and pieces against the published vectors and against the Hugging Face library, on both vocabularies.
#include "tests/tokenizer/vocabularies.hpp"

namespace dsv4::tokenizer::testing {
namespace {

void check_expected(const Tokenizer& tokenizer, const nlohmann::json& data) {
    const auto& cases = data.at("cases");
    REQUIRE(cases.size() > 100);
    for (const auto& item : cases) {
        const auto text = item.at("text").get<std::string>();
        CAPTURE(text);
        const auto ids = take(tokenizer.encode(text));
        CHECK(ids == item.at("ids").get<std::vector<TokenId>>());
        CHECK(joined_bytes(tokenizer, ids) == text);
        if (!item.contains("control_ids")) continue;
        CHECK(take(tokenizer.encode_with_control(text)) == item.at("control_ids").get<std::vector<TokenId>>());
    }
}

} // namespace

TEST_CASE("the tokenize vectors hold on the V4 vocabulary") {
    const Tokenizer tokenizer = v4();
    std::size_t seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir / "tests/vectors/encoding")) {
        if (!entry.path().filename().string().starts_with("tok-")) continue;
        const auto vector = read_json(entry.path());
        CAPTURE(entry.path().filename().string());
        ++seen;
        const auto& input = vector.at("input");
        const auto ids = vector.at("expected").at("ids").get<std::vector<TokenId>>();
        if (input.contains("text")) {
            const auto text = input.at("text").get<std::string>();
            CHECK(take(tokenizer.encode(text)) == ids);
            CHECK(take(tokenizer.pieces(text)) == vector.at("expected").at("pieces").get<std::vector<std::string>>());
            continue;
        }
        const auto parts = input.at("segments").get<std::vector<std::pair<std::string, std::string>>>();
        std::vector<Segment> segments;
        for (const auto& [kind, text] : parts) {
            segments.push_back({kind == "ctl" ? Segment::Kind::control : Segment::Kind::text, text});
        }
        CHECK(take(tokenizer.encode_segments(segments)) == ids);
    }
    CHECK(seen == 14);
}

TEST_CASE("the V4 vocabulary has the published control tokens") {
    const Tokenizer tokenizer = v4();
    CHECK(tokenizer.vocab_size() == 129280);
    CHECK(tokenizer.added_tokens().size() == 1283);
    const std::vector<std::pair<std::string, TokenId>> published = {
        {"<｜begin▁of▁sentence｜>", 0},
        {"<｜end▁of▁sentence｜>", 1},
        {"<｜▁pad▁｜>", 2},
        {"<｜place▁holder▁no▁0｜>", 128000},
        {"<｜place▁holder▁no▁799｜>", 128799},
        {"<｜fim▁hole｜>", 128800},
        {"<｜fim▁begin｜>", 128801},
        {"<｜fim▁end｜>", 128802},
        {"<｜User｜>", 128803},
        {"<｜Assistant｜>", 128804},
        {"<|EOT|>", 128805},
        {"<｜tool▁calls▁begin｜>", 128806},
        {"<｜tool▁sep｜>", 128814},
        {"<think>", 128821},
        {"</think>", 128822},
        {"｜DSML｜", 128825},
        {"<｜latest_reminder｜>", 128828},
        {"<｜action｜>", 128829},
        {"<｜query｜>", 128830},
        {"<｜authority｜>", 128831},
        {"<｜domain｜>", 128832},
        {"<｜title｜>", 128836},
        {"<dsml:", 128840},
        {"</dsml:", 128841},
        {"<｜extracted_url｜>", 128844},
        {"<｜read_url｜>", 128845},
        {"<|place_holder_mm_span_0021|>", 128847},
        {"<|place_holder_mm_span_0435|>", 129261},
    };
    for (const auto& [name, id] : published) {
        CAPTURE(name);
        CHECK(tokenizer.control_id(name) == id);
        CHECK(tokenizer.is_control(id));
        CHECK(tokenizer.bytes(id) == name);
    }
    for (const AddedToken& added : tokenizer.added_tokens()) {
        if (added.id >= 128800 && added.id <= 128845) {
            CAPTURE(added.content);
            CHECK_FALSE(added.is_special); // other engines show these as text
        } else if (added.id < 128000) {
            CHECK(added.is_special);
        }
    }
}

TEST_CASE("the tiny vocabulary encodes as the Hugging Face library does") {
    check_expected(tiny(), expected("tiny_expected.json"));
}

TEST_CASE("the V4 vocabulary encodes as the Hugging Face library does") {
    check_expected(v4(), expected("v4_expected.json"));
}

} // namespace dsv4::tokenizer::testing
