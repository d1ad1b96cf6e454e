// open, mmap and pread behind one owner.
#include "core/checkpoint/file.hpp"

#include "dsv4/sdk/result.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace dsv4::checkpoint {
namespace {

[[noreturn]] void fail_errno(int number, const std::string& what) {
    const Code code = number == ENOENT || number == ENOTDIR ? Code::not_found : Code::environment;
    throw Failure(code, what + ": " + std::generic_category().message(number));
}

} // namespace

File::File(const std::filesystem::path& path) : name_(path.string()) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_errno(errno, "cannot open " + name_);
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
        close();
        throw Failure(Code::invalid, name_ + " is not a regular file");
    }
    size_bytes_ = static_cast<std::uint64_t>(info.st_size);
    if (size_bytes_ == 0) return; // an empty range cannot be mapped
    if (size_bytes_ > std::numeric_limits<std::size_t>::max() / 2) {
        close();
        throw Failure(Code::exhausted, name_ + " is too large for this address space");
    }
    void* map = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_SHARED, descriptor_, 0);
    if (map == MAP_FAILED) {
        const int number = errno;
        close();
        fail_errno(number, "cannot map " + name_);
    }
    map_ = map;
}

File::~File() { close(); }

File::File(File&& other) noexcept { *this = std::move(other); }

File& File::operator=(File&& other) noexcept {
    if (this == &other) return *this;
    close();
    name_ = std::move(other.name_);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    descriptor_ = std::exchange(other.descriptor_, -1);
    map_ = std::exchange(other.map_, nullptr);
    return *this;
}

void File::close() noexcept {
    if (map_) ::munmap(map_, size_bytes_);
    if (descriptor_ >= 0) ::close(descriptor_);
    map_ = nullptr;
    descriptor_ = -1;
}

std::span<const std::byte> File::bytes() const noexcept {
    return {static_cast<const std::byte*>(map_), map_ ? size_bytes_ : 0};
}

void File::read(std::uint64_t offset, std::span<std::byte> into) const {
    while (!into.empty()) {
        const std::size_t most = std::min<std::size_t>(into.size(), std::size_t{1} << 30);
        const ssize_t got = ::pread(descriptor_, into.data(), most, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_errno(errno, "cannot read " + name_ + " at byte " + std::to_string(offset));
        if (got == 0)
            throw Failure(Code::corrupt,
                          name_ + " ends at byte " + std::to_string(offset) +
                              "; it was shortened while it was being read",
                          "do not change a checkpoint that is in use");
        into = into.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
}

void File::will_need(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    if (bytes > 0)
        ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

std::string read_text(const std::filesystem::path& path, std::uint64_t most_bytes) {
    const File file(path);
    if (file.size_bytes() > most_bytes)
        throw Failure(Code::invalid, file.name() + " has " + std::to_string(file.size_bytes()) +
                                         " bytes; expected at most " + std::to_string(most_bytes));
    std::string text(file.size_bytes(), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    return text;
}

} // namespace dsv4::checkpoint
