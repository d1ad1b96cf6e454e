// dsv4_generate_service over the engine.
#include "core/engine/engine.hpp"
#include "dsv4/sdk/error.hpp"

struct dsv4_request_handle {
    std::shared_ptr<dsv4::engine::Request> request;
};

namespace dsv4::engine {
namespace {

Engine& engine(void* ctx) { return *static_cast<Engine*>(ctx); }

dsv4_error* submit(void* ctx, const dsv4_generate_request* request, dsv4_request_handle** out) noexcept {
    return sdk::contain([&] { *out = new dsv4_request_handle{engine(ctx).submit(*request)}; });
}

void on_events(void*, dsv4_request_handle* handle, void (*wake)(void*), void* arg) noexcept {
    handle->request->events->set_wake(wake, arg);
}

dsv4_error* next(void*, dsv4_request_handle* handle, std::uint64_t timeout_us, const dsv4_event** out) noexcept {
    return sdk::contain([&] { *out = handle->request->events->next(timeout_us); });
}

void cancel(void* ctx, dsv4_request_handle* handle) noexcept { engine(ctx).cancel(handle->request); }

void release(void* ctx, dsv4_request_handle* handle) noexcept {
    handle->request->events->close();
    engine(ctx).cancel(handle->request);
    delete handle;
}

dsv4_error* tokenize(void* ctx, const dsv4_chat_request* chat, std::int32_t* ids, std::size_t capacity,
                     std::size_t* count) noexcept {
    return sdk::contain([&] {
        const auto all = engine(ctx).tokenize(*chat);
        *count = all.size();
        for (std::size_t i = 0; i < all.size() && i < capacity; ++i) ids[i] = all[i];
    });
}

void describe(void* ctx, void (*sink)(void*, dsv4_str), void* arg) noexcept {
    const std::string json = engine(ctx).describe();
    sink(arg, sdk::str(json));
}

constexpr dsv4_generate_service table{
    sizeof(dsv4_generate_service), submit, on_events, next, cancel, release, tokenize, describe};

} // namespace

const dsv4_generate_service& Engine::service() { return table; }

} // namespace dsv4::engine
