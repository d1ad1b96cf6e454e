// Intake and look-up of weights.
#include "weights.hpp"

#include <cstdlib>
#include <cstring>

namespace dsv4::cpu {
namespace {

constexpr std::uint64_t max_weight_bytes = std::uint64_t{1} << 40;

std::string dims_text(std::span<const std::int64_t> dims) {
    std::string s = "[";
    for (std::size_t i = 0; i < dims.size(); ++i) s += (i > 0 ? "," : "") + std::to_string(dims[i]);
    return s + "]";
}

std::size_t at(std::int64_t v) { return static_cast<std::size_t>(v); }

// Bytes of one part of `dims` (the last one or two dimensions); false when the format is not stored here.
bool part_bytes(const dsv4_format& f, std::int64_t rows, std::int64_t cols, std::uint64_t& data, std::uint64_t& scale) {
    WeightFormat format;
    if (matrix_format(f, format)) {
        data = payload_bytes(format, at(rows), at(cols));
        scale = scale_bytes(format, at(rows), at(cols));
        return true;
    }
    scale = 0;
    if (program::same_format(f, program::formats::i32))
        data = at(rows * cols) * 4;
    else if (program::same_format(f, program::formats::i64))
        data = at(rows * cols) * 8;
    else
        return false;
    return true;
}

} // namespace

void Bytes::Free::operator()(std::byte* p) const noexcept { std::free(p); }

Bytes::Bytes(std::size_t size) : size_(size) {
    constexpr std::size_t alignment = 64;
    const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded)));
    if (!data_) throw Failure(Code::exhausted, "no memory for " + std::to_string(size) + " bytes");
    std::memset(data_.get(), 0, rounded == 0 ? alignment : rounded);
}

bool matrix_format(const dsv4_format& format, WeightFormat& out) {
    using namespace program;
    if (same_format(format, formats::f32))
        out = WeightFormat::f32;
    else if (same_format(format, formats::bf16))
        out = WeightFormat::bf16;
    else if (same_format(format, formats::fp8_block128))
        out = WeightFormat::fp8_block128;
    else if (same_format(format, formats::fp4_block32))
        out = WeightFormat::fp4_block32;
    else
        return false;
    return true;
}

std::uint64_t WeightStore::Entry::elements() const {
    std::uint64_t n = 1;
    for (const std::int64_t d : dims) n *= static_cast<std::uint64_t>(d);
    return n;
}

void WeightStore::announce(std::span<const dsv4_weight> weights) {
    if (announced_) throw Failure(Code::invalid, "weights were announced twice in one session");
    std::vector<Entry> entries;
    for (const dsv4_weight& w : weights) {
        Entry e;
        e.name = std::string(w.name.data ? std::string_view(w.name.data, w.name.size) : std::string_view());
        const std::string label = "weight '" + e.name + "'";
        if (w.dim_count < 1 || w.dim_count > 3) throw Failure(Code::invalid, label + " must have 1 to 3 dimensions");
        if (w.slice_dim >= 0)
            throw Failure(Code::unsupported, label + " is a slice, which the CPU backend's single rank has no use for");
        std::int64_t rows = 1, cols = 1, stack = 1;
        for (std::uint32_t i = 0; i < w.dim_count; ++i) {
            if (w.dims[i] <= 0 || w.dims[i] > (std::int64_t{1} << 32))
                throw Failure(Code::invalid, label + " has an impossible dimension");
            e.dims.push_back(w.dims[i]);
        }
        cols = e.dims.back();
        if (e.dims.size() >= 2) rows = e.dims[e.dims.size() - 2];
        if (e.dims.size() == 3) stack = e.dims[0];
        if (w.parts != 1 && (e.dims.size() != 3 || w.parts != static_cast<std::uint64_t>(stack)))
            throw Failure(Code::invalid, label + " must arrive in 1 part" +
                                             (e.dims.size() == 3 ? " or " + std::to_string(stack) : std::string()));
        e.format = w.format;
        const double estimate = static_cast<double>(stack) * static_cast<double>(rows) * static_cast<double>(cols) * 8;
        if (estimate > static_cast<double>(max_weight_bytes))
            throw Failure(Code::invalid, label + " is larger than 1 TiB");
        if (!part_bytes(w.format, rows, cols, e.data_bytes, e.scale_bytes))
            throw Failure(Code::unsupported,
                          label + " has the format " + program::format_name(w.format) +
                              ", which the CPU backend does not read",
                          "convert the checkpoint to f32, bf16, fp8_block128 or fp4_block32");
        if (w.parts == 1 && stack > 1) {
            // A stack in one part: data of all experts, then scales of all experts.
            e.data_bytes *= static_cast<std::uint64_t>(stack);
            e.scale_bytes *= static_cast<std::uint64_t>(stack);
        }
        e.parts.resize(w.parts);
        entries.push_back(std::move(e));
    }
    std::map<std::string, std::size_t, std::less<>> names;
    for (std::size_t i = 0; i < entries.size(); ++i)
        if (!names.emplace(entries[i].name, i).second)
            throw Failure(Code::invalid, "weight '" + entries[i].name + "' was announced twice");
    entries_ = std::move(entries);
    by_name_ = std::move(names);
    announced_ = true;
}

void* WeightStore::stage(std::uint64_t bytes) {
    if (bytes > max_weight_bytes) throw Failure(Code::invalid, "a staged part cannot be larger than 1 TiB");
    Bytes buffer(bytes);
    const std::lock_guard lock(mutex_);
    staged_.push_back(std::move(buffer));
    if (staged_.size() > 2) staged_.pop_front();
    return staged_.back().data();
}

