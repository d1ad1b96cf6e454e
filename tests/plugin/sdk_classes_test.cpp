// The SDK's base classes for speculation, transports and engines, through their C tables.
#include "dsv4/sdk/engine.hpp"
#include "dsv4/sdk/spec.hpp"
#include "dsv4/sdk/transport.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

using namespace dsv4;
using sdk::str;
using sdk::view;

namespace {

class HalfSpec final : public sdk::Spec {
  public:
    HalfSpec() { info_.struct_size = sizeof info_, info_.max_tokens = 5; }
    const dsv4_spec_info& info() const noexcept override { return info_; }
    std::string_view context_program(dsv4_precision p) override {
        return p == DSV4_SCORE ? "context score" : "context serve";
    }
    std::string_view draft_program(dsv4_precision) override { throw Failure(Code::unsupported, "no draft"); }
    void choose_lengths(const dsv4_length_query& query, std::span<std::uint32_t> lengths) override {
        for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = std::uint32_t(query.room[i]);
    }
    void observe(std::span<const std::uint32_t> verified, std::span<const std::uint32_t> accepted) noexcept override {
        seen = verified[1] * 10 + accepted[1];
    }
    std::uint32_t seen = 0;

  private:
    dsv4_spec_info info_{};
};

class Loopback final : public sdk::Transport {
    class Wire final : public sdk::Channel {
      public:
        void send(std::uint32_t type, std::string_view payload, std::uint64_t) override {
            queue_.emplace_back(type, payload);
        }
        Message receive(std::uint64_t) override {
            if (queue_.empty()) throw Failure(Code::deadline, "nothing came");
            last_ = queue_.front();
            queue_.pop_front();
            return {last_.first, last_.second};
        }
        void put(dsv4_memory_kind, const void* memory, std::uint64_t bytes, std::uint64_t) override {
            bulk_.assign(static_cast<const char*>(memory), bytes);
        }
        void get(dsv4_memory_kind, void* memory, std::uint64_t bytes, std::uint64_t) override {
            std::memcpy(memory, bulk_.data(), std::min<std::size_t>(bytes, bulk_.size()));
        }
        std::optional<Error> health() override {
            if (queue_.empty()) return std::nullopt;
            return Error{Code::environment, "someone waits", "read"};
        }

      private:
        std::deque<std::pair<std::uint32_t, std::string>> queue_;
        std::pair<std::uint32_t, std::string> last_;
        std::string bulk_;
    };

  public:
    std::unique_ptr<sdk::Channel> open(const dsv4_channel_config& config) override {
        if (view(config.endpoint) != "loop://") throw Failure(Code::invalid, "only loop:// works");
        return std::make_unique<Wire>();
    }
};

class Launcher final : public sdk::Engine {
  public:
    sdk::Launch launch(std::string_view plan_json) const override {
        if (plan_json != "{}") throw Failure(Code::unsupported, "kv.dtype cannot be expressed");
        sdk::Process p;
        p.argv = {"engine", "--port", "1"};
        p.environment = {{"KEY", "env:SECRET"}};
        p.files = {{"conf.json", "{}"}};
        p.endpoint = "http://127.0.0.1:1";
        return {{p, p}, "http://127.0.0.1:2", "http://127.0.0.1:2/metrics"};
    }
    std::string parse_version(std::string_view output) const override {
        return std::string(output.substr(output.find(' ') + 1));
    }
};

} // namespace

TEST_CASE("a speculation class behind its table") {
    HalfSpec spec;
    auto* self = static_cast<sdk::Spec*>(&spec);
    const auto& t = sdk::Spec::table();
    CHECK(t.struct_size == sizeof(dsv4_spec_table));
    CHECK(t.info(self)->max_tokens == 5);
    dsv4_str program{};
    sdk::check(t.context_program(self, DSV4_SERVE, &program));
    CHECK(view(program) == "context serve");
    CHECK(sdk::take_error(t.draft_program(self, DSV4_SERVE, &program)).message == "no draft");
    const std::int64_t room[] = {5, 2}, too_much[] = {0, 6};
    dsv4_length_query query{sizeof query, 2, nullptr, room};
    std::uint32_t lengths[2] = {};
    sdk::check(t.choose_lengths(self, &query, lengths));
    CHECK(lengths[0] == 5);
    CHECK(lengths[1] == 2);
    query.room = too_much;
    CHECK(sdk::take_error(t.choose_lengths(self, &query, lengths)).code == Code::internal);
    const std::uint32_t verified[] = {1, 4}, accepted[] = {1, 3};
    t.observe(self, verified, accepted, 2);
    CHECK(spec.seen == 43);
}

TEST_CASE("a transport class behind its table") {
    Loopback loop;
    auto* self = static_cast<sdk::Transport*>(&loop);
    const auto& t = sdk::Transport::table();
    dsv4_channel_config config{};
    dsv4_channel* channel = nullptr;
    CHECK(sdk::take_error(t.open(self, &config, &channel)).code == Code::invalid);
    config.endpoint = str("loop://");
    sdk::check(t.open(self, &config, &channel));
    CHECK(t.health(channel) == nullptr);
    sdk::check(t.send(channel, 7, str("hello"), 1));
    CHECK(sdk::take_error(t.health(channel)).fix == "read");
    std::uint32_t type = 0;
    dsv4_str payload{};
    sdk::check(t.receive(channel, 1, &type, &payload));
    CHECK(type == 7);
    CHECK(view(payload) == "hello");
    CHECK(sdk::take_error(t.receive(channel, 1, &type, &payload)).code == Code::deadline);
    char out[4] = {};
    sdk::check(t.put(channel, DSV4_MEMORY_HOST, "bulk", 4, 1));
    sdk::check(t.get(channel, DSV4_MEMORY_HOST, out, 4, 1));
    CHECK(std::string_view(out, 4) == "bulk");
    t.close(channel);
}

TEST_CASE("an engine class behind its table") {
    Launcher launcher;
    auto* self = static_cast<sdk::Engine*>(&launcher);
    const auto& t = sdk::Engine::table();
    const dsv4_launch* launch = nullptr;
    CHECK(sdk::take_error(t.launch(self, str("[]"), &launch)).message == "kv.dtype cannot be expressed");
    sdk::check(t.launch(self, str("{}"), &launch));
    REQUIRE(launch->process_count == 2);
    CHECK(launch->process_bytes == sizeof(dsv4_process));
    const auto& p = launch->processes[1];
    REQUIRE(p.argc == 3);
    CHECK(view(p.argv[1]) == "--port");
    REQUIRE(p.environment_count == 1);
    CHECK(view(p.environment[0].value) == "env:SECRET");
    REQUIRE(p.file_count == 1);
    CHECK(view(p.files[0].path) == "conf.json");
    CHECK(view(p.health_path) == "/health");
    CHECK(view(launch->metrics_url) == "http://127.0.0.1:2/metrics");
    t.launch_release(self, launch);
    dsv4_str version{};
    sdk::check(t.parse_version(self, str("engine 0.25.0"), &version));
    CHECK(view(version) == "0.25.0");
}
