// Checkpoint directories: the golden and the tiny one hold what NumPy reads from them; broken ones are refused by name.
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/shard_index.hpp"
#include "tests/checkpoint/support.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

#include <functional>

using namespace dsv4;
using namespace dsv4::test;
using checkpoint::Checkpoint;
namespace fs = std::filesystem;

namespace {

const char* const golden = "tests/vectors/model/golden-a";
const char* const shard_1 = "model-00001-of-00002.safetensors";
const char* const shard_2 = "model-00002-of-00002.safetensors";

void copy_golden(const fs::path& to) {
    for (const char* name : {"config.json", "model.safetensors.index.json", shard_1, shard_2})
        fs::copy_file(source_dir() / golden / name, to / name);
}

std::string open_error(const fs::path& dir) {
    const auto result = Checkpoint::open(dir);
    return result.ok() ? "opened" : result.error().message;
}

std::string load_error(const fs::path& dir) {
    const auto status = Checkpoint::open(dir).value().loadable();
    return status.ok() ? "loadable" : status.error().message;
}

void edit_json(const fs::path& path, const std::function<void(nlohmann::json&)>& edit) {
    auto json = nlohmann::json::parse(read_file(path));
    edit(json);
    write_file(path, json.dump());
}

// Replaces the header of a safetensors file; the payload stays.
void edit_header(const fs::path& path, const std::function<void(nlohmann::json&)>& edit) {
    const std::string file = read_file(path);
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(file[static_cast<std::size_t>(i)]);
    auto header = nlohmann::json::parse(file.substr(8, length));
    edit(header);
    write_file(path, container(header.dump(), std::string_view(file).substr(8 + length)));
}

} // namespace

TEST_CASE("released-layout checkpoints hold exactly what NumPy reads from them") {
    const auto digests = nlohmann::json::parse(read_file(source_dir() / "tests/checkpoint/data/digests.json"));
    for (const auto& [name, expected] : digests.items()) {
        INFO(name);
        const Checkpoint c = Checkpoint::open(source_dir() / name).value();
        CHECK(c.findings().empty());
        CHECK(c.loadable().ok());
        CHECK(c.tensors().size() == expected["tensors"]);
        CHECK(c.card().total.bytes == expected["bytes"]);
        CHECK(c.card().lineage == model::Lineage::custom);
        CHECK(c.card().draft == model::DraftKind::none);
        CHECK(c.card().experts == model::ExpertPrecision::fp4);
        REQUIRE(expected["chosen"].size() == 13);
        for (const auto& [tensor, want] : expected["chosen"].items()) {
            INFO(tensor);
            const checkpoint::Tensor* t = c.find(tensor);
            REQUIRE(t);
            CHECK(model::dtype_name(t->entry->dtype) == want["dtype"].get<std::string>());
            CHECK(t->entry->shape == want["shape"].get<std::vector<std::int64_t>>());
            CHECK(sha256_hex(c.bytes(*t)) == want["sha256"].get<std::string>());
            std::vector<std::byte> copy(t->entry->size_bytes);
            c.read(*t, copy);
            CHECK(sha256_hex(copy) == want["sha256"].get<std::string>());
        }
    }
    CHECK(Checkpoint::open(source_dir() / golden).value().shards().size() == 2);
    CHECK(Checkpoint::open(source_dir() / "models/dsv4-tiny").value().shards().size() == 1);
}

TEST_CASE("directories that are not checkpoints") {
    const TempDir dir;
    CHECK_THAT(open_error(dir.path() / "nowhere"), ContainsSubstring("there is no checkpoint directory"));
    CHECK_THAT(open_error(dir.path()), ContainsSubstring("holds no config.json"));
    fs::copy_file(source_dir() / golden / "config.json", dir.path() / "config.json");
    CHECK_THAT(open_error(dir.path()),
               ContainsSubstring("holds neither model.safetensors nor model.safetensors.index.json"));
    fs::copy_file(source_dir() / golden / shard_1, dir.path() / shard_1);
    fs::copy_file(source_dir() / golden / shard_2, dir.path() / shard_2);
    CHECK_THAT(open_error(dir.path()),
               ContainsSubstring("holds 2 .safetensors files (model-00001-of-00002.safetensors, ...) "
                                 "but no model.safetensors.index.json"));
}

