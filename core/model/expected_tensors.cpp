// From logical weights to the tensors on disk.
#include "core/model/expected_tensors.hpp"

namespace dsv4::model {
namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Dtype stored_dtype(Format format) {
    switch (format) {
    case Format::bf16: return Dtype::bf16;
    case Format::f32: return Dtype::f32;
    case Format::i32: return Dtype::i32;
    case Format::i64: return Dtype::i64;
    case Format::fp8_block128: return Dtype::f8_e4m3;
    case Format::fp4_block32: return Dtype::i8;
    }
    throw Failure(Code::internal, "a weight format without an element type");
}

} // namespace

std::int64_t ExpectedTensor::bytes() const {
    auto n = static_cast<std::int64_t>(width_bytes(dtype));
    for (const auto d : shape) n *= d;
    return n;
}

ExpectedTensor data_tensor(const Weight& w) {
    ExpectedTensor t{w.data_tensor, stored_dtype(w.format), w.dims, w.accounting_group()};
    if (w.format == Format::fp4_block32) t.shape.back() = ceil_div(t.shape.back(), 2);
    return t;
}

ExpectedTensor scale_tensor(const Weight& w) {
    if (w.scale_tensor.empty()) throw Failure(Code::internal, "weight " + w.name + " has no scale");
    ExpectedTensor t{w.scale_tensor, Dtype::f8_e8m0, w.dims, w.accounting_group()};
    const bool fp8 = w.format == Format::fp8_block128;
    if (fp8) t.shape.front() = ceil_div(t.shape.front(), 128);
    t.shape.back() = ceil_div(t.shape.back(), fp8 ? 128 : 32);
    return t;
}

std::vector<ExpectedTensor> expected_tensors(const std::vector<Weight>& list) {
    std::vector<ExpectedTensor> out;
    out.reserve(list.size() * 2);
    for (const Weight& w : list) {
        out.push_back(data_tensor(w));
        if (!w.scale_tensor.empty()) out.push_back(scale_tensor(w));
    }
    return out;
}

std::vector<ExpectedTensor> expected_tensors(const Geometry& geometry, const WeightOptions& options) {
    return expected_tensors(weights(geometry, options));
}

} // namespace dsv4::model
