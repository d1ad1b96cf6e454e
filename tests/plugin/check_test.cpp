// A plugin that crashes, exits or hangs while it is tried out gives a report, and the host lives on.
#include "core/plugin/check.hpp"
#include "core/plugin/inspect.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::plugin;

namespace {

CheckStep last_step(const std::string& name, CheckOptions options = {}) {
    const auto report = check(examine(built(name)), options);
    REQUIRE_FALSE(report.steps.empty());
    CHECK_FALSE(report.passed());
    return report.steps.back();
}

} // namespace

TEST_CASE("a good plugin passes every step") {
    const auto report = check(examine(built("parser-good")));
    CHECK(report.passed());
    std::vector<std::string> names;
    for (const auto& s : report.steps) {
        names.push_back(s.name);
        CHECK(s.result == StepResult::passed);
    }
    CHECK(names == std::vector<std::string>{"file", "load", "create parser", "destroy parser"});
}

TEST_CASE("a crash in create is reported with its signal") {
    const auto step = last_step("parser-crash");
    CHECK(step.name == "create parser");
    CHECK(step.result == StepResult::failed);
    CHECK(step.detail == "plugin parser-crash crashed in \"create parser\" with SIGSEGV (Segmentation fault)");
}

TEST_CASE("an exception that ends the process is reported") {
    CHECK_THAT(last_step("parser-noexcept-throw").detail,
               ContainsSubstring("crashed in \"create parser\" with SIGABRT"));
    CHECK_THAT(last_step("parser-raw-throw").detail, ContainsSubstring("threw a C++ exception over the C boundary"));
}

TEST_CASE("an exit and a hang are reported") {
    CHECK_THAT(last_step("parser-exits").detail,
               ContainsSubstring("ended the process in \"create parser\" with exit code 7"));
    CheckOptions options;
    options.timeout = std::chrono::seconds(1);
    CHECK_THAT(last_step("parser-hangs", options).detail,
               ContainsSubstring("did not finish \"create parser\" within 1 s"));
}

TEST_CASE("errors of the plugin, its file and its options are steps that failed") {
    CHECK_THAT(last_step("parser-sdk-throw").detail, ContainsSubstring("the constructor gave up"));
    CHECK(last_step("parser-no-manifest").name == "file");
    CHECK(last_step("parser-wrong-major").name == "load");
    CheckOptions options;
    options.options["repeat"].value = std::int64_t{99};
    const auto step = last_step("parser-good", options);
    CHECK(step.name == "options");
    CHECK_THAT(step.detail, ContainsSubstring("option \"repeat\" is 99; it must be at most 8"));
}

TEST_CASE("a report prints each step and its fix") {
    const auto text = check_text(check(examine(built("parser-crash"))));
    CHECK_THAT(text, ContainsSubstring("passed  load"));
    CHECK_THAT(text, ContainsSubstring("failed  create parser  plugin parser-crash crashed"));
    CHECK_THAT(text, ContainsSubstring("fix: report this to the plugin's author"));
}
