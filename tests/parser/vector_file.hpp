// Reads the committed encoding and parsing vectors.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace dsv4::test {

using Json = nlohmann::ordered_json;

struct VectorFile {
    std::string name;
    std::string text; // as committed: key order and number spelling intact
    Json json;
};

// Every file of tests/vectors/<folder> whose name starts with `prefix`, in order of name.
inline std::vector<VectorFile> read_vectors(const std::string& folder, const std::string& prefix) {
    std::vector<VectorFile> out;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(DSV4_SOURCE_DIR "/tests/vectors/") + folder)) {
        const std::string name = entry.path().stem().string();
        if (!name.starts_with(prefix) || entry.path().extension() != ".json") continue;
        std::ifstream file(entry.path(), std::ios::binary);
        std::stringstream text;
        text << file.rdbuf();
        out.push_back({name, text.str(), Json::parse(text.str())});
    }
    std::sort(out.begin(), out.end(), [](const VectorFile& a, const VectorFile& b) { return a.name < b.name; });
    return out;
}

} // namespace dsv4::test
