// The container: what is right is read, and each way to be wrong is refused with a message that names it.
#include "core/checkpoint/safetensors.hpp"
#include "tests/checkpoint/support.hpp"
#include "tests/support/catch.hpp"

#include <cstring>

using namespace dsv4;
using namespace dsv4::test;
using checkpoint::Header;

namespace {

Result<Header> parse(const std::string& file) {
    return checkpoint::parse_header(std::as_bytes(std::span(file)), file.size(), "bad.safetensors");
}

std::string error_of(const std::string& file) {
    const auto result = parse(file);
    return result.ok() ? "accepted" : result.error().message;
}

std::string error_of(const char* header, std::size_t payload_bytes) {
    return error_of(container(header, std::string(payload_bytes, 'x')));
}

} // namespace

TEST_CASE("a header gives names, types, shapes, ranges and metadata") {
    const Header h = parse(container(R"({"__metadata__":{"format":"pt"},)"
                                     R"("b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
                                     R"("a":{"shape":[2,2],"data_offsets":[0,4],"dtype":"F8_E4M3"},)"
                                     R"("s":{"dtype":"I64","shape":[],"data_offsets":[28,36]},)"
                                     R"("e":{"dtype":"BF16","shape":[0,7],"data_offsets":[4,4]}}   )",
                                     std::string(36, 'x')))
                         .value();
    CHECK(h.payload_bytes == 36);
    CHECK(h.unused_bytes == 0);
    CHECK(h.metadata.at("format") == "pt");
    REQUIRE(h.tensors.size() == 4);
    CHECK(h.tensors[0].name == "a");
    CHECK(h.tensors[0].dtype == model::Dtype::f8_e4m3);
    REQUIRE(h.find("b"));
    CHECK(h.find("b")->shape == std::vector<std::int64_t>{2, 3});
    CHECK(h.find("b")->offset_bytes == 4);
    CHECK(h.find("b")->size_bytes == 24);
    CHECK(h.find("s")->shape.empty());
    CHECK(h.find("s")->size_bytes == 8);
    CHECK(h.find("e")->size_bytes == 0);
    CHECK_FALSE(h.find("c"));
}

TEST_CASE("gaps between tensors are tolerated and counted") {
    const Header h = parse(container(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                                     R"("b":{"dtype":"U8","shape":[1],"data_offsets":[7,8]}})",
                                     std::string(8, 'x')))
                         .value();
    CHECK(h.unused_bytes == 5);
}

TEST_CASE("files that are too short or claim too much") {
    CHECK_THAT(error_of(std::string()), ContainsSubstring("bad.safetensors has 0 bytes"));
    CHECK_THAT(error_of(std::string(7, '\0')), ContainsSubstring("bad.safetensors has 7 bytes"));
    CHECK_THAT(error_of(std::string("\x40\0\0\0\0\0\0\0{}", 10)),
               ContainsSubstring("the header length is 64 bytes, but only 2 bytes follow; the file is cut short"));
    CHECK_THAT(error_of(std::string(8, '\xff')), ContainsSubstring("the header length is 18446744073709551615 bytes"));
    CHECK_THAT(error_of(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8)),
               ContainsSubstring("the header length is 100000001 bytes; the format allows 100000000"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 15),
               ContainsSubstring("tensor w ends at byte 16 of the payload, which has 15 bytes; the file is cut short"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 19),
               ContainsSubstring("3 unreferenced bytes follow the last tensor"));
}

