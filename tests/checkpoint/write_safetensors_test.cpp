// Files that we write are what the format says, byte for byte, and appear whole or not at all.
#include "core/checkpoint/safetensors.hpp"
#include "core/checkpoint/write_safetensors.hpp"
#include "tests/checkpoint/support.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::test;
using checkpoint::TensorView;

namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::size_t files_in(const std::filesystem::path& dir) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(dir), {}));
}

} // namespace

TEST_CASE("a written file, byte for byte") {
    const TempDir dir;
    const std::string wide = "01234567", narrow = "ab", empty;
    const TensorView tensors[] = {{"b", model::Dtype::u8, {2}, bytes(narrow)},
                                  {"z", model::Dtype::f32, {2, 1}, bytes(wide)},
                                  {"a", model::Dtype::u8, {0, 3}, bytes(empty)}};
    REQUIRE(checkpoint::write_safetensors(dir.path() / "w.safetensors", tensors, {{"by", "test"}}).ok());
    std::string header = R"({"__metadata__":{"by":"test"},)"
                         R"("z":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                         R"("a":{"dtype":"U8","shape":[0,3],"data_offsets":[8,8]},)"
                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}})";
    while (header.size() % 8 != 0) header += ' ';
    CHECK(read_file(dir.path() / "w.safetensors") == container(header, "01234567ab"));
    CHECK(files_in(dir.path()) == 1);
    const auto file = checkpoint::SafetensorsFile::open(dir.path() / "w.safetensors").value();
    CHECK(sha256_hex(file.bytes(*file.find("z"))) == sha256_hex(bytes(wide)));
    CHECK(file.header().metadata.at("by") == "test");
}

TEST_CASE("what cannot be written leaves nothing behind and keeps the old file") {
    const TempDir dir;
    const auto path = dir.path() / "w.safetensors";
    write_file(path, "old");
    const std::string data = "abcd";
    const auto error = [&](std::vector<TensorView> tensors) {
        const Status status = checkpoint::write_safetensors(path, tensors);
        return status.ok() ? "written" : status.error().message;
    };
    CHECK_THAT(error({{"w", model::Dtype::f32, {2}, bytes(data)}}),
               ContainsSubstring("tensor w has 4 bytes, which does not match its shape [2] of F32"));
    CHECK_THAT(error({{"w", model::Dtype::u8, {-4}, bytes(data)}}), ContainsSubstring("shape [-4]"));
    CHECK_THAT(error({{"w", model::Dtype::u8, {4}, bytes(data)}, {"w", model::Dtype::u8, {4}, bytes(data)}}),
               ContainsSubstring("tensor w is given twice"));
    CHECK_THAT(error({{"__metadata__", model::Dtype::u8, {4}, bytes(data)}}), ContainsSubstring("cannot be named"));
    CHECK_THAT(error({{"\xff", model::Dtype::u8, {4}, bytes(data)}}), ContainsSubstring("is not UTF-8"));
    CHECK(read_file(path) == "old");
    CHECK(files_in(dir.path()) == 1);
    const Status nowhere = checkpoint::write_safetensors(dir.path() / "none/w.safetensors", {});
    REQUIRE_FALSE(nowhere.ok());
    CHECK_THAT(nowhere.error().message, ContainsSubstring("cannot create a file beside"));
}
