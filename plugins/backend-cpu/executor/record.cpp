// Reading sampling parameters off the boundary.
#include "record.hpp"

#include <cmath>
#include <string>

#include "dsv4/sdk/result.hpp"

namespace dsv4::cpu {

Sampling read_sampling(const dsv4_sampling& s) {
    const auto require = [](bool good, const char* name, double value) {
        if (!good)
            throw Failure(Code::invalid,
                          std::string("sampling parameter ") + name + " cannot be " + std::to_string(value));
    };
    require(s.temperature >= 0 && std::isfinite(s.temperature), "temperature", s.temperature);
    require(s.top_k >= 0, "top_k", s.top_k);
    require(s.top_p > 0 && s.top_p <= 1, "top_p", s.top_p);
    require(s.min_p >= 0 && s.min_p <= 1, "min_p", s.min_p);
    require(s.max_length > 0, "max_length", static_cast<double>(s.max_length));
    require(std::isfinite(s.presence_penalty), "presence_penalty", s.presence_penalty);
    require(std::isfinite(s.frequency_penalty), "frequency_penalty", s.frequency_penalty);
    require(s.repetition_penalty > 0 && std::isfinite(s.repetition_penalty), "repetition_penalty",
            s.repetition_penalty);
    if (s.struct_size < sizeof s)
        throw Failure(Code::invalid, "the sampling parameters are smaller than this version's");
    Sampling out;
    out.parameters = {s.temperature,        s.top_k, s.top_p, s.min_p, s.presence_penalty, s.frequency_penalty,
                      s.repetition_penalty, s.seed,  {}};
    for (std::uint32_t i = 0; i < s.bias_count; ++i) {
        require(s.bias[i].token >= 0, "bias token", s.bias[i].token);
        require(!std::isnan(s.bias[i].value) && s.bias[i].value < HUGE_VALF, "bias", s.bias[i].value);
        out.parameters.bias.emplace_back(s.bias[i].token, s.bias[i].value);
    }
    out.logprobs = s.logprobs;
    out.masked = s.masked != 0;
    out.stop_ids.assign(s.stop_ids, s.stop_ids + s.stop_count);
    out.min_length = s.min_length;
    out.max_length = s.max_length;
    return out;
}

} // namespace dsv4::cpu
