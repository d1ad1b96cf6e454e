// knowledge/plugins describes every bundled plugin, and each built one embeds exactly that text.
#include "core/plugin/candidate.hpp"
#include "core/plugin/elf_manifest.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>

using namespace dsv4;
using namespace dsv4::plugin;

namespace {
std::vector<std::filesystem::path> files(const std::filesystem::path& directory, const std::string& extension) {
    std::vector<std::filesystem::path> list;
    if (!std::filesystem::exists(directory)) return list;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        if (entry.path().extension() == extension) list.push_back(entry.path());
    std::sort(list.begin(), list.end());
    return list;
}
const std::filesystem::path knowledge = std::filesystem::path(DSV4_SOURCE_DIR) / "knowledge/plugins";
} // namespace

TEST_CASE("every manifest in knowledge/plugins is right and named as its file") {
    const auto manifests = files(knowledge, ".toml");
    REQUIRE(manifests.size() >= 10);
    for (const auto& file : manifests) {
        INFO(file.string());
        const auto reading = read_manifest(read_file(file));
        for (const auto& p : reading.problems) FAIL_CHECK(p.line << ": " << p.message);
        if (reading.manifest) CHECK(reading.manifest->name == file.stem().string());
    }
}

TEST_CASE("every built bundled plugin loads by its rules and embeds the manifest of knowledge/plugins") {
    const auto plugins = files(DSV4_PLUGIN_DIR, ".so");
    constexpr int built = DSV4_BUNDLED_PLUGINS; // by this build; older ones may lie beside them
    REQUIRE(int(plugins.size()) >= built);
    for (const auto& file : plugins) {
        INFO(file.string());
        const auto candidate = examine(file);
        if (candidate.refusal) FAIL_CHECK(candidate.refusal->message);
        const auto source = knowledge / (file.stem().string() + ".toml");
        REQUIRE(std::filesystem::exists(source));
        CHECK(read_elf(file).value().manifest == read_file(source));
    }
}
