// Resolves secrets from the environment and from files with checked permissions.
#include "core/host/secrets.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace dsv4::host {
namespace {

class Descriptor {
  public:
    explicit Descriptor(int value) : value_(value) {}
    ~Descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return value_; }

  private:
    int value_;
};

std::string from_environment(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    if (!value || !*value)
        throw Failure(Code::not_found, fmt::format("the environment variable {} for a secret is not set", name),
                      fmt::format("set {} before the program starts", name));
    return value;
}

std::string from_file(const std::string& path) {
    if (path.empty() || path[0] != '/')
        throw Failure(Code::invalid, fmt::format("the secret file \"{}\" is not an absolute path", path),
                      "write file:/absolute/path");
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) {
        const int reason = errno;
        throw Failure(reason == ENOENT ? Code::not_found : Code::environment,
                      fmt::format("the secret file {} cannot be read: {}", path, std::strerror(reason)),
                      "create it, readable for this user");
    }
    struct stat info {};
    if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
        throw Failure(Code::environment, fmt::format("the secret file {} is not a regular file", path));
    if (info.st_mode & (S_IWGRP | S_IRWXO))
        throw Failure(Code::environment,
                      fmt::format("the secret file {} is open to other users (mode {:04o})", path,
                                  unsigned(info.st_mode & 07777)),
                      fmt::format("chmod 600 {}", path));
    if (std::uint64_t(info.st_size) > max_secret_bytes)
        throw Failure(Code::exhausted,
                      fmt::format("the secret file {} has more than {} bytes", path, max_secret_bytes));
    std::string text(max_secret_bytes + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const auto n = ::read(file.get(), text.data() + size, text.size() - size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            throw Failure(Code::environment,
                          fmt::format("the secret file {} cannot be read: {}", path, std::strerror(errno)));
        if (n == 0) break;
        size += std::size_t(n);
    }
    if (size > max_secret_bytes)
        throw Failure(Code::exhausted,
                      fmt::format("the secret file {} has more than {} bytes", path, max_secret_bytes));
    if (size && text[size - 1] == '\n') --size;
    std::string secret(text.data(), size);
    wipe(text.data(), text.size());
    if (secret.empty()) throw Failure(Code::not_found, fmt::format("the secret file {} is empty", path));
    return secret;
}

} // namespace

Result<std::string> resolve_secret(std::string_view reference) {
    return guard([&] {
        if (reference.substr(0, 4) == "env:" && reference.size() > 4)
            return from_environment(std::string(reference.substr(4)));
        if (reference.substr(0, 5) == "file:") return from_file(std::string(reference.substr(5)));
        // The reference may be the secret itself, written here by mistake: it is not repeated.
        throw Failure(Code::invalid, "a secret is given neither as env:NAME nor as file:PATH",
                      "put the text into a file or an environment variable and name that");
    });
}

void wipe(char* text, std::size_t bytes) noexcept { sodium_memzero(text, bytes); }

} // namespace dsv4::host
