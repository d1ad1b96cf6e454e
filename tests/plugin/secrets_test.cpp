// Secrets: the two forms, permissions, and that no error repeats the text.
#include "core/host/secrets.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

#include <sys/stat.h>

using namespace dsv4;
using namespace dsv4::host;

TEST_CASE("a secret from the environment") {
    ::setenv("DSV4_TEST_SECRET", "s3cret", 1);
    CHECK(resolve_secret("env:DSV4_TEST_SECRET").value() == "s3cret");
    ::unsetenv("DSV4_TEST_SECRET");
    const auto missing = resolve_secret("env:DSV4_TEST_SECRET");
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == Code::not_found);
    CHECK(missing.error().message == "the environment variable DSV4_TEST_SECRET for a secret is not set");
}

TEST_CASE("a secret from a file") {
    const TempDir dir;
    const auto file = dir.write("key", "s3cret\n");
    const auto reference = "file:" + file.string();
    ::chmod(file.c_str(), 0600);
    CHECK(resolve_secret(reference).value() == "s3cret");
    ::chmod(file.c_str(), 0640);
    CHECK(resolve_secret(reference).value() == "s3cret");
    for (const mode_t mode : {0644, 0602, 0660}) {
        ::chmod(file.c_str(), mode);
        const auto open = resolve_secret(reference);
        REQUIRE_FALSE(open.ok());
        CHECK(open.error().code == Code::environment);
        CHECK_THAT(open.error().message, ContainsSubstring("is open to other users"));
        CHECK(open.error().fix == "chmod 600 " + file.string());
    }
}

TEST_CASE("bad references and files") {
    const TempDir dir;
    CHECK(resolve_secret("file:key").error().code == Code::invalid);
    CHECK(resolve_secret("file:" + (dir.path() / "none").string()).error().code == Code::not_found);
    CHECK(resolve_secret("file:" + dir.path().string()).error().code == Code::environment);
    const auto empty = dir.write("empty", "\n");
    ::chmod(empty.c_str(), 0600);
    CHECK(resolve_secret("file:" + empty.string()).error().code == Code::not_found);
    const auto large = dir.write("large", std::string(max_secret_bytes + 1, 'x'));
    ::chmod(large.c_str(), 0600);
    CHECK(resolve_secret("file:" + large.string()).error().code == Code::exhausted);
    const auto plain = resolve_secret("sk-do-not-print-me");
    REQUIRE_FALSE(plain.ok());
    CHECK(plain.error().code == Code::invalid);
    CHECK_THAT(plain.error().message + plain.error().fix, !ContainsSubstring("sk-do-not"));
}
