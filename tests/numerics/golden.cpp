// Reads tensors of safetensors files and measures distances.
#include "tests/numerics/golden.hpp"

#include "core/checkpoint/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace dsv4::numerics {
namespace {

std::vector<std::byte> bytes_of(const std::filesystem::path& path, const std::string& name, model::Dtype& dtype) {
    const auto file = checkpoint::SafetensorsFile::open(path).value();
    const checkpoint::TensorEntry* entry = file.find(name);
    if (!entry) throw Failure(Code::not_found, "'" + path.string() + "' has no tensor '" + name + "'");
    dtype = entry->dtype;
    const auto bytes = file.bytes(*entry);
    return {bytes.begin(), bytes.end()};
}

[[noreturn]] void wrong_type(const std::filesystem::path& path, const std::string& name) {
    throw Failure(Code::invalid, "tensor '" + name + "' of '" + path.string() + "' has another type than asked for");
}

} // namespace

std::vector<float> floats(const std::filesystem::path& safetensors, const std::string& name) {
    model::Dtype dtype{};
    const auto bytes = bytes_of(safetensors, name, dtype);
    if (dtype == model::Dtype::f32) {
        std::vector<float> values(bytes.size() / 4);
        std::memcpy(values.data(), bytes.data(), values.size() * 4);
        return values;
    }
    if (dtype != model::Dtype::bf16) wrong_type(safetensors, name);
    std::vector<float> values(bytes.size() / 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint16_t high = 0;
        std::memcpy(&high, bytes.data() + 2 * i, 2);
        values[i] = std::bit_cast<float>(std::uint32_t(high) << 16);
    }
    return values;
}

std::vector<std::int32_t> ints(const std::filesystem::path& safetensors, const std::string& name) {
    model::Dtype dtype{};
    const auto bytes = bytes_of(safetensors, name, dtype);
    if (dtype != model::Dtype::i32) wrong_type(safetensors, name);
    std::vector<std::int32_t> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), values.size() * 4);
    return values;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
    if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double d = std::fabs(double(a[i]) - double(b[i]));
        if (!(d <= largest)) largest = std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
    }
    return largest;
}

double relative_rms(std::span<const float> a, std::span<const float> b) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        difference += std::pow(double(a[i]) - double(b[i]), 2);
        size += std::pow(double(b[i]), 2);
    }
    const double r = std::sqrt(difference / size);
    return std::isnan(r) ? std::numeric_limits<double>::infinity() : r;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

std::vector<double> log_softmax(std::span<const float> logits) {
    const double top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float v : logits) sum += std::exp(double(v) - top);
    std::vector<double> out;
    for (float v : logits) out.push_back(double(v) - top - std::log(sum));
    return out;
}

double kl_divergence(std::span<const float> a, std::span<const float> b) {
    const auto la = log_softmax(a), lb = log_softmax(b);
    double sum = 0;
    for (std::size_t i = 0; i < lb.size(); ++i) sum += std::exp(lb[i]) * (lb[i] - la[i]);
    return sum;
}

double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values.at(std::min(values.size() - 1, std::size_t(q * double(values.size()))));
}

} // namespace dsv4::numerics
