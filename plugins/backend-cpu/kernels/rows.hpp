// A dense float32 tensor seen as rows: the only tensor type the kernels take.
#pragma once

#include <cstddef>
#include <span>

namespace dsv4::cpu {

// `count` rows of `width` contiguous elements, row after row. Non-owning.
template <class T> struct Rows {
    T* data = nullptr;
    std::size_t count = 0;
    std::size_t width = 0;

    std::span<T> operator[](std::size_t row) const { return {data + row * width, width}; }
    std::span<T> all() const { return {data, count * width}; }
    operator Rows<const T>() const { return {data, count, width}; }
};

using RowsIn = Rows<const float>;
using RowsOut = Rows<float>;

} // namespace dsv4::cpu
