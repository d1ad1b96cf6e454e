// A checkpoint directory in the released layout: config.json and one model.safetensors, or shards with an index.
#pragma once

#include "core/checkpoint/safetensors.hpp"
#include "core/model/card.hpp"
#include "core/model/expected_tensors.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::checkpoint {

struct Shard {
    std::string name; // file name inside the directory
    SafetensorsFile file;
};

// One tensor that the checkpoint provides. Points into the Checkpoint it came from.
struct Tensor {
    const TensorEntry* entry = nullptr;
    std::uint32_t shard = 0;
    std::uint64_t file_offset_bytes = 0;

    const std::string& name() const noexcept { return entry->name; }
};

enum class Severity : std::uint8_t { note, error };

struct Finding {
    Severity severity = Severity::note;
    std::string message; // one sentence that names the tensor or file
    std::string fix;     // may be empty
};

// Open files and what they hold. Const members may be called from several threads.
class Checkpoint {
  public:
    // Opens and checks the container: config, index, every shard's header. What is wrong with files is an error here;
    // what is wrong with tensors (missing, unknown, of another shape or type than the geometry asks for) becomes
    // findings, so that all of it can be shown. No payload is read.
    static Result<Checkpoint> open(const std::filesystem::path& directory);

    const std::filesystem::path& directory() const noexcept { return directory_; }
    const model::ModelCard& card() const noexcept { return card_; }
    const std::vector<Shard>& shards() const noexcept { return shards_; }
    const std::vector<Tensor>& tensors() const noexcept { return tensors_; } // by name
    // The canonical weights of this checkpoint; empty where its experts' precision cannot be read.
    const std::vector<model::Weight>& weights() const noexcept { return weights_; }
    const std::vector<Finding>& findings() const noexcept { return findings_; } // errors first
    // The first error among the findings and how many others there are; ok when there is none.
    Status loadable() const;

    const Tensor* find(std::string_view name) const noexcept; // null where absent
    // In the mapping of the shard.
    std::span<const std::byte> bytes(const Tensor& tensor) const noexcept;
    // Copies the tensor; `into` has exactly its size. Throws Failure on I/O errors.
    void read(const Tensor& tensor, std::span<std::byte> into) const;

  private:
    Checkpoint() = default;
    void open_shards();
    void open_indexed(const std::filesystem::path& index_file);
    void open_shard(const std::string& name);
    void add_tensor(std::uint32_t shard, const TensorEntry& entry);
    void describe();
    void check_layout();
    void check_tensor(const model::ExpectedTensor& expected, std::vector<bool>& seen);
    void put_errors_first();
    void error(std::string message, std::string fix = {});

    std::filesystem::path directory_;
    std::vector<Shard> shards_;
    std::vector<Tensor> tensors_;
    model::ModelCard card_;
    std::vector<model::Weight> weights_;
    std::vector<Finding> findings_;
};

} // namespace dsv4::checkpoint
