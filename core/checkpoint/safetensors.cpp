// Parses and checks safetensors headers in one pass, without building a document tree.
#include "core/checkpoint/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_set>

namespace dsv4::checkpoint {
namespace {

using nlohmann::json;

constexpr std::size_t max_rank = 16;
constexpr std::size_t max_name_bytes = 4096;

// Receives the header's JSON and fills a Header. The depth of an accepted header is fixed: the object of tensors, an
// object a tensor (or __metadata__), and the two lists.
class HeaderReader final : public json::json_sax_t {
  public:
    HeaderReader(Header& header, std::string_view where) : header_(header), where_(where) {}

    bool null() override { return unexpected("null"); }
    bool boolean(bool) override { return unexpected("a boolean"); }
    bool number_integer(number_integer_t value) override { return unexpected("the number " + std::to_string(value)); }
    bool number_float(number_float_t, const string_t& text) override { return unexpected("the number " + text); }
    bool binary(binary_t&) override { return unexpected("binary data"); }

    bool number_unsigned(number_unsigned_t value) override {
        if (place_ == Place::shape) {
            if (entry_.shape.size() == max_rank) fail("has more than " + std::to_string(max_rank) + " dimensions");
            if (value > static_cast<std::uint64_t>(INT64_MAX)) fail("has the dimension " + std::to_string(value));
            entry_.shape.push_back(static_cast<std::int64_t>(value));
        } else if (place_ == Place::offsets) {
            if (offsets_ == 2) fail("has more than two data_offsets");
            range_[offsets_++] = value;
        } else {
            return unexpected("the number " + std::to_string(value));
        }
        return true;
    }

    bool string(string_t& value) override {
        if (place_ == Place::metadata) {
            if (!header_.metadata.emplace(key_, value).second) fail_metadata("states \"" + key_ + "\" twice");
        } else if (place_ == Place::tensor && key_ == "dtype") {
            const auto dtype = model::dtype_from_name(value);
            if (!dtype) fail("has the unknown dtype \"" + value.substr(0, 64) + "\"");
            entry_.dtype = *dtype;
            has_dtype_ = true;
        } else {
            return unexpected("a string");
        }
        return true;
    }

    bool start_object(std::size_t) override {
        if (place_ == Place::outside) {
            place_ = Place::names;
        } else if (place_ == Place::names && name_ == "__metadata__") {
            place_ = Place::metadata;
        } else if (place_ == Place::names) {
            place_ = Place::tensor;
            entry_ = {};
            entry_.name = name_;
            has_dtype_ = has_shape_ = false;
            offsets_ = 0;
            fields_.clear();
        } else {
            return unexpected("an object");
        }
        return true;
    }

    bool key(string_t& value) override {
        if (place_ == Place::names) {
            if (value.size() > max_name_bytes)
                throw Failure(Code::corrupt, where_ + ": a tensor name has " + std::to_string(value.size()) + " bytes");
            name_ = value;
            if (!names_.insert(name_).second) fail("is listed twice");
        } else {
            key_ = value;
            if (place_ == Place::tensor && !fields_.insert(key_).second) fail("states \"" + key_ + "\" twice");
        }
        return true;
    }

    bool start_array(std::size_t) override {
        if (place_ == Place::tensor && key_ == "shape") {
            place_ = Place::shape;
            has_shape_ = true;
        } else if (place_ == Place::tensor && key_ == "data_offsets") {
            place_ = Place::offsets;
        } else {
            return unexpected("a list");
        }
        return true;
    }

    bool end_array() override {
        place_ = Place::tensor;
        return true;
    }

    bool end_object() override {
        if (place_ == Place::tensor) finish_tensor();
        place_ = place_ == Place::names ? Place::outside : Place::names;
        return true;
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
        const std::string text = e.what();
        const std::size_t end = text.find("] ");
        throw Failure(Code::corrupt, where_ + ": the header is not valid JSON at byte " + std::to_string(position) +
                                         ": " + (end == std::string::npos ? text : text.substr(end + 2)));
    }

  private:
    enum class Place { outside, names, metadata, tensor, shape, offsets };

    [[noreturn]] void fail(const std::string& what) const {
        throw Failure(Code::corrupt, where_ + ": tensor " + name_ + " " + what);
    }
    [[noreturn]] void fail_metadata(const std::string& what) const {
        throw Failure(Code::corrupt, where_ + ": __metadata__ " + what);
    }
    bool unexpected(const std::string& found) const {
        switch (place_) {
        case Place::outside:
            throw Failure(Code::corrupt, where_ + ": the header holds " + found + "; expected an object");
        case Place::names: fail("holds " + found + "; expected an object with dtype, shape and data_offsets");
        case Place::metadata: fail_metadata("holds " + found + " at \"" + key_ + "\"; expected a string");
        case Place::tensor: fail("holds " + found + " at \"" + key_ + "\"");
        case Place::shape: fail("holds " + found + " in its shape; expected integers of at least 0");
        case Place::offsets: fail("holds " + found + " in its data_offsets; expected integers of at least 0");
        }
        return false;
    }

