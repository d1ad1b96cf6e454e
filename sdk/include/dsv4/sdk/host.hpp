// The host table as C++: options, log, threads, tokenizer, metrics. Copyable view; valid as long as the table.
#pragma once

#include "dsv4/host.h"
#include "dsv4/sdk/error.hpp"

#include <atomic>
#include <exception>
#include <string>
#include <vector>

namespace dsv4::sdk {

// The options of the instance being made; use only inside the constructor. Names are those of the manifest.
class Options {
  public:
    Options(const dsv4_host* host, const dsv4_options* options) : host_(host), options_(options) {}
    std::string text(std::string_view name) const {
        dsv4_str v{};
        check(host_->option_string(options_, str(name), &v));
        return std::string(view(v));
    }
    std::int64_t integer(std::string_view name) const {
        std::int64_t v = 0;
        check(host_->option_int(options_, str(name), &v));
        return v;
    }
    double number(std::string_view name) const {
        double v = 0;
        check(host_->option_float(options_, str(name), &v));
        return v;
    }
    bool flag(std::string_view name) const {
        std::int32_t v = 0;
        check(host_->option_bool(options_, str(name), &v));
        return v != 0;
    }

  private:
    const dsv4_host* host_;
    const dsv4_options* options_;
};

class Host {
  public:
    explicit Host(const dsv4_host* table) : table_(table) {}
    const dsv4_host* table() const noexcept { return table_; }

    void log(dsv4_log_level level, std::string_view message) const { table_->log(table_->ctx, level, str(message)); }
    void debug(std::string_view message) const { log(DSV4_LOG_DEBUG, message); }
    void error(std::string_view message) const { log(DSV4_LOG_ERROR, message); }
    void info(std::string_view message) const { log(DSV4_LOG_INFO, message); }
    void warn(std::string_view message) const { log(DSV4_LOG_WARNING, message); }

    std::uint64_t monotonic_us() const { return table_->monotonic_us(table_->ctx); }
    std::uint32_t threads() const { return table_->thread_count(table_->ctx); }

    // Calls f(i) for every i < count, here and on the pool. An exception of f is rethrown here after all ended.
    template <class F> void parallel_for(std::uint32_t count, F&& f) const {
        struct Call {
            std::remove_reference_t<F>* f;
            std::exception_ptr error;
            std::atomic_flag failed;
        } call{&f, nullptr, {}};
        table_->parallel_for(
            table_->ctx, count,
            [](void* arg, std::uint32_t i) {
                auto* c = static_cast<Call*>(arg);
                try {
                    (*c->f)(i);
                } catch (...) {
                    if (!c->failed.test_and_set()) c->error = std::current_exception();
                }
            },
            &call);
        if (call.error) std::rethrow_exception(call.error);
    }

    // Null where this program run has no such service.
    const dsv4_tokenizer_service* tokenizer() const noexcept { return table_->tokenizer; }
    const dsv4_grammar_service* grammar() const noexcept { return table_->grammar; }
    const dsv4_lowering_service* lowering() const noexcept { return table_->lowering; }
    const dsv4_generate_service* generate() const noexcept { return table_->generate; }

  private:
    const dsv4_host* table_;
};

} // namespace dsv4::sdk
