// The element types of the safetensors container, by the names that the container uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dsv4::model {

enum class Dtype : std::uint8_t {
    boolean,
    u8,
    i8,
    f8_e4m3,
    f8_e5m2,
    f8_e8m0,
    u16,
    i16,
    f16,
    bf16,
    u32,
    i32,
    f32,
    u64,
    i64,
    f64,
};

// "BF16", "F8_E4M3", ...
std::string_view dtype_name(Dtype dtype) noexcept;
// Nothing for a name that the container does not define or whose elements are smaller than a byte.
std::optional<Dtype> dtype_from_name(std::string_view name) noexcept;
std::size_t width_bytes(Dtype dtype) noexcept;

} // namespace dsv4::model
