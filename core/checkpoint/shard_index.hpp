// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include "dsv4/sdk/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace dsv4::checkpoint {

struct ShardIndex {
    std::map<std::string, std::string> shard_of; // tensor name to file name
    std::optional<std::uint64_t> total_bytes;    // metadata.total_size: payload bytes of all tensors
};

// Parses the text of an index. Errors name `where` and the entry; file names must be plain (no folders, no "..") and
// end in .safetensors, so that an index cannot point outside its directory.
Result<ShardIndex> parse_shard_index(std::string_view text, std::string_view where);

} // namespace dsv4::checkpoint
