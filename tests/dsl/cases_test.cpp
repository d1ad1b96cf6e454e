// Runs the text cases: a pipeline and every diagnostic it must give.
#include "dsl/compile.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace {

using namespace dsv4::dsl;

// What a file needs to be complete; a section that a case writes itself is not added.
constexpr std::pair<const char*, const char*> base[] = {{"[checkpoint]\n", "id = \"owner/name\"\n"},
                                                        {"[hardware]\n", "platform = \"cpu\"\n"},
                                                        {"[topology]\n", "tp = 1\n"}};

struct Case {
    std::string title, pipeline;
    std::vector<std::string> overrides, expected;
};

std::vector<Case> read_cases(const std::filesystem::path& path) {
    std::vector<Case> cases;
    std::ifstream file(path);
    REQUIRE(file);
    enum class Part { head, pipeline, expect } part = Part::head;
    std::string line;
    bool with_base = false;
    const auto finish = [&] {
        if (!cases.empty() && with_base)
            for (const auto& [section, body] : base)
                if (std::string& text = cases.back().pipeline; text.find(section) == std::string::npos)
                    text += std::string(section) + body;
        with_base = false;
    };
    while (std::getline(file, line)) {
        if (line.starts_with("=== ")) {
            finish();
            cases.push_back({line.substr(4), {}, {}, {}});
            part = Part::head;
        } else if (line.starts_with("--- pipeline")) {
            part = Part::pipeline;
            with_base = line.find("+base") != std::string::npos;
        } else if (line == "--- expect") {
            part = Part::expect;
        } else if (part == Part::pipeline) {
            cases.back().pipeline += line + "\n";
        } else if (part == Part::expect) {
            if (!line.empty() && !line.starts_with("#")) cases.back().expected.push_back(line);
        } else if (line.starts_with("--set")) {
            cases.back().overrides.push_back(line.size() > 6 ? line.substr(6) : std::string());
        } else if (!line.empty() && !line.starts_with("#")) {
            FAIL("a line that belongs to nothing: " << line);
        }
    }
    finish();
    return cases;
}

std::string code_and_place(const Diagnostic& diagnostic, const SourceMap& sources) {
    const SourceRange& range = diagnostic.primary.range;
    const Position position = sources.position(range.source, range.begin);
    return fmt::format("{}@{}{}:{}", to_string(diagnostic.code).substr(5),
                       range.source == 0 ? "" : fmt::format("set{}:", range.source), position.line, position.column);
}

// Everything of a diagnostic that a case may quote.
std::string all_text(const Diagnostic& diagnostic) {
    std::string out = diagnostic.message + "\n" + diagnostic.primary.text + "\n";
    for (const std::string& help : diagnostic.helps) out += help + "\n";
    for (const Fix& fix : diagnostic.fixes) out += fix.title + "\n";
    return out;
}

void check(const Case& test) {
    INFO(test.title);
    INFO(test.pipeline);
    const Compilation result = compile_text("case.toml", test.pipeline, {test.overrides});
    INFO(render_human(result.diagnostics, result.sources));
    std::vector<std::string> places, expected_places;
    for (const Diagnostic& diagnostic : result.diagnostics)
        places.push_back(code_and_place(diagnostic, result.sources));
    for (const std::string& line : test.expected) expected_places.push_back(line.substr(0, line.find(' ')));
    REQUIRE(places == expected_places);
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::string& line = test.expected[i];
        REQUIRE(line.find(' ') != std::string::npos);
        CHECK_THAT(all_text(result.diagnostics[i]), ContainsSubstring(line.substr(line.find(' ') + 1)));
    }
    CHECK(result.plan.has_value() == !has_errors(result.diagnostics));
}

} // namespace

TEST_CASE("text cases of the pipeline language") {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(DSV4_SOURCE_DIR "/tests/dsl/cases"))
        if (entry.path().extension() == ".test") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    REQUIRE(files.size() >= 6);
    for (const auto& path : files) {
        const std::vector<Case> cases = read_cases(path);
        REQUIRE(!cases.empty());
        for (const Case& test : cases) DYNAMIC_SECTION(path.filename().string() << ": " << test.title) {
                check(test);
            }
    }
}
