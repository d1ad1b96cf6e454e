// Streaming delivers every weight once, byte for byte, in file order, into memory that the sink owns.
#include "core/checkpoint/stream.hpp"
#include "tests/checkpoint/support.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <map>

using namespace dsv4;
using namespace dsv4::test;
using checkpoint::Checkpoint;

namespace {

// Stages every weight in one aligned buffer that is scribbled over between weights, and keeps digests.
class Recorder : public checkpoint::WeightSink {
  public:
    struct Seen {
        std::string data_sha256, scale_sha256;
        model::Format format;
    };
    std::map<std::string, Seen> seen;
    std::uint64_t delivered_bytes = 0;
    std::size_t staged = 0;
    std::size_t limit = SIZE_MAX;

    void* stage(std::size_t bytes) override {
        if (bytes > limit) return nullptr;
        staged = bytes;
        buffer_.assign(bytes + 64, std::byte{0xA5});
        base_ = buffer_.data() + (64 - reinterpret_cast<std::uintptr_t>(buffer_.data()) % 64) % 64;
        return base_;
    }
    void deliver(const model::Weight& w, std::span<const std::byte> data, std::span<const std::byte> scale) override {
        if (w.name == fail_at) throw Failure(Code::exhausted, "the device is full");
        CHECK(data.data() == base_);
        if (!scale.empty()) {
            CHECK(reinterpret_cast<std::uintptr_t>(scale.data()) % 64 == 0);
            CHECK(scale.data() + scale.size() == base_ + staged);
        }
        CHECK(seen.emplace(w.name, Seen{sha256_hex(data), scale.empty() ? "" : sha256_hex(scale), w.format}).second);
        delivered_bytes += data.size() + scale.size();
    }
    std::string fail_at;

  private:
    std::vector<std::byte> buffer_;
    std::byte* base_ = nullptr;
};

} // namespace

TEST_CASE("every weight arrives once with the bytes that NumPy reads") {
    const auto digests = nlohmann::json::parse(read_file(source_dir() / "tests/checkpoint/data/digests.json"));
    for (const auto& [name, expected] : digests.items()) {
        INFO(name);
        const Checkpoint c = Checkpoint::open(source_dir() / name).value();
        Recorder sink;
        std::uint64_t last = 0;
        std::size_t calls = 0;
        checkpoint::StreamOptions options;
        options.lookahead_bytes = 100000;
        options.progress = [&](const checkpoint::Progress& p) {
            CHECK(p.done_bytes > last);
            CHECK(p.done_weights == ++calls);
            CHECK(p.total_bytes == expected["bytes"]);
            last = p.done_bytes;
            return true;
        };
        REQUIRE(checkpoint::stream_weights(c, sink, options).ok());
        CHECK(sink.seen.size() == c.weights().size());
        CHECK(sink.delivered_bytes == expected["bytes"]);
        CHECK(last == expected["bytes"]);
        const auto sha = [&](const char* tensor) { return expected["chosen"][tensor]["sha256"].get<std::string>(); };
        CHECK(sink.seen["embed"].data_sha256 == sha("embed.weight"));
        CHECK(sink.seen["layers.0.attn.wq_a"].data_sha256 == sha("layers.0.attn.wq_a.weight"));
        CHECK(sink.seen["layers.0.attn.wq_a"].scale_sha256 == sha("layers.0.attn.wq_a.scale"));
        CHECK(sink.seen["layers.2.ffn.experts.3.w2"].data_sha256 == sha("layers.2.ffn.experts.3.w2.weight"));
        CHECK(sink.seen["layers.2.ffn.experts.3.w2"].scale_sha256 == sha("layers.2.ffn.experts.3.w2.scale"));
        CHECK(sink.seen["layers.2.ffn.experts.3.w2"].format == model::Format::fp4_block32);
        CHECK(sink.seen["layers.0.ffn.gate.tid2eid"].data_sha256 == sha("layers.0.ffn.gate.tid2eid"));
        CHECK(sink.seen["layers.2.attn.compressor.ape"].data_sha256 == sha("layers.2.attn.compressor.ape"));
        CHECK(sink.seen["layers.2.attn.compressor.ape"].scale_sha256.empty());
    }
}

