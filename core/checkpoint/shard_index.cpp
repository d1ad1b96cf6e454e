// Reads the index of a sharded checkpoint.
#include "core/checkpoint/shard_index.hpp"

#include "core/model/strict_json.hpp"

namespace dsv4::checkpoint {
namespace {

bool is_plain_file_name(std::string_view name) {
    constexpr std::string_view end = ".safetensors";
    if (name.size() <= end.size() || name.size() > 255 || !name.ends_with(end) || name.front() == '.') return false;
    for (const char c : name)
        if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
    return true;
}

ShardIndex parse(std::string_view text, const std::string& where) {
    const nlohmann::json root = model::parse_strict_object(text, where);
    const auto map = root.find("weight_map");
    if (map == root.end() || !map->is_object() || map->empty())
        throw Failure(Code::corrupt, where + " has no weight_map that names the shard of each tensor");
    ShardIndex index;
    for (const auto& [tensor, file] : map->items()) {
        if (!file.is_string() || !is_plain_file_name(file.get_ref<const std::string&>()))
            throw Failure(Code::corrupt,
                          where + ": tensor " + tensor + " lies in " +
                              file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 200) +
                              "; expected the plain name of a .safetensors file beside the index");
        index.shard_of.emplace(tensor, file.get<std::string>());
    }
    if (const auto meta = root.find("metadata"); meta != root.end() && meta->is_object())
        if (const auto total = meta->find("total_size"); total != meta->end()) {
            if (!total->is_number_unsigned())
                throw Failure(Code::corrupt, where + ": metadata.total_size is " + total->dump().substr(0, 80) +
                                                 "; expected an integer of at least 0");
            index.total_bytes = total->get<std::uint64_t>();
        }
    return index;
}

} // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, std::string_view where) {
    return guard([&] { return parse(text, std::string(where)); });
}

} // namespace dsv4::checkpoint