TEST_CASE("shards that are missing, cut short or of another checkpoint") {
    const TempDir dir;
    copy_golden(dir.path());
    SECTION("missing") {
        fs::remove(dir.path() / shard_2);
        CHECK_THAT(open_error(dir.path()), ContainsSubstring("shard model-00002-of-00002.safetensors is missing"));
        CHECK_THAT(open_error(dir.path()), ContainsSubstring("the index places tensor layers."));
    }
    SECTION("payload cut short") {
        fs::resize_file(dir.path() / shard_2, fs::file_size(dir.path() / shard_2) - 5);
        CHECK_THAT(open_error(dir.path()), ContainsSubstring("shard model-00002-of-00002.safetensors cannot be read"));
        CHECK_THAT(open_error(dir.path()), ContainsSubstring("the file is cut short"));
    }
    SECTION("header cut short") {
        fs::resize_file(dir.path() / shard_1, 100);
        CHECK_THAT(open_error(dir.path()), ContainsSubstring("shard model-00001-of-00002.safetensors cannot be read"));
        CHECK_THAT(open_error(dir.path()), ContainsSubstring("but only 92 bytes follow; the file is cut short"));
    }
    SECTION("without a tensor that the index places in it") {
        edit_header(dir.path() / shard_1, [](auto& h) {
            h["renamed"] = h["embed.weight"];
            h.erase("embed.weight");
        });
        CHECK_THAT(open_error(dir.path()),
                   ContainsSubstring("shard model-00001-of-00002.safetensors does not hold tensor "
                                     "embed.weight, which the index places there"));
    }
    SECTION("a tensor in another shard than the index says") {
        edit_header(dir.path() / shard_1, [](auto& h) {
            h["norm.weight"] = h["hc_head_scale"];
            h["norm.weight"]["data_offsets"] = {0, 0};
            h["norm.weight"]["shape"] = {0};
        });
        CHECK_THAT(
            load_error(dir.path()),
            ContainsSubstring("tensor norm.weight lies in shard model-00001-of-00002.safetensors, but the index places "
                              "it in model-00002-of-00002.safetensors"));
    }
}

