// What the host offers to all plugins of a process: log, threads, metrics, and the model services of this program run.
#pragma once

#include "core/host/log.hpp"
#include "core/host/metrics.hpp"
#include "core/host/services.hpp"
#include "core/host/thread_pool.hpp"
#include "core/tokenizer/tokenizer.hpp"

#include <optional>

namespace dsv4::host {

struct HostOptions {
    std::uint32_t threads = 0; // of the shared pool, the calling thread included; 0: one a processor
    LogOptions log;
};

// Outlives every plugin instance. Services are set on the control thread, before the instances that use them are made;
// the objects behind the pointers outlive those instances.
class Host {
  public:
    explicit Host(HostOptions options = {}) : pool_(options.threads), log_(std::move(options.log)) {}
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    ThreadPool& pool() noexcept { return pool_; }
    Metrics& metrics() noexcept { return metrics_; }
    Log& log() noexcept { return log_; }

    void set_tokenizer(tokenizer::Tokenizer tokenizer) { tokenizer_ = std::move(tokenizer); }
    void set_lowering(Lowering* lowering) noexcept { lowering_ = lowering; }
    void set_generate(Generate* generate) noexcept { generate_ = generate; }

    // Null where this run has none.
    const tokenizer::Tokenizer* tokenizer() const noexcept { return tokenizer_ ? &*tokenizer_ : nullptr; }
    Lowering* lowering() const noexcept { return lowering_; }
    Generate* generate() const noexcept { return generate_; }

  private:
    ThreadPool pool_;
    Log log_;
    Metrics metrics_;
    std::optional<tokenizer::Tokenizer> tokenizer_;
    Lowering* lowering_ = nullptr;
    Generate* generate_ = nullptr;
};

} // namespace dsv4::host