TEST_CASE("a rank asks for its own experts only") {
    const Checkpoint c = Checkpoint::open(source_dir() / "models/dsv4-tiny").value();
    Recorder sink;
    checkpoint::StreamOptions options;
    options.wanted = [](const model::Weight& w) { return w.expert >= 0 && w.expert % 4 == 1; };
    REQUIRE(checkpoint::stream_weights(c, sink, options).ok());
    CHECK(sink.seen.size() == 7 * 4 * 3); // layers, experts, projections
    CHECK(sink.seen.contains("layers.6.ffn.experts.13.w3"));
    CHECK_FALSE(sink.seen.contains("layers.6.ffn.experts.12.w3"));
}

TEST_CASE("streaming stops on request, on a full sink and on the sink's own errors") {
    const Checkpoint c = Checkpoint::open(source_dir() / "models/dsv4-tiny").value();
    Recorder sink;
    checkpoint::StreamOptions options;
    options.progress = [](const checkpoint::Progress& p) { return p.done_weights < 3; };
    Status status = checkpoint::stream_weights(c, sink, options);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == Code::cancelled);
    CHECK(sink.seen.size() == 3);

    Recorder small;
    small.limit = 300000;
    status = checkpoint::stream_weights(c, small);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == Code::exhausted);
    CHECK_THAT(status.error().message, ContainsSubstring("no memory was given for weight embed (1048576 bytes)"));

    Recorder failing;
    failing.fail_at = "norm";
    status = checkpoint::stream_weights(c, failing);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().message == "the device is full");
}

TEST_CASE("a token table that names an expert that does not exist is refused") {
    const TempDir dir;
    std::filesystem::copy_file(source_dir() / "models/dsv4-tiny/config.json", dir.path() / "config.json");
    const Checkpoint tiny = Checkpoint::open(source_dir() / "models/dsv4-tiny").value();
    const std::uint64_t at = tiny.find("layers.1.ffn.gate.tid2eid")->file_offset_bytes + (6 * 1000 + 2) * 8;
    std::string file = read_file(source_dir() / "models/dsv4-tiny/model.safetensors");
    for (const std::int64_t bad : {std::int64_t{16}, std::int64_t{-1}, INT64_MAX}) {
        std::memcpy(file.data() + at, &bad, sizeof bad);
        write_file(dir.path() / "model.safetensors", file);
        Recorder sink;
        const Status status = checkpoint::stream_weights(Checkpoint::open(dir.path()).value(), sink);
        REQUIRE_FALSE(status.ok());
        CHECK(status.error().message ==
              "weight layers.1.ffn.gate.tid2eid sends token 1000 to expert " + std::to_string(bad) + "; there are 16");
    }
}

TEST_CASE("what is not loadable is not streamed, and a file that shrinks is an error") {
    const TempDir dir;
    for (const char* name : {"config.json", "model.safetensors"})
        std::filesystem::copy_file(source_dir() / "models/dsv4-tiny" / name, dir.path() / name);
    const Checkpoint c = Checkpoint::open(dir.path()).value();
    std::filesystem::resize_file(dir.path() / "model.safetensors", 2000000);
    Recorder sink;
    Status status = checkpoint::stream_weights(c, sink);
    REQUIRE_FALSE(status.ok());
    CHECK_THAT(status.error().message, ContainsSubstring("it was shortened while it was being read"));

    std::filesystem::copy_file(source_dir() / "models/dsv4-tiny/model.safetensors", dir.path() / "model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    replace_in_file(dir.path() / "config.json", "\"vocab_size\": 2048", "\"vocab_size\": 2047");
    Recorder untouched;
    status = checkpoint::stream_weights(Checkpoint::open(dir.path()).value(), untouched);
    REQUIRE_FALSE(status.ok());
    CHECK_THAT(status.error().message,
               ContainsSubstring("tensor embed.weight in shard model.safetensors has shape [2048,256]; "
                                 "expected [2047,256]"));
    CHECK(untouched.seen.empty());
}