TEST_CASE("indexes that lie") {
    const TempDir dir;
    copy_golden(dir.path());
    const fs::path index = dir.path() / "model.safetensors.index.json";
    SECTION("total size") {
        edit_json(index, [](auto& j) { j["metadata"]["total_size"] = 8690447; });
        CHECK_THAT(load_error(dir.path()),
                   ContainsSubstring("states a total_size of 8690447 bytes, but its tensors have 8690446"));
    }
    SECTION("a path out of the directory") {
        for (const char* name : {"../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..", "", ".safetensors",
                                 "a\\b.safetensors", "model.bin"}) {
            INFO(name);
            edit_json(index, [&](auto& j) { j["weight_map"]["embed.weight"] = name; });
            CHECK_THAT(open_error(dir.path()),
                       ContainsSubstring("model.safetensors.index.json: tensor embed.weight lies in "));
            CHECK_THAT(open_error(dir.path()), ContainsSubstring("expected the plain name of a .safetensors file"));
        }
    }
    SECTION("a tensor placed twice") {
        write_file(index, R"({"weight_map":{"a":"m.safetensors","a":"n.safetensors"}})");
        CHECK_THAT(open_error(dir.path()),
                   ContainsSubstring("model.safetensors.index.json states the key \"a\" twice"));
    }
    SECTION("no map") {
        write_file(index, "{\"weight_map\":{}}");
        CHECK_THAT(open_error(dir.path()), ContainsSubstring("has no weight_map"));
    }
    SECTION("a number for a file") {
        write_file(index, "{\"weight_map\":{\"a\":1}}");
        CHECK_THAT(open_error(dir.path()), ContainsSubstring("tensor a lies in 1; expected the plain name"));
    }
    SECTION("a negative total") {
        edit_json(index, [](auto& j) { j["metadata"]["total_size"] = -1; });
        CHECK_THAT(open_error(dir.path()), ContainsSubstring("metadata.total_size is -1"));
    }
    SECTION("a tensor that is not listed is a note") {
        edit_header(dir.path() / shard_1, [](auto& h) {
            h["stray"] = {{"dtype", "U8"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
        });
        const Checkpoint c = Checkpoint::open(dir.path()).value();
        CHECK(c.loadable().ok());
        REQUIRE(c.findings().size() == 1);
        CHECK_THAT(c.findings()[0].message, ContainsSubstring("holds tensor stray, which the index does not list"));
    }
}

TEST_CASE("tensors that do not fit the geometry are findings that name them") {
    const TempDir dir;
    for (const char* name : {"config.json", "model.safetensors"})
        fs::copy_file(source_dir() / "models/dsv4-tiny" / name, dir.path() / name);
    const fs::path file = dir.path() / "model.safetensors";
    SECTION("missing") {
        edit_header(file, [](auto& h) {
            h["other"] = h["layers.2.attn.wq_a.scale"];
            h.erase("layers.2.attn.wq_a.scale");
        });
        const Checkpoint c = Checkpoint::open(dir.path()).value();
        REQUIRE(c.findings().size() == 2);
        CHECK(c.findings()[0].severity == checkpoint::Severity::error);
        CHECK_THAT(c.findings()[0].message,
                   ContainsSubstring("tensor layers.2.attn.wq_a.scale is missing; expected F8_E8M0 [1,2]"));
        CHECK(c.findings()[1].severity == checkpoint::Severity::note);
        CHECK_THAT(c.findings()[1].message, ContainsSubstring("tensor other is not part of this model"));
        CHECK_FALSE(c.loadable().ok());
    }
    SECTION("wrong shape") {
        edit_header(file, [](auto& h) { h["layers.0.ffn.gate.weight"]["shape"] = {256, 16}; });
        CHECK_THAT(load_error(dir.path()),
                   ContainsSubstring("tensor layers.0.ffn.gate.weight in shard model.safetensors has "
                                     "shape [256,16]; expected [16,256]"));
    }
    SECTION("wrong dtype") {
        edit_header(file, [](auto& h) { h["norm.weight"]["dtype"] = "F16"; });
        CHECK_THAT(load_error(dir.path()),
                   ContainsSubstring("tensor norm.weight in shard model.safetensors has dtype F16; expected BF16"));
    }
    SECTION("several errors are counted") {
        edit_header(file, [](auto& h) {
            h["norm.weight"]["dtype"] = "F16";
            h["embed.weight"]["dtype"] = "F16";
        });
        CHECK_THAT(load_error(dir.path()), ContainsSubstring("(and 1 more errors in this checkpoint)"));
    }
    SECTION("a draft that the config does not know") {
        edit_header(file, [](auto& h) {
            h["mtp.0.main_proj.weight"] = {{"dtype", "U8"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
        });
        CHECK_THAT(open_error(dir.path()),
                   ContainsSubstring("config.json and the tensors disagree about the draft module"));
    }
    SECTION("unknown draft tensors") {
        edit_header(file, [](auto& h) {
            h["mtp.0.e_proj.weight"] = {{"dtype", "U8"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
            h["mtp.0.surprise"] = h["mtp.0.e_proj.weight"];
        });
        const Checkpoint c = Checkpoint::open(dir.path()).value();
        bool named = false;
        for (const auto& f : c.findings())
            named = named || (f.severity == checkpoint::Severity::error &&
                              f.message == "tensor mtp.0.surprise belongs to no known mtp draft stage");
        CHECK(named);
    }
    SECTION("experts of a precision that cannot be read") {
        edit_header(file, [](auto& h) {
            for (auto& [name, entry] : h.items())
                if (name.find(".ffn.experts.") != std::string::npos && name.ends_with(".weight")) entry["dtype"] = "U8";
        });
        CHECK_THAT(load_error(dir.path()), ContainsSubstring("routed experts stored as nvfp4 cannot be read"));
    }
    SECTION("the shipped encoder decides the prompt encoding") {
        write_file(dir.path() / "encoding/test_encoding.py", "Beyond maximum \xE2\x80\x94");
        write_file(dir.path() / "encoding/encoding_dsv4.py", "Absolute maximum");
        const Checkpoint c = Checkpoint::open(dir.path()).value();
        CHECK(c.card().encoding == model::Encoding::v4_preview);
        CHECK(c.card().encoding_reason == "encoding/encoding_dsv4.py does not hold the effort texts of 0731");
    }
}
