// Base class of a speculation plugin: what to draft, how to verify, how long. See dsv4/spec.h.
#pragma once

#include "dsv4/program.h"
#include "dsv4/sdk/host.hpp"
#include "dsv4/sdk/plugin.hpp"
#include "dsv4/spec.h"

#include <span>
#include <string>
#include <string_view>

namespace dsv4::sdk {

// Errors are Failure exceptions. Threads as in dsv4/spec.h: choose_lengths and observe on the engine thread, the rest
// any.
class Spec {
  public:
    using Interface = Spec;
    static constexpr std::int32_t kind = DSV4_KIND_SPEC;
    virtual ~Spec() = default;
    // Lives as long as this object.
    virtual const dsv4_spec_info& info() const noexcept = 0;
    // Programs in the binary form (program::encode); they live as long as this object, so make them once and keep them.
    virtual std::string_view context_program(dsv4_precision precision) = 0;
    virtual std::string_view draft_program(dsv4_precision precision) = 0;
    // Writes a length of 0 .. info().max_tokens for each of query.slots slots.
    virtual void choose_lengths(const dsv4_length_query& query, std::span<std::uint32_t> lengths) = 0;
    // One entry a slot. Must not throw.
    virtual void observe(std::span<const std::uint32_t> /*verified*/,
                         std::span<const std::uint32_t> /*accepted*/) noexcept {}

    static const dsv4_spec_table& table();
};

namespace detail {
inline Spec& spec(void* self) { return *static_cast<Spec*>(self); }
} // namespace detail

inline const dsv4_spec_table& Spec::table() {
    using namespace detail;
    static const dsv4_spec_table t = [] {
        dsv4_spec_table s{};
        s.struct_size = sizeof s;
        s.info = [](void* self) noexcept { return &spec(self).info(); };
        s.context_program = [](void* self, std::int32_t precision, dsv4_str* out) noexcept {
            return contain([&] { *out = str(spec(self).context_program(dsv4_precision(precision))); });
        };
        s.draft_program = [](void* self, std::int32_t precision, dsv4_str* out) noexcept {
            return contain([&] { *out = str(spec(self).draft_program(dsv4_precision(precision))); });
        };
        s.choose_lengths = [](void* self, const dsv4_length_query* query, std::uint32_t* lengths) noexcept {
            return contain([&] {
                spec(self).choose_lengths(*query, {lengths, query->slots});
                for (std::uint32_t i = 0; i < query->slots; ++i)
                    if (lengths[i] > spec(self).info().max_tokens)
                        throw Failure(Code::internal, "a speculation plugin chose a length above its own maximum");
            });
        };
        s.observe = [](void* self, const std::uint32_t* verified, const std::uint32_t* accepted,
                       std::uint32_t slots) noexcept {
            spec(self).observe({verified, slots}, {accepted, slots});
        };
        return s;
    }();
    return t;
}

} // namespace dsv4::sdk
