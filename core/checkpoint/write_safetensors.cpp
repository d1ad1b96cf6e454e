// The inverse of the safetensors reader.
#include "core/checkpoint/write_safetensors.hpp"

#include "core/checkpoint/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace dsv4::checkpoint {
namespace {

namespace fs = std::filesystem;

// A file under a temporary name that is removed unless it is committed.
class PendingFile {
  public:
    explicit PendingFile(const fs::path& target)
        : target_(target), pattern_(target.string() + ".XXXXXX"), descriptor_(::mkostemp(pattern_.data(), O_CLOEXEC)) {
        if (descriptor_ < 0) fail("cannot create a file beside " + target_.string());
    }
    ~PendingFile() {
        if (descriptor_ < 0) return;
        ::close(descriptor_);
        ::unlink(pattern_.c_str());
    }
    PendingFile(const PendingFile&) = delete;
    PendingFile& operator=(const PendingFile&) = delete;

    void write(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t put = ::write(descriptor_, bytes.data(), std::min<std::size_t>(bytes.size(), 1u << 30));
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) fail("cannot write " + target_.string());
            bytes = bytes.subspan(static_cast<std::size_t>(put));
        }
    }

    void commit() {
        // mkostemp creates files for the owner only; results are ordinary files.
        if (::fchmod(descriptor_, 0644) != 0 || ::fsync(descriptor_) != 0) fail("cannot write " + target_.string());
        if (::rename(pattern_.c_str(), target_.c_str()) != 0) fail("cannot create " + target_.string());
        ::close(descriptor_);
        descriptor_ = -1;
    }

  private:
    [[noreturn]] static void fail(const std::string& what) {
        throw Failure(Code::environment, what + ": " + std::generic_category().message(errno));
    }

    fs::path target_;
    std::string pattern_;
    int descriptor_;
};

void check(const TensorView& t, const std::string& where) {
    std::uint64_t product = model::width_bytes(t.dtype);
    bool overflow = false, negative = false;
    for (const std::int64_t d : t.shape) {
        negative = negative || d < 0;
        overflow = overflow || __builtin_mul_overflow(product, static_cast<std::uint64_t>(d), &product);
    }
    if (t.name.empty() || t.name == "__metadata__")
        throw Failure(Code::invalid, where + ": a tensor cannot be named \"" + t.name + "\"");
    if (negative || overflow || product != t.bytes.size())
        throw Failure(Code::invalid, where + ": tensor " + t.name + " has " + std::to_string(t.bytes.size()) +
                                         " bytes, which does not match its shape " + shape_text(t.shape) + " of " +
                                         std::string(model::dtype_name(t.dtype)));
}

std::string header_text(const std::vector<const TensorView*>& order, const std::map<std::string, std::string>& metadata,
                        const std::string& where) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::uint64_t offset = 0;
    for (const TensorView* t : order) {
        header[t->name] = {{"dtype", model::dtype_name(t->dtype)},
                           {"shape", t->shape},
                           {"data_offsets", {offset, offset + t->bytes.size()}}};
        offset += t->bytes.size();
    }
    std::string text;
    try {
        text = header.dump();
    } catch (const nlohmann::json::exception&) {
        throw Failure(Code::invalid, where + ": a tensor name or metadata text is not UTF-8");
    }
    text.append((8 - text.size() % 8) % 8, ' '); // the payload starts aligned
    if (text.size() > max_header_bytes)
        throw Failure(Code::invalid, where + ": the header would have " + std::to_string(text.size()) +
                                         " bytes; the format allows " + std::to_string(max_header_bytes));
    return text;
}

} // namespace

Status write_safetensors(const fs::path& path, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata) {
    return guard([&] {
        const std::string where = path.string();
        // Only a file is replaced: never a device, a pipe or a link's own name.
        std::error_code unreadable;
        const auto status = fs::status(path, unreadable); // follows links
        if (fs::exists(status) && !fs::is_regular_file(status))
            throw Failure(Code::environment, where + " is not a regular file", "name a file to write");
        const fs::path target = fs::exists(status) ? fs::canonical(path) : path;
        std::vector<const TensorView*> order;
        std::set<std::string_view> names;
        for (const TensorView& t : tensors) {
            check(t, where);
            if (!names.insert(t.name).second)
                throw Failure(Code::invalid, where + ": tensor " + t.name + " is given twice");
            order.push_back(&t);
        }
        std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
            const std::size_t wa = model::width_bytes(a->dtype), wb = model::width_bytes(b->dtype);
            return wa != wb ? wa > wb : a->name < b->name;
        });
        const std::string header = header_text(order, metadata, where);
        PendingFile file(target);
        std::byte length[8];
        for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));
        file.write(length);
        file.write(std::as_bytes(std::span(header)));
        for (const TensorView* t : order) file.write(t->bytes);
        file.commit();
    });
}

} // namespace dsv4::checkpoint
