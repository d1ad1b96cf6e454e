// Errors over the boundary: dsv4_error to and from dsv4::Error, and the wrappers that keep exceptions on their side.
#pragma once

#include "dsv4/abi.h"
#include "dsv4/sdk/result.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace dsv4::sdk {

inline dsv4_str str(std::string_view s) noexcept { return {s.data(), s.size()}; }
inline std::string_view view(dsv4_str s) noexcept {
    return s.data ? std::string_view(s.data, s.size) : std::string_view();
}

namespace detail {
struct OwnedError : dsv4_error {
    Error content;
};
} // namespace detail

// A boundary error that owns copies of the texts. Never throws: out of memory gives a static one.
inline dsv4_error* make_error(Error error) noexcept {
    static dsv4_error exhausted{
        sizeof(dsv4_error), DSV4_EXHAUSTED, {"out of memory", 13}, {nullptr, 0}, [](dsv4_error*) {}};
    auto* e = new (std::nothrow) detail::OwnedError;
    if (!e) return &exhausted;
    e->content = std::move(error);
    e->struct_size = sizeof(dsv4_error);
    e->code = std::int32_t(e->content.code == Code::ok ? Code::internal : e->content.code);
    e->message = str(e->content.message);
    e->fix = str(e->content.fix);
    e->release = [](dsv4_error* self) { delete static_cast<detail::OwnedError*>(self); };
    return e;
}

// Copies and releases a boundary error. `error` must not be NULL.
inline Error take_error(dsv4_error* error) {
    Error e;
    e.code = error->code >= 1 && error->code <= 9 ? Code(error->code) : Code::internal;
    e.message = std::string(view(error->message));
    e.fix = std::string(view(error->fix));
    error->release(error);
    return e;
}

// Throws Failure when a boundary call failed.
inline void check(dsv4_error* error) {
    if (error) throw Failure(take_error(error));
}
inline Status status(dsv4_error* error) {
    if (error) return take_error(error);
    return {};
}

// Writes an output struct as far as the caller's struct_size goes, which stays as it is.
template <class T> void copy_out(T* out, T value) {
    if (out->struct_size < sizeof(std::uint32_t))
        throw Failure(Code::invalid, "the caller did not set struct_size of an output struct");
    value.struct_size = out->struct_size;
    std::memcpy(static_cast<void*>(out), &value, std::min<std::size_t>(out->struct_size, sizeof(T)));
}

// Runs a plugin's function and turns what it throws into a boundary error.
template <class F> dsv4_error* contain(F&& f) noexcept {
    try {
        std::forward<F>(f)();
        return nullptr;
    } catch (...) {
        return make_error(current_error());
    }
}

} // namespace dsv4::sdk
