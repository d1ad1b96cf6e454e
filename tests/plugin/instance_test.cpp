// Instances: options reach the plugin, the host's services answer, errors keep their code and fix, and ends are
// orderly.
#include "core/plugin/instance.hpp"
#include "dsv4/sdk/error.hpp"
#include "temp_dir.hpp"
#include "tests/support/catch.hpp"

#include <fmt/format.h>

#include <dlfcn.h>

using namespace dsv4;
using namespace dsv4::plugin;

namespace {

struct Fixture {
    std::vector<std::string> lines;
    host::Host host{[this] {
        host::HostOptions o;
        o.threads = 3;
        o.log.sink = [this](std::string_view line) { lines.emplace_back(line); };
        return o;
    }()};
    std::shared_ptr<Library> library = Library::load(built("parser-good")).value();
};

std::string encode(const Instance& instance, std::string_view messages) {
    dsv4_chat_request request{};
    request.struct_size = sizeof request;
    request.messages = sdk::str(messages);
    const dsv4_prompt* prompt = nullptr;
    const auto& table = instance.table<dsv4_parser_table>();
    sdk::check(table.encode(instance.self(), &request, &prompt));
    std::string text;
    for (std::uint32_t i = 0; i < prompt->segment_count; ++i)
        text += fmt::format("{};", sdk::view(prompt->segments[i].text));
    table.prompt_release(instance.self(), prompt);
    return text;
}

bool is_loaded(const std::string& name) {
    void* handle = ::dlopen(built(name).c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle) ::dlclose(handle);
    return handle != nullptr;
}

} // namespace

TEST_CASE_METHOD(Fixture, "defaults and given options reach the plugin") {
    auto defaults = Instance::create(library, Kind::parser, {}, host);
    REQUIRE(defaults.ok());
    // 0^2 + ... + 999^2 = 332833500, summed in the host's pool.
    CHECK(encode(*defaults, "[]") == "hello|1|0.500000|quiet|2097152|plain;332833500;");
    plan::Options options;
    options["greeting"].value = std::string("moin");
    options["repeat"].value = std::int64_t{8};
    options["share"].value = std::int64_t{1};
    options["loud"].value = true;
    options["budget"].value = std::string("3 KiB");
    options["mode"].value = std::string("fancy");
    auto given = Instance::create(library, Kind::parser, options, host);
    REQUIRE(given.ok());
    CHECK(encode(*given, "[]") == "moin|8|1.000000|loud|3072|fancy;332833500;");
}

TEST_CASE_METHOD(Fixture, "errors of the plugin keep code, sentence and fix") {
    plan::Options options;
    options["fail"].value = true;
    const auto instance = Instance::create(library, Kind::parser, options, host);
    REQUIRE_FALSE(instance.ok());
    CHECK(instance.error().code == Code::environment);
    CHECK(instance.error().message == "plugin parser-good cannot start: the echo is broken");
    CHECK(instance.error().fix == "mend the echo");
    const auto works = Instance::create(library, Kind::parser, {}, host);
    try {
        encode(*works, "throw");
        FAIL("nothing was thrown");
    } catch (const Failure& f) {
        CHECK(f.error().code == Code::invalid);
        CHECK(f.error().message == "these messages cannot be read");
    }
}

TEST_CASE_METHOD(Fixture, "a kind that the plugin does not offer is refused") {
    const auto instance = Instance::create(library, Kind::backend, {}, host);
    REQUIRE_FALSE(instance.ok());
    CHECK(instance.error().code == Code::unsupported);
    CHECK(instance.error().message == "plugin parser-good is no backend");
    const auto parser = Instance::create(library, Kind::parser, {}, host);
    CHECK_THROWS_AS(parser->table<dsv4_backend_table>(), Failure);
}

TEST_CASE_METHOD(Fixture, "log lines carry the plugin's name and cannot be forged") {
    REQUIRE(Instance::create(library, Kind::parser, {}, host).ok());
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], ContainsSubstring("info [parser-good] made\\nwith a forged line"));
}

TEST_CASE_METHOD(Fixture, "an instance moves and ends once") {
    auto first = Instance::create(library, Kind::parser, {}, host);
    REQUIRE(first.ok());
    Instance second = std::move(*first);
    CHECK(encode(second, "[]").substr(0, 5) == "hello");
    auto third = Instance::create(library, Kind::parser, {}, host);
    second = std::move(*third);
    CHECK(encode(second, "[]").substr(0, 5) == "hello");
    CHECK(second.name() == "parser-good");
}

TEST_CASE("a library is unmapped until an instance was made, and stays from then on") {
    REQUIRE_FALSE(is_loaded("parser-unmapped"));
    {
        const auto library = Library::load(built("parser-unmapped")).value();
        CHECK(is_loaded("parser-unmapped"));
    }
    CHECK_FALSE(is_loaded("parser-unmapped"));
    host::Host host;
    {
        const auto library = Library::load(built("parser-unmapped")).value();
        REQUIRE(Instance::create(library, Kind::parser, {}, host).ok());
    }
    CHECK(is_loaded("parser-unmapped"));
}
