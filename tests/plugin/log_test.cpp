// Log lines: levels, both formats, and that no text can forge a line or a field.
#include "core/host/log.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace dsv4::host;

namespace {
std::vector<std::string> lines_of(LogFormat format, LogLevel level, const std::function<void(Log&)>& use) {
    std::vector<std::string> lines;
    LogOptions options;
    options.format = format;
    options.level = level;
    options.sink = [&](std::string_view line) { lines.emplace_back(line); };
    Log log(std::move(options));
    use(log);
    return lines;
}
} // namespace

TEST_CASE("the level decides what is written") {
    const auto lines = lines_of(LogFormat::text, LogLevel::warning, [](Log& log) {
        log.write(LogLevel::debug, "core", "a");
        log.write(LogLevel::info, "core", "b");
        log.write(LogLevel::warning, "core", "c");
        log.write(LogLevel::error, "core", "d");
        CHECK_FALSE(log.enabled(LogLevel::info));
        CHECK(log.enabled(LogLevel::error));
    });
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].substr(lines[0].find('Z')) == "Z warning [core] c");
    CHECK(lines[1].substr(lines[1].find('Z')) == "Z error [core] d");
    CHECK(lines_of(LogFormat::text, LogLevel::off, [](Log& log) { log.write(LogLevel::error, "core", "x"); }).empty());
}

TEST_CASE("text fields are quoted where they must be") {
    const auto lines = lines_of(LogFormat::text, LogLevel::debug, [](Log& log) {
        log.write(LogLevel::info, "api-openai", "one\r\ntwo\x1b[31m %v {}",
                  {{"request_id", "a-1"}, {"why", "no \"pages\" left"}, {"empty", ""}});
    });
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].substr(lines[0].find('Z')) ==
          "Z info [api-openai] one\\r\\ntwo\\u001b[31m %v {} request_id=a-1 why=\"no \\\"pages\\\" left\" empty=\"\"");
}

TEST_CASE("a JSON line is one object, also with broken UTF-8") {
    const auto lines = lines_of(LogFormat::json, LogLevel::debug, [](Log& log) {
        log.write(LogLevel::error, "core", "bad \xff byte\n\"", {{"request_id", "x"}});
    });
    REQUIRE(lines.size() == 1);
    const auto json = nlohmann::json::parse(lines[0]);
    CHECK(json["level"] == "error");
    CHECK(json["component"] == "core");
    CHECK(json["message"] == "bad \xef\xbf\xbd byte\n\"");
    CHECK(json["request_id"] == "x");
    CHECK(json["time"].get<std::string>().size() == std::string("2026-01-02T03:04:05.678901Z").size());
}

TEST_CASE("levels and formats by name") {
    CHECK(log_level("warning").value() == LogLevel::warning);
    CHECK(log_format("json").value() == LogFormat::json);
    CHECK(log_level("loud").error().message == "there is no log level \"loud\"");
    CHECK_FALSE(log_format("xml").ok());
}