    void finish_tensor() {
        if (!has_dtype_) fail("states no dtype");
        if (!has_shape_) fail("states no shape");
        if (offsets_ != 2) fail("states no data_offsets of two numbers");
        if (range_[0] > range_[1])
            fail("has reversed data_offsets [" + std::to_string(range_[0]) + "," + std::to_string(range_[1]) + "]");
        // A zero anywhere makes an empty tensor; the other dimensions must still multiply without overflow.
        std::uint64_t product = model::width_bytes(entry_.dtype);
        bool empty = false;
        for (const std::int64_t d : entry_.shape) {
            empty = empty || d == 0;
            if (d != 0 && __builtin_mul_overflow(product, static_cast<std::uint64_t>(d), &product))
                fail("has the shape " + shape_text(entry_.shape) + ", whose size overflows");
        }
        entry_.offset_bytes = range_[0];
        entry_.size_bytes = empty ? 0 : product;
        if (range_[1] - range_[0] != entry_.size_bytes)
            fail("has " + std::to_string(range_[1] - range_[0]) + " bytes of data; its shape " +
                 shape_text(entry_.shape) + " of " + std::string(model::dtype_name(entry_.dtype)) + " needs " +
                 std::to_string(entry_.size_bytes));
        header_.tensors.push_back(std::move(entry_));
    }

    Header& header_;
    std::string where_;
    Place place_ = Place::outside;
    std::string name_;
    std::string key_;
    TensorEntry entry_;
    bool has_dtype_ = false;
    bool has_shape_ = false;
    std::size_t offsets_ = 0;
    std::uint64_t range_[2] = {0, 0};
    std::unordered_set<std::string> names_;
    std::unordered_set<std::string> fields_;
};

// Sorts by offset and checks the ranges against each other and the payload.
void check_ranges(Header& header, const std::string& where) {
    std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
        return std::tie(a.offset_bytes, a.size_bytes, a.name) < std::tie(b.offset_bytes, b.size_bytes, b.name);
    });
    std::uint64_t end = 0;
    const TensorEntry* previous = nullptr;
    for (const TensorEntry& t : header.tensors) {
        const std::uint64_t t_end = t.offset_bytes + t.size_bytes; // equals the stated end, so it cannot overflow
        if (t_end > header.payload_bytes)
            throw Failure(Code::corrupt,
                          where + ": tensor " + t.name + " ends at byte " + std::to_string(t_end) +
                              " of the payload, which has " + std::to_string(header.payload_bytes) +
                              " bytes; the file is cut short or its header is wrong",
                          "fetch this file again and compare its size and hash with the publisher's");
        if (t.size_bytes == 0) continue;
        if (previous && t.offset_bytes < end)
            throw Failure(Code::corrupt, where + ": tensors " + previous->name + " and " + t.name +
                                             " overlap at byte " + std::to_string(t.offset_bytes) + " of the payload");
        header.unused_bytes += t.offset_bytes - end;
        end = t_end;
        previous = &t;
    }
    if (end != header.payload_bytes)
        throw Failure(Code::corrupt,
                      where + ": " + std::to_string(header.payload_bytes - end) +
                          " unreferenced bytes follow the last tensor",
                      "fetch this file again and compare its size and hash with the publisher's");
}

Header parse(std::span<const std::byte> start, std::uint64_t file_bytes, const std::string& where) {
    constexpr std::uint64_t prefix_bytes = 8;
    if (file_bytes < prefix_bytes || start.size() < prefix_bytes)
        throw Failure(Code::corrupt, where + " has " + std::to_string(file_bytes) +
                                         " bytes; a safetensors file has at least 8 and a header");
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < prefix_bytes; ++i) length |= static_cast<std::uint64_t>(start[i]) << (8 * i);
    if (length > max_header_bytes)
        throw Failure(Code::corrupt,
                      where + ": the header length is " + std::to_string(length) + " bytes; the format allows " +
                          std::to_string(max_header_bytes),
                      "check that this is a safetensors file");
    if (length > file_bytes - prefix_bytes || length > start.size() - prefix_bytes)
        throw Failure(Code::corrupt,
                      where + ": the header length is " + std::to_string(length) + " bytes, but only " +
                          std::to_string(file_bytes - prefix_bytes) + " bytes follow; the file is cut short",
                      "fetch this file again and compare its size and hash with the publisher's");
    Header header;
    header.payload_offset_bytes = prefix_bytes + length;
    header.payload_bytes = file_bytes - header.payload_offset_bytes;
    HeaderReader reader(header, where);
    const char* text = reinterpret_cast<const char*>(start.data()) + prefix_bytes;
    json::sax_parse(text, text + length, &reader);
    check_ranges(header, where);
    return header;
}

} // namespace

const TensorEntry* Header::find(std::string_view name) const noexcept {
    for (const TensorEntry& t : tensors)
        if (t.name == name) return &t;
    return nullptr;
}

Result<Header> parse_header(std::span<const std::byte> start, std::uint64_t file_bytes, std::string_view where) {
    return guard([&] { return parse(start, file_bytes, std::string(where)); });
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
    return guard([&] {
        File file(path);
        Header header = parse(file.bytes(), file.size_bytes(), file.name());
        return SafetensorsFile(std::move(file), std::move(header));
    });
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorEntry& tensor) const noexcept {
    return file_.bytes().subspan(header_.payload_offset_bytes + tensor.offset_bytes, tensor.size_bytes);
}

std::string shape_text(std::span<const std::int64_t> shape) {
    std::string text = "[";
    for (const std::int64_t d : shape) {
        if (text.size() > 1) text += ',';
        text += std::to_string(d);
    }
    return text + "]";
}

} // namespace dsv4::checkpoint
