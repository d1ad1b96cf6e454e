// A host table of the tests' own around the built plugin: options from the manifest's defaults, a byte tokenizer, the
// fake generation service. Nothing of the core takes part.
#pragma once

#include "tests/api_openai/fake_service.hpp"

#include "dsv4/api.h"
#include "dsv4/host.h"
#include "dsv4/plugin.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

struct dsv4_options {
    std::map<std::string, std::variant<bool, std::int64_t, double, std::string>> values;
};

namespace dsv4::test {

// Ids 0..255 are bytes; the control tokens follow in this order.
inline const std::vector<std::string> control_names = {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<think>",
                                                       "</think>", "<｜fim▁begin｜>"};

class FakeHost {
  public:
    // `service` null: a program run without an engine.
    explicit FakeHost(FakeService* service);
    FakeHost(const FakeHost&) = delete;
    FakeHost& operator=(const FakeHost&) = delete;

    dsv4_options options;                       // the manifest's defaults, and what a test sets
    std::map<std::string, std::string> secrets; // by reference
    const dsv4_host* table() const { return &table_; }
    double metric(const std::string& name_and_labels) const; // "name{a=b,c=d}"
    std::vector<std::string> log() const;
    void without_tokenizer() { table_.tokenizer = nullptr; }
    void with_grammar() { table_.grammar = &grammar_; }

  private:
    FakeContext context_;
    dsv4_tokenizer_service tokenizer_{};
    dsv4_grammar_service grammar_{};
    dsv4_host table_{};
    mutable std::mutex mutex_;
    std::map<std::string, double> metrics_;
    std::vector<std::string> log_;
};

// An instance of the built plugin.
class LoadedApi {
  public:
    explicit LoadedApi(FakeHost& host); // throws std::runtime_error with the plugin's message
    ~LoadedApi();
    LoadedApi(const LoadedApi&) = delete;
    LoadedApi& operator=(const LoadedApi&) = delete;

    const dsv4_api_table& table() const { return *static_cast<const dsv4_api_table*>(instance_.table); }
    void* self() const { return instance_.self; }
    std::uint16_t start(); // the port
    void drain(std::uint64_t from_now_us);
    void stop();

  private:
    dsv4_instance instance_{};
    bool started_ = false;
};

} // namespace dsv4::test
