// A read-only file that is both mapped (for views) and readable by offset (for copies that report I/O errors).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace dsv4::checkpoint {

// Errors are thrown as Failure and name the file. All members are const and may be called from several threads.
class File {
  public:
    explicit File(const std::filesystem::path& path);
    ~File();
    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    std::uint64_t size_bytes() const noexcept { return size_bytes_; }
    const std::string& name() const noexcept { return name_; }

    // The whole file, paged in on first touch. Valid while this object lives. Touching pages of a file that someone
    // shortens meanwhile ends the process (SIGBUS); read() reports the same as an error.
    std::span<const std::byte> bytes() const noexcept;
    // Fills `into` from `offset`.
    void read(std::uint64_t offset, std::span<std::byte> into) const;
    // Asks the kernel to fetch the range in the background; a hint, so failure is ignored.
    void will_need(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  private:
    void close() noexcept;

    std::string name_;
    std::uint64_t size_bytes_ = 0;
    int descriptor_ = -1;
    void* map_ = nullptr;
};

// The whole text of a small file; Failure where it is missing or has more than `most_bytes`.
std::string read_text(const std::filesystem::path& path, std::uint64_t most_bytes);

} // namespace dsv4::checkpoint