void WeightStore::take(std::uint32_t index, std::uint32_t part, std::string_view data, std::string_view scale) {
    const std::lock_guard lock(mutex_);
    if (index >= entries_.size())
        throw Failure(Code::invalid, "weight number " + std::to_string(index) + " was not announced");
    Entry& e = entries_[index];
    const std::string label = "part " + std::to_string(part) + " of weight '" + e.name + "'";
    if (part >= e.parts.size()) throw Failure(Code::invalid, label + " was not announced");
    if (e.parts[part].present) throw Failure(Code::invalid, label + " arrived twice");
    if (data.size() != e.data_bytes || scale.size() != e.scale_bytes)
        throw Failure(Code::invalid, label + " has " + std::to_string(data.size()) + " + " +
                                         std::to_string(scale.size()) + " bytes, not " + std::to_string(e.data_bytes) +
                                         " + " + std::to_string(e.scale_bytes));
    Part p;
    const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
    const auto* scales = reinterpret_cast<const std::byte*>(scale.data());
    const auto inside = [](const Bytes& b, const std::byte* q, std::size_t n) {
        return q >= b.data() && q + n <= b.data() + b.size();
    };
    for (auto it = staged_.begin(); it != staged_.end(); ++it) {
        if (bytes != it->data() || (!scale.empty() && !inside(*it, scales, scale.size()))) continue;
        p.home = std::move(*it);
        staged_.erase(it);
        p.data = bytes;
        p.scale = scale.empty() ? nullptr : scales;
        break;
    }
    if (!p.data) {
        p.home = Bytes(data.size() + scale.size());
        std::memcpy(p.home.data(), data.data(), data.size());
        if (!scale.empty()) std::memcpy(p.home.data() + data.size(), scale.data(), scale.size());
        p.data = p.home.data();
        p.scale = scale.empty() ? nullptr : p.home.data() + data.size();
    }
    p.present = true;
    e.parts[part] = std::move(p);
}

void WeightStore::done() {
    const std::lock_guard lock(mutex_);
    if (!announced_) throw Failure(Code::invalid, "no weights were announced");
    for (const Entry& e : entries_)
        for (std::size_t i = 0; i < e.parts.size(); ++i)
            if (!e.parts[i].present)
                throw Failure(Code::invalid, "part " + std::to_string(i) + " of weight '" + e.name + "' never arrived");
    staged_.clear();
    complete_ = true;
}

std::uint64_t WeightStore::resident_bytes() const {
    const std::lock_guard lock(mutex_);
    std::uint64_t n = 0;
    for (const Entry& e : entries_) {
        for (const Part& p : e.parts) n += p.home.size();
        n += e.floats.size() * sizeof(float) + e.integers.size() * sizeof(std::int32_t);
    }
    for (const Bytes& b : staged_) n += b.size();
    return n;
}

WeightStore::Entry& WeightStore::find(const program::Weight& weight) {
    const auto it = by_name_.find(weight.name);
    if (it == by_name_.end()) throw Failure(Code::not_found, "weight '" + weight.name + "' was not announced");
    Entry& e = entries_[it->second];
    if (!program::same_format(e.format, weight.format))
        throw Failure(Code::unsupported, "weight '" + weight.name + "' was announced as " +
                                             program::format_name(e.format) + " and is used as " +
                                             program::format_name(weight.format));
    if (e.dims != weight.dims)
        throw Failure(Code::unsupported, "weight '" + weight.name + "' was announced with shape " + dims_text(e.dims) +
                                             " and is used with " + dims_text(weight.dims));
    return e;
}

Matrix WeightStore::matrix(const program::Weight& weight, std::size_t part) const {
    const Entry& e = find(weight);
    Matrix m;
    matrix_format(e.format, m.format);
    m.rows = at(e.dims[e.dims.size() - 2]);
    m.cols = at(e.dims.back());
    const bool one_part = e.parts.size() == 1;
    const Part& p = e.parts[one_part ? 0 : part];
    const std::size_t skip = one_part ? part : 0;
    m.data = p.data + skip * payload_bytes(m.format, m.rows, m.cols);
    if (p.scale)
        m.scales = reinterpret_cast<const std::uint8_t*>(p.scale) + skip * scale_bytes(m.format, m.rows, m.cols);
    return m;
}

std::span<const float> WeightStore::floats(const program::Weight& weight) {
    Entry& e = find(weight);
    const std::byte* data = e.parts[0].data;
    if (e.parts.size() == 1 && program::same_format(e.format, program::formats::f32))
        return {reinterpret_cast<const float*>(data), e.elements()};
    if (e.floats.empty()) {
        const Matrix m{WeightFormat::bf16, 1, e.elements(), data, nullptr};
        e.floats.resize(e.elements());
        dequantise_row(m, 0, e.floats.data());
    }
    return e.floats;
}

std::span<const std::int32_t> WeightStore::integers(const program::Weight& weight, std::int64_t limit) {
    Entry& e = find(weight);
    if (e.integers.empty()) {
        e.integers.resize(e.elements());
        const bool wide = e.format.element == DSV4_I64;
        for (std::size_t i = 0; i < e.integers.size(); ++i) {
            std::int64_t v = 0;
            if (wide) {
                std::memcpy(&v, e.parts[0].data + i * 8, 8);
            } else {
                std::int32_t narrow;
                std::memcpy(&narrow, e.parts[0].data + i * 4, 4);
                v = narrow;
            }
            e.integers[i] = v < 0 || v > INT32_MAX ? -1 : static_cast<std::int32_t>(v);
        }
    }
    for (std::size_t i = 0; i < e.integers.size(); ++i)
        if (e.integers[i] < 0 || e.integers[i] >= limit)
            throw Failure(Code::corrupt, "element " + std::to_string(i) + " of weight '" + e.name + "' is not in 0.." +
                                             std::to_string(limit - 1));
    return e.integers;
}

} // namespace dsv4::cpu
