// An engine over a backend, requests as C++ values, and answers collected through the service's C table.
#pragma once

#include "core/engine/engine.hpp"
#include "tests/engine/fake_backend.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dsv4::test {

const tokenizer::Tokenizer& tiny_tokenizer();
// The built parser plugin, one instance for the process.
engine::ParserHandle loaded_parser();
// The built CPU backend, or nothing where it is not built.
std::optional<runtime::BackendHandle> loaded_cpu_backend();

// Counts what the engine reports.
class CountingMetrics final : public engine::Metrics {
  public:
    void update(engine::Metric metric, double value, std::string_view label) override;
    double value(engine::Metric metric, const std::string& label = {}) const; // sum, or last of a gauge
    std::size_t updates(engine::Metric metric) const;

  private:
    mutable std::mutex mutex_;
    std::map<std::pair<engine::Metric, std::string>, std::pair<double, std::size_t>> values_;
};

struct Ask {
    std::vector<std::int32_t> prompt;
    std::string text;     // instead of prompt
    std::string messages; // instead of both: a JSON array
    std::string tools;
    int thinking = DSV4_UNSAID;
    std::uint32_t n = 1;
    std::int64_t max_tokens = 16, min_tokens = 0, max_reasoning = -1;
    float temperature = 0;
    std::uint64_t seed = 1;
    float presence = 0;
    int logprobs = -1;
    int priority = 0;
    std::string salt;
    std::vector<std::string> stops;
    std::vector<std::int32_t> stop_ids, allowed;
    std::vector<dsv4_bias> bias;
    std::string grammar;
    bool include_stop = false, ignore_eos = false, echo = false;
    std::uint64_t deadline_us = 0;
    std::int64_t truncate = 0;
};

struct Completed {
    std::vector<std::int32_t> tokens;
    std::vector<float> logprobs;
    std::vector<std::vector<dsv4_top_logprob>> tops;
    std::string content, reasoning, calls;
    int reason = 0;
    std::string stop;
    dsv4_usage usage{};
    dsv4_timings timings{};
    int finals = 0;
};

struct Answer {
    std::vector<Completed> completions;
    int accepted = 0;
    std::int64_t cached = 0, prompt_tokens = 0;
    std::string miss, id;
    int errors = 0;
    int code = 0;
    std::string message;
    bool done = false;
    const Completed& operator[](std::size_t i) const { return completions.at(i); }
};

// A submitted request; releases its handle.
class Pending {
  public:
    Pending(engine::Engine& engine, const Ask& ask);
    ~Pending();
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    // Takes one event. False: none within the time.
    bool step(std::uint64_t timeout_us);
    const Answer& finish(std::uint64_t timeout_us = 60'000'000); // all events; fails the test when they stop coming
    void cancel();
    const Answer& answer() const { return answer_; }
    dsv4_request_handle* handle() const { return handle_; }

  private:
    engine::Engine& engine_;
    dsv4_request_handle* handle_ = nullptr;
    Answer answer_;
    std::uint32_t n_;
};

// An engine over the fake backend.
struct Rig {
    explicit Rig(engine::EngineConfig config = default_config(), FakeOptions fake = {},
                 engine::GrammarHandle grammar = {});
    ~Rig(); // checks that all pages came back and that the backend saw nothing wrong
    static engine::EngineConfig default_config();
    Answer ask(const Ask& ask) {
        Pending p(*engine, ask);
        return p.finish();
    }
    FakeBackend backend;
    CountingMetrics metrics;
    std::unique_ptr<runtime::BackendSession> session;
    std::unique_ptr<engine::Engine> engine;
    bool check_at_end = true;
};

std::vector<std::int32_t> random_prompt(std::uint64_t seed, std::size_t length);

} // namespace dsv4::test
