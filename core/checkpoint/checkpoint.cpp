// Opens a checkpoint directory and holds what it provides against what its geometry needs.
#include "core/checkpoint/checkpoint.hpp"

#include "core/checkpoint/shard_index.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

namespace dsv4::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_config_bytes = 16u << 20;
constexpr std::uint64_t max_index_bytes = 256u << 20;
constexpr std::uint64_t max_encoder_bytes = 1u << 20;

bool is_file(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

// The names of the regular files in `directory` with this ending, sorted; empty where there is no such directory.
std::vector<std::string> files_in(const fs::path& directory, std::string_view extension) {
    std::vector<std::string> names;
    std::error_code ignored;
    for (fs::directory_iterator it(directory, ignored), end; it != end; it.increment(ignored))
        if (it->path().extension() == extension && is_file(it->path())) names.push_back(it->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

// The prompt encoder that publishers ship as Python under encoding/.
void read_encoder(const fs::path& directory, model::CardInput& input) {
    for (const std::string& name : files_in(directory / "encoding", ".py")) {
        const fs::path path = directory / "encoding" / name;
        std::error_code ignored;
        if (name.starts_with("test") || fs::file_size(path, ignored) > max_encoder_bytes) continue;
        if (input.encoder_name.empty()) input.encoder_name = "encoding/" + name;
        input.encoder_text += read_text(path, max_encoder_bytes);
    }
}

} // namespace

Result<Checkpoint> Checkpoint::open(const fs::path& directory) {
    return guard([&] {
        Checkpoint c;
        c.directory_ = directory;
        std::error_code ignored;
        if (!fs::is_directory(directory, ignored))
            throw Failure(Code::not_found, "there is no checkpoint directory " + directory.string());
        if (!is_file(directory / "config.json"))
            throw Failure(Code::not_found,
                          directory.string() + " holds no config.json, so it is not a checkpoint directory",
                          "name the folder that holds config.json and the .safetensors files");
        c.open_shards();
        c.describe();
        c.check_layout();
        c.put_errors_first();
        return c;
    });
}

void Checkpoint::open_shards() {
    const fs::path index_file = directory_ / "model.safetensors.index.json";
    if (is_file(index_file)) {
        open_indexed(index_file);
    } else if (is_file(directory_ / "model.safetensors")) {
        open_shard("model.safetensors");
        for (const TensorEntry& t : shards_.front().file.tensors()) add_tensor(0, t);
    } else {
        const auto found = files_in(directory_, ".safetensors");
        if (found.empty())
            throw Failure(Code::not_found,
                          directory_.string() + " holds neither model.safetensors nor " +
                              "model.safetensors.index.json",
                          "fetch the weights; a config alone is not a checkpoint");
        throw Failure(Code::not_found,
                      directory_.string() + " holds " + std::to_string(found.size()) + " .safetensors files (" +
                          found.front() + (found.size() > 1 ? ", ..." : "") +
                          ") but no model.safetensors.index.json that says which tensor lies where",
                      "fetch the index as well, or name a single file model.safetensors");
    }
    std::sort(tensors_.begin(), tensors_.end(), [](const Tensor& a, const Tensor& b) { return a.name() < b.name(); });
}

void Checkpoint::open_indexed(const fs::path& index_file) {
    const std::string index_name = index_file.filename().string();
    const ShardIndex index = parse_shard_index(read_text(index_file, max_index_bytes), index_name).value();
    std::map<std::string, std::vector<const std::string*>> listed; // shard to tensors
    for (const auto& [tensor, shard] : index.shard_of) listed[shard].push_back(&tensor);
    for (const auto& [name, names] : listed)
        if (!is_file(directory_ / name))
            throw Failure(Code::not_found,
                          "shard " + name + " is missing from " + directory_.string() + "; the index places tensor " +
                              *names.front() + " and " + std::to_string(names.size() - 1) + " others in it",
                          "fetch the missing shard; an interrupted download leaves such gaps");
    shards_.reserve(listed.size());
    std::uint64_t total = 0;
    for (const auto& [name, names] : listed) {
        open_shard(name);
        const auto shard = static_cast<std::uint32_t>(shards_.size() - 1);
        std::set<std::string_view> wanted;
        for (const std::string* tensor : names) wanted.insert(*tensor);
        for (const TensorEntry& t : shards_.back().file.tensors()) {
            if (wanted.erase(t.name) == 1) {
                total += t.size_bytes;
                add_tensor(shard, t);
            } else if (const auto other = index.shard_of.find(t.name); other != index.shard_of.end()) {
                error("tensor " + t.name + " lies in shard " + name + ", but the index places it in " + other->second,
                      "fetch the index and the shards of one revision");
            } else {
                findings_.push_back(
                    {Severity::note,
                     "shard " + name + " holds tensor " + t.name + ", which the index does not list; it is not loaded",
                     {}});
            }
        }
        if (!wanted.empty())
            throw Failure(Code::corrupt,
                          "shard " + name + " does not hold tensor " + std::string(*wanted.begin()) +
                              ", which the index places there",
                          "fetch the index and the shards of one revision");
    }
    if (index.total_bytes && *index.total_bytes != total)
        error(index_name + " states a total_size of " + std::to_string(*index.total_bytes) +
                  " bytes, but its tensors have " + std::to_string(total),
              "fetch the index and the shards of one revision");
}

void Checkpoint::open_shard(const std::string& name) {
    Result<SafetensorsFile> file = SafetensorsFile::open(directory_ / name);
    if (!file) {
        Error e = file.error();
        e.message = "shard " + name + " cannot be read: " + e.message;
        throw Failure(std::move(e));
    }
    shards_.push_back({name, std::move(*file)});
    if (const std::uint64_t unused = shards_.back().file.header().unused_bytes; unused > 0)
        findings_.push_back(
            {Severity::note, "shard " + name + " has " + std::to_string(unused) + " unused bytes between tensors", {}});
}

void Checkpoint::add_tensor(std::uint32_t shard, const TensorEntry& entry) {
    tensors_.push_back({&entry, shard, shards_[shard].file.header().payload_offset_bytes + entry.offset_bytes});
}

void Checkpoint::describe() {
    const std::string config = read_text(directory_ / "config.json", max_config_bytes);
    std::vector<model::TensorFact> facts;
    facts.reserve(tensors_.size());
    for (const Tensor& t : tensors_)
        facts.push_back({t.name(), t.entry->dtype, t.entry->shape, static_cast<std::int64_t>(t.entry->size_bytes)});
    model::CardInput input;
    input.config_json = config;
    input.config_name = "config.json";
    input.tensors = facts;
    input.shards = shards_.size();
    read_encoder(directory_, input);
    card_ = std::move(model::make_card(input).value());
}

void Checkpoint::error(std::string message, std::string fix) {
    findings_.push_back({Severity::error, std::move(message), std::move(fix)});
}

void Checkpoint::check_layout() {
    try {
        weights_ = model::weights(card_.geometry, card_.weight_options());
    } catch (const Failure& f) {
        error(f.error().message, f.error().fix);
        return;
    }
    std::vector<bool> seen(tensors_.size(), false);
    for (const model::Weight& w : weights_) {
        check_tensor(model::data_tensor(w), seen);
        if (!w.scale_tensor.empty()) check_tensor(model::scale_tensor(w), seen);
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        if (seen[i]) continue;
        if (tensors_[i].name().starts_with("mtp."))
            error("tensor " + tensors_[i].name() + " belongs to no known " +
                      std::string(model::draft_kind_name(card_.draft)) + " draft stage",
                  "a draft module of another kind or version cannot be loaded");
        else
            findings_.push_back(
                {Severity::note, "tensor " + tensors_[i].name() + " is not part of this model; it is not loaded", {}});
    }
}

void Checkpoint::check_tensor(const model::ExpectedTensor& expected, std::vector<bool>& seen) {
    const Tensor* found = find(expected.name);
    if (!found) {
        error("tensor " + expected.name + " is missing; expected " + std::string(model::dtype_name(expected.dtype)) +
                  " " + shape_text(expected.shape),
              "fetch the whole checkpoint, or use the config.json that belongs to it");
        return;
    }
    seen[static_cast<std::size_t>(found - tensors_.data())] = true;
    const std::string in_shard = " in shard " + shards_[found->shard].name;
    if (found->entry->dtype != expected.dtype)
        error("tensor " + expected.name + in_shard + " has dtype " +
                  std::string(model::dtype_name(found->entry->dtype)) + "; expected " +
                  std::string(model::dtype_name(expected.dtype)),
              "use a checkpoint in the released layout");
    if (found->entry->shape != expected.shape)
        error("tensor " + expected.name + in_shard + " has shape " + shape_text(found->entry->shape) + "; expected " +
                  shape_text(expected.shape),
              "use the config.json that was published with these weights");
}

void Checkpoint::put_errors_first() {
    std::vector<Finding> sorted;
    sorted.reserve(findings_.size());
    for (const Severity severity : {Severity::error, Severity::note})
        for (Finding& f : findings_)
            if (f.severity == severity) sorted.push_back(std::move(f));
    findings_ = std::move(sorted);
}

Status Checkpoint::loadable() const {
    if (findings_.empty() || findings_.front().severity != Severity::error) return {};
    const auto errors = std::count_if(findings_.begin(), findings_.end(),
                                      [](const Finding& f) { return f.severity == Severity::error; });
    std::string message = findings_.front().message;
    if (errors > 1) message += " (and " + std::to_string(errors - 1) + " more errors in this checkpoint)";
    return Error{Code::corrupt, std::move(message), findings_.front().fix};
}

const Tensor* Checkpoint::find(std::string_view name) const noexcept {
    const auto it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                     [](const Tensor& t, std::string_view n) { return t.name() < n; });
    return it != tensors_.end() && it->name() == name ? &*it : nullptr;
}

std::span<const std::byte> Checkpoint::bytes(const Tensor& tensor) const noexcept {
    return shards_[tensor.shard].file.bytes(*tensor.entry);
}

void Checkpoint::read(const Tensor& tensor, std::span<std::byte> into) const {
    if (into.size() != tensor.entry->size_bytes)
        throw Failure(Code::internal,
                      "a buffer of " + std::to_string(into.size()) + " bytes for tensor " + tensor.name());
    shards_[tensor.shard].file.file().read(tensor.file_offset_bytes, into);
}

} // namespace dsv4::checkpoint
