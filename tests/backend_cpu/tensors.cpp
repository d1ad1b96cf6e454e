// Safetensors: u64 header length, JSON header, payload.
#include "tensors.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "plugins/backend-cpu/formats/bf16.hpp"

namespace dsv4::test {

std::size_t Tensor::count() const {
    std::size_t n = 1;
    for (const std::size_t d : shape) n *= d;
    return n;
}

std::vector<float> Tensor::floats() const {
    std::vector<float> out(count());
    if (dtype == "F32") {
        std::memcpy(out.data(), bytes.data(), out.size() * 4);
    } else if (dtype == "BF16") {
        for (std::size_t i = 0; i < out.size(); ++i) {
            std::uint16_t bits;
            std::memcpy(&bits, &bytes[2 * i], 2);
            out[i] = cpu::bf16_decode(bits);
        }
    } else {
        throw std::runtime_error("not a float tensor: " + dtype);
    }
    return out;
}

std::vector<std::int32_t> Tensor::ints() const {
    std::vector<std::int32_t> out(count());
    const std::size_t size = dtype == "I64" ? 8 : 4;
    if (dtype != "I64" && dtype != "I32") throw std::runtime_error("not an integer tensor: " + dtype);
    for (std::size_t i = 0; i < out.size(); ++i) std::memcpy(&out[i], &bytes[size * i], 4);
    return out;
}

void read_safetensors(const std::string& path, Tensors& into) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path);
    std::uint64_t size = 0;
    in.read(reinterpret_cast<char*>(&size), 8);
    std::string header(size, '\0');
    in.read(header.data(), static_cast<std::streamsize>(size));
    const std::vector<char> data{std::istreambuf_iterator<char>(in), {}};
    const auto json = nlohmann::json::parse(header);
    for (const auto& [name, entry] : json.items()) {
        if (name == "__metadata__") continue;
        const auto begin = entry["data_offsets"][0].get<std::size_t>(),
                   end = entry["data_offsets"][1].get<std::size_t>();
        Tensor t{entry["dtype"], entry["shape"].get<std::vector<std::size_t>>(), {}};
        t.bytes.assign(data.begin() + static_cast<std::ptrdiff_t>(begin),
                       data.begin() + static_cast<std::ptrdiff_t>(end));
        into[name] = std::move(t);
    }
}

} // namespace dsv4::test
