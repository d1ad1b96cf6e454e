// The safetensors container: an 8-byte little-endian header length, a JSON header that names each tensor's type, shape
// and byte range, and the payload. Nothing of a header is believed before it is checked.
#pragma once

#include "core/checkpoint/file.hpp"
#include "core/model/dtype.hpp"
#include "dsv4/sdk/result.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::checkpoint {

// The format's own limit on a header.
inline constexpr std::uint64_t max_header_bytes = 100'000'000;

struct TensorEntry {
    std::string name;
    model::Dtype dtype = model::Dtype::u8;
    std::vector<std::int64_t> shape; // empty for a scalar; a 0 makes an empty tensor
    std::uint64_t offset_bytes = 0;  // from the start of the payload
    std::uint64_t size_bytes = 0;    // product of shape times width
};

struct Header {
    std::uint64_t payload_offset_bytes = 0; // from the start of the file
    std::uint64_t payload_bytes = 0;
    std::uint64_t unused_bytes = 0; // gaps between tensors; harmless, and no writer of released checkpoints leaves any
    std::vector<TensorEntry> tensors; // by offset
    std::map<std::string, std::string> metadata;

    const TensorEntry* find(std::string_view name) const noexcept; // linear; null where absent
};

// Parses the start of a file of `file_bytes` bytes: `start` holds at least the header where the file does. Errors name
// `where` and the tensor: header longer than the file or than max_header_bytes; malformed or non-UTF-8 JSON; repeated
// names or keys; unknown types; shapes that are negative or overflow; ranges that are reversed, of the wrong size,
// overlapping or outside the payload; bytes behind the last tensor.
Result<Header> parse_header(std::span<const std::byte> start, std::uint64_t file_bytes, std::string_view where);

// An open file with its parsed header. Const members may be called from several threads.
class SafetensorsFile {
  public:
    static Result<SafetensorsFile> open(const std::filesystem::path& path);

    const File& file() const noexcept { return file_; }
    const Header& header() const noexcept { return header_; }
    const std::vector<TensorEntry>& tensors() const noexcept { return header_.tensors; }
    const TensorEntry* find(std::string_view name) const noexcept { return header_.find(name); }
    // The tensor's bytes in the mapping; alignment is only what the file gives (possibly 1).
    std::span<const std::byte> bytes(const TensorEntry& tensor) const noexcept;

  private:
    SafetensorsFile(File file, Header header) : file_(std::move(file)), header_(std::move(header)) {}
    File file_;
    Header header_;
};

// "[8,32]" for messages.
std::string shape_text(std::span<const std::int64_t> shape);

} // namespace dsv4::checkpoint
