// Names and widths of the safetensors element types.
#include "core/model/dtype.hpp"

#include <array>

namespace dsv4::model {
namespace {

struct Row {
    std::string_view name;
    std::size_t width_bytes;
};

// In the order of Dtype.
constexpr std::array<Row, 16> rows{{{"BOOL", 1},
                                    {"U8", 1},
                                    {"I8", 1},
                                    {"F8_E4M3", 1},
                                    {"F8_E5M2", 1},
                                    {"F8_E8M0", 1},
                                    {"U16", 2},
                                    {"I16", 2},
                                    {"F16", 2},
                                    {"BF16", 2},
                                    {"U32", 4},
                                    {"I32", 4},
                                    {"F32", 4},
                                    {"U64", 8},
                                    {"I64", 8},
                                    {"F64", 8}}};

} // namespace

std::string_view dtype_name(Dtype dtype) noexcept { return rows[static_cast<std::size_t>(dtype)].name; }

std::size_t width_bytes(Dtype dtype) noexcept { return rows[static_cast<std::size_t>(dtype)].width_bytes; }

std::optional<Dtype> dtype_from_name(std::string_view name) noexcept {
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].name == name) return static_cast<Dtype>(i);
    return std::nullopt;
}

} // namespace dsv4::model
