// Fuzzes the safetensors header parser: any bytes give a header whose ranges hold, or an error that names the file.
#include "core/checkpoint/safetensors.hpp"
#include "core/checkpoint/shard_index.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace dsv4::checkpoint;
    const auto header = parse_header({reinterpret_cast<const std::byte*>(data), size}, size, "fuzz.safetensors");
    if (header.ok()) {
        std::uint64_t end = 0, used = 0;
        for (const TensorEntry& t : header->tensors) {
            require(t.offset_bytes + t.size_bytes <= header->payload_bytes);
            if (t.size_bytes == 0) continue;
            require(t.offset_bytes >= end);
            end = t.offset_bytes + t.size_bytes;
            used += t.size_bytes;
        }
        require(header->payload_offset_bytes + header->payload_bytes == size);
        require(used + header->unused_bytes == header->payload_bytes);
    } else {
        require(header.error().message.find("fuzz.safetensors") != std::string::npos);
    }
    // The same bytes as an index: whatever is accepted names files inside one folder.
    const auto index = parse_shard_index({reinterpret_cast<const char*>(data), size}, "fuzz.index.json");
    if (index.ok())
        for (const auto& [tensor, file] : index->shard_of) require(file.find('/') == std::string::npos && file != "..");
    return 0;
}
