// Adapts the tokenizer, the lowering and the generation to the C tables that plugins see.
#include "core/host/host_table.hpp"
#include "dsv4/sdk/error.hpp"

#include <algorithm>
#include <cstring>

namespace dsv4::host {
namespace {

using sdk::contain;
using sdk::str;
using sdk::view;

Host& host(void* ctx) { return static_cast<HostTable*>(ctx)->host(); }

void copy_ids(const std::vector<std::int32_t>& from, std::int32_t* ids, std::size_t capacity, std::size_t* count) {
    std::copy_n(from.begin(), std::min(from.size(), capacity), ids);
    *count = from.size();
}

} // namespace

dsv4_tokenizer_service tokenizer_service(const tokenizer::Tokenizer& tokenizer) {
    dsv4_tokenizer_service s{};
    s.struct_size = sizeof s;
    s.vocab_size = std::uint32_t(tokenizer.vocab_size());
    s.encode = [](void* ctx, dsv4_str text, std::int32_t* ids, std::size_t capacity, std::size_t* count) noexcept {
        return contain([&] { copy_ids(host(ctx).tokenizer()->encode(view(text)).value(), ids, capacity, count); });
    };
    s.control_id = [](void* ctx, dsv4_str name) noexcept -> std::int32_t {
        return host(ctx).tokenizer()->control_id(view(name)).value_or(-1);
    };
    s.bytes = [](void* ctx, std::int32_t id) noexcept { return str(host(ctx).tokenizer()->bytes(id)); };
    s.is_control = [](void* ctx, std::int32_t id) noexcept -> std::int32_t {
        return host(ctx).tokenizer()->is_control(id);
    };
    return s;
}

dsv4_lowering_service lowering_service() {
    dsv4_lowering_service s{};
    s.struct_size = sizeof s;
    s.lower_layer = [](void* ctx, dsv4_str prefix, dsv4_str options, dsv4_str* program) noexcept {
        return contain([&] {
            const auto bytes = host(ctx).lowering()->lower_layer(view(prefix), view(options));
            auto* copy = new char[bytes.size()];
            std::memcpy(copy, bytes.data(), bytes.size());
            *program = {copy, bytes.size()};
        });
    };
    s.release_program = [](void*, dsv4_str program) noexcept { delete[] program.data; };
    s.config_json = [](void* ctx) noexcept { return str(host(ctx).lowering()->config_json()); };
    return s;
}

dsv4_generate_service generate_service() {
    dsv4_generate_service s{};
    s.struct_size = sizeof s;
    s.submit = [](void* ctx, const dsv4_generate_request* request, dsv4_request_handle** out) noexcept {
        return contain([&] { *out = host(ctx).generate()->submit(*request); });
    };
    s.on_events = [](void* ctx, dsv4_request_handle* request, void (*wake)(void*), void* arg) noexcept {
        host(ctx).generate()->on_events(request, wake, arg);
    };
    s.next = [](void* ctx, dsv4_request_handle* request, std::uint64_t timeout_us, const dsv4_event** out) noexcept {
        return contain([&] { *out = host(ctx).generate()->next(request, timeout_us); });
    };
    s.cancel = [](void* ctx, dsv4_request_handle* request) noexcept { host(ctx).generate()->cancel(request); };
    s.release = [](void* ctx, dsv4_request_handle* request) noexcept { host(ctx).generate()->release(request); };
    s.tokenize = [](void* ctx, const dsv4_chat_request* chat, std::int32_t* ids, std::size_t capacity,
                    std::size_t* count) noexcept {
        return contain([&] { copy_ids(host(ctx).generate()->tokenize(*chat), ids, capacity, count); });
    };
    s.describe = [](void* ctx, void (*sink)(void*, dsv4_str), void* arg) noexcept {
        try {
            const auto json = host(ctx).generate()->describe();
            sink(arg, str(json));
        } catch (...) {
            sink(arg, str("{\"ready\":false}"));
        }
    };
    return s;
}

} // namespace dsv4::host
