// The functions behind the host table. None lets an exception out.
#include "core/host/host_table.hpp"

#include "core/host/secrets.hpp"
#include "core/host/span.hpp"
#include "dsv4/sdk/error.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

// A running span.
struct dsv4_span {
    std::string name, request_id, span_id;
    dsv4::host::TraceIds ids;
    std::chrono::steady_clock::time_point start;
};

namespace dsv4::host {
namespace {

using sdk::contain;
using sdk::str;
using sdk::view;

HostTable& self(void* ctx) { return *static_cast<HostTable*>(ctx); }

const OptionValues& values(const dsv4_options* options) { return *reinterpret_cast<const OptionValues*>(options); }

template <class T> const T& option(const dsv4_options* options, dsv4_str name, std::string_view type) {
    const auto& map = values(options);
    const auto it = map.find(view(name));
    if (it == map.end())
        throw Failure(Code::not_found, fmt::format("the manifest declares no option \"{}\"", view(name)),
                      "declare it in the manifest");
    if (const auto* value = std::get_if<T>(&it->second)) return *value;
    throw Failure(Code::invalid, fmt::format("option \"{}\" is not {}", view(name), type),
                  "read it as the type that the manifest declares");
}

dsv4_error* option_string(const dsv4_options* options, dsv4_str name, dsv4_str* out) noexcept {
    return contain([&] { *out = str(option<std::string>(options, name, "a text")); });
}
dsv4_error* option_int(const dsv4_options* options, dsv4_str name, std::int64_t* out) noexcept {
    return contain([&] { *out = option<std::int64_t>(options, name, "a whole number"); });
}
dsv4_error* option_float(const dsv4_options* options, dsv4_str name, double* out) noexcept {
    return contain([&] { *out = option<double>(options, name, "a float"); });
}
dsv4_error* option_bool(const dsv4_options* options, dsv4_str name, std::int32_t* out) noexcept {
    return contain([&] { *out = option<bool>(options, name, "a bool"); });
}

void log(void* ctx, std::int32_t level, dsv4_str message) noexcept {
    const auto l = level <= DSV4_LOG_DEBUG   ? LogLevel::debug
                   : level >= DSV4_LOG_ERROR ? LogLevel::error
                                             : LogLevel(level);
    self(ctx).host().log().write(l, self(ctx).plugin_name(), view(message));
}

std::uint64_t monotonic_us(void*) noexcept {
    return std::uint64_t(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
}
std::uint64_t unix_us(void*) noexcept {
    return std::uint64_t(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
}

dsv4_error* secret(void*, dsv4_str reference, char** out, std::size_t* size) noexcept {
    return contain([&] {
        auto text = resolve_secret(view(reference)).value();
        auto* copy = new char[text.size() + 1];
        std::memcpy(copy, text.c_str(), text.size() + 1);
        *out = copy;
        *size = text.size();
        wipe(text.data(), text.size());
    });
}
void secret_release(void*, char* text, std::size_t size) noexcept {
    if (!text) return;
    wipe(text, size);
    delete[] text;
}

std::uint32_t thread_count(void* ctx) noexcept { return self(ctx).host().pool().threads(); }
void parallel_for(void* ctx, std::uint32_t count, void (*body)(void*, std::uint32_t), void* arg) noexcept {
    self(ctx).host().pool().run(count, body, arg);
}

dsv4_metric* metric(void* ctx, std::int32_t kind, dsv4_str name, dsv4_str help, const dsv4_label* labels,
                    std::size_t count) noexcept {
    try {
        if (count > max_labels) return nullptr;
        Labels list;
        for (std::size_t i = 0; i < count; ++i) list.emplace_back(view(labels[i].name), view(labels[i].value));
        return self(ctx).host().metrics().metric(kind, view(name), view(help), list);
    } catch (...) {
        return nullptr;
    }
}
void metric_update(void*, dsv4_metric* m, double value) noexcept { Metrics::update(m, value); }
void metrics_expose(void* ctx, void (*sink)(void*, dsv4_str), void* arg) noexcept {
    try {
        const auto text = self(ctx).host().metrics().expose();
        sink(arg, str(text));
    } catch (...) { // out of memory: the scrape is empty
    }
}

dsv4_span* span_begin(void* ctx, dsv4_str name, dsv4_str request_id, dsv4_str traceparent) noexcept {
    try {
        if (!self(ctx).host().log().enabled(LogLevel::debug)) return nullptr;
        return new dsv4_span{std::string(view(name)), std::string(view(request_id)), new_span_id(),
                             trace_ids(view(traceparent)), std::chrono::steady_clock::now()};
    } catch (...) {
        return nullptr;
    }
}
void span_end(void* ctx, dsv4_span* span) noexcept {
    if (!span) return;
    const std::unique_ptr<dsv4_span> owner(span);
    const auto us =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - span->start).count();
    const auto duration = std::to_string(us);
    self(ctx).host().log().write(LogLevel::debug, self(ctx).plugin_name(), "span",
                                 {{"name", span->name},
                                  {"request_id", span->request_id},
                                  {"trace_id", span->ids.trace_id},
                                  {"span_id", span->span_id},
                                  {"parent_id", span->ids.parent_id},
                                  {"duration_us", duration}});
}

} // namespace

const dsv4_options* as_options(const OptionValues& v) noexcept { return reinterpret_cast<const dsv4_options*>(&v); }

HostTable::HostTable(Host& host, std::string plugin_name) : host_(host), plugin_name_(std::move(plugin_name)) {
    auto& t = table_;
    t.struct_size = sizeof t;
    t.abi_major = DSV4_ABI_MAJOR;
    t.abi_minor = DSV4_ABI_MINOR;
    t.ctx = this;
    t.option_string = option_string;
    t.option_int = option_int;
    t.option_float = option_float;
    t.option_bool = option_bool;
    t.log = host::log;
    t.monotonic_us = monotonic_us;
    t.unix_us = unix_us;
    t.secret = secret;
    t.secret_release = secret_release;
    t.thread_count = thread_count;
    t.parallel_for = parallel_for;
    t.metric = metric;
    t.metric_update = metric_update;
    t.metrics_expose = metrics_expose;
    t.span_begin = span_begin;
    t.span_end = span_end;
    if (host.tokenizer()) tokenizer_ = tokenizer_service(*host.tokenizer()), t.tokenizer = &tokenizer_;
    if (host.lowering()) lowering_ = lowering_service(), t.lowering = &lowering_;
    if (host.generate()) generate_ = generate_service(), t.generate = &generate_;
}

} // namespace dsv4::host