TEST_CASE("entries that contradict themselves or each other") {
    CHECK_THAT(error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                        R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                        7),
               ContainsSubstring("tensors a and b overlap at byte 3"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4),
               ContainsSubstring("tensor w has reversed data_offsets [4,0]"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}})", 4),
               ContainsSubstring("tensor w has 4 bytes of data; its shape [4] of F32 needs 16"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
               ContainsSubstring("tensor w has the shape [4294967296,4294967296], whose size overflows"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0),
               ContainsSubstring("whose size overflows"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]}})", 0),
               ContainsSubstring("tensor w has the dimension 9223372036854775808"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1),
               ContainsSubstring("tensor w holds the number -1 in its shape; expected integers of at least 0"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1),
               ContainsSubstring("tensor w holds the number 1.5 in its shape"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,99999999999999999999]}})", 1),
               ContainsSubstring("tensor w holds the number 99999999999999999999 in its data_offsets"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1),
               ContainsSubstring("tensor w has more than two data_offsets"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1),
               ContainsSubstring("tensor w states no data_offsets of two numbers"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1),
               ContainsSubstring("tensor w has more than 16 dimensions"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})", 1),
               ContainsSubstring("tensor w has the unknown dtype \"F4\""));
    CHECK_THAT(error_of(R"({"w":{"shape":[1],"data_offsets":[0,1]}})", 1),
               ContainsSubstring("tensor w states no dtype"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", 1),
               ContainsSubstring("tensor w states no shape"));
}

TEST_CASE("repeated names and keys") {
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                        R"("w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                        2),
               ContainsSubstring("tensor w is listed twice"));
    CHECK_THAT(error_of(R"({"w":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", 1),
               ContainsSubstring("tensor w states \"shape\" twice"));
    CHECK_THAT(error_of(R"({"__metadata__":{"k":"a","k":"b"}})", 0),
               ContainsSubstring("__metadata__ states \"k\" twice"));
}

TEST_CASE("headers that are not what the format says") {
    CHECK_THAT(error_of("{\"w\xff\":{}}", 0),
               ContainsSubstring("bad.safetensors: the header is not valid JSON at byte"));
    CHECK_THAT(error_of("{\"w\":", 0), ContainsSubstring("the header is not valid JSON"));
    CHECK_THAT(error_of("{} {}", 0), ContainsSubstring("the header is not valid JSON"));
    CHECK_THAT(error_of("", 0), ContainsSubstring("the header is not valid JSON"));
    CHECK_THAT(error_of("[1]", 0), ContainsSubstring("the header holds a list; expected an object"));
    CHECK_THAT(error_of("7", 0), ContainsSubstring("the header holds the number 7; expected an object"));
    CHECK_THAT(error_of(R"({"w":[1]})", 0), ContainsSubstring("tensor w holds a list; expected an object"));
    CHECK_THAT(error_of(R"({"w":{"dtype":7}})", 0), ContainsSubstring("tensor w holds the number 7 at \"dtype\""));
    CHECK_THAT(error_of(R"({"w":{"shape":{"a":1}}})", 0), ContainsSubstring("tensor w holds an object at \"shape\""));
    CHECK_THAT(error_of(R"({"w":{"extra":true}})", 0), ContainsSubstring("tensor w holds a boolean at \"extra\""));
    CHECK_THAT(error_of(R"({"__metadata__":{"k":1}})", 0),
               ContainsSubstring("__metadata__ holds the number 1 at \"k\"; expected a string"));
    CHECK_THAT(error_of(std::string(container(std::string(100000, '['), ""))),
               ContainsSubstring("the header holds a list"));
}

TEST_CASE("an empty header is a file without tensors") {
    CHECK(parse(container("{}", "")).value().tensors.empty());
    CHECK_THAT(error_of("{}", 1), ContainsSubstring("1 unreferenced bytes follow the last tensor"));
}

TEST_CASE("opening names the file") {
    const TempDir dir;
    const auto missing = checkpoint::SafetensorsFile::open(dir.path() / "none.safetensors");
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == Code::not_found);
    CHECK_THAT(missing.error().message, ContainsSubstring("none.safetensors: No such file"));
    const auto folder = checkpoint::SafetensorsFile::open(dir.path());
    REQUIRE_FALSE(folder.ok());
    CHECK_THAT(folder.error().message, ContainsSubstring("is not a regular file"));
    write_file(dir.path() / "w.safetensors",
               container(R"({"w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "abc"));
    auto file = checkpoint::SafetensorsFile::open(dir.path() / "w.safetensors").value();
    const auto moved = std::move(file);
    const auto bytes = moved.bytes(*moved.find("w"));
    CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == "abc");
}
