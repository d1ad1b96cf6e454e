// Range checks with the field's name in the message, and the merge with defaults.
#include "core/sampling/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

namespace dsv4::sampling {
namespace {

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

// Messages begin with the parameter, for the APIs that report it apart.
[[noreturn]] void refuse(const std::string& field, const std::string& what, const std::string& must) {
    throw Failure(Code::invalid, field + ": " + what + " is not " + must + ".");
}

float in_range(const char* field, double value, double low, double high) {
    if (!(value >= low && value <= high)) refuse(field, number(value), "from " + number(low) + " to " + number(high));
    return float(value);
}

void check_token(const std::string& field, std::int32_t token, std::int64_t vocab_size) {
    if (token < 0 || token >= vocab_size)
        refuse(field, "token " + std::to_string(token), "from 0 to " + std::to_string(vocab_size - 1));
}

} // namespace

bool Sampling::stops_at(std::int32_t token) const noexcept {
    return std::find(stop_ids.begin(), stop_ids.end(), token) != stop_ids.end();
}

dsv4_sampling Sampling::view() const noexcept {
    dsv4_sampling s{};
    s.struct_size = sizeof s;
    s.temperature = temperature;
    s.top_k = top_k;
    s.top_p = top_p;
    s.min_p = min_p;
    s.presence_penalty = presence_penalty;
    s.frequency_penalty = frequency_penalty;
    s.repetition_penalty = repetition_penalty;
    s.seed = seed;
    s.logprobs = logprobs;
    s.masked = masked;
    s.bias = bias.data();
    s.bias_count = std::uint32_t(bias.size());
    s.stop_ids = stop_ids.data();
    s.stop_count = std::uint32_t(stop_ids.size());
    s.min_length = min_length;
    s.max_length = max_length;
    return s;
}

Sampling Sampling::forcing(std::int32_t token) const {
    Sampling s = *this;
    std::erase_if(s.bias, [&](const dsv4_bias& b) { return b.token == token; });
    s.bias.push_back({token, always_bias});
    return s;
}

Result<Sampling> resolve(const dsv4_generate_request& request, const Defaults& defaults, std::int64_t vocab_size,
                         std::span<const std::int32_t> stop_ids, std::span<const std::int32_t> banned,
                         std::uint64_t random_seed) {
    return guard([&] {
        const dsv4_sampling& in = request.sampling;
        auto has = [&](std::uint64_t bit) { return (request.sampling_said & bit) != 0; };
        Sampling s;
        s.temperature =
            in_range("temperature", has(DSV4_SAID_TEMPERATURE) ? double(in.temperature) : defaults.temperature, 0, 2);
        const std::int64_t top_k = has(DSV4_SAID_TOP_K) ? in.top_k : defaults.top_k;
        if (top_k < -1) refuse("top_k", std::to_string(top_k), "a positive count, or 0 or -1 for no limit");
        s.top_k = top_k <= 0 ? 0 : std::int32_t(std::min(top_k, vocab_size));
        const double top_p = has(DSV4_SAID_TOP_P) ? double(in.top_p) : defaults.top_p;
        if (!(top_p > 0 && top_p <= 1)) refuse("top_p", number(top_p), "above 0 and at most 1");
        s.top_p = float(top_p);
        s.min_p = in_range("min_p", has(DSV4_SAID_MIN_P) ? double(in.min_p) : defaults.min_p, 0, 1);
        if (has(DSV4_SAID_PRESENCE_PENALTY))
            s.presence_penalty = in_range("presence_penalty", double(in.presence_penalty), -2, 2);
        if (has(DSV4_SAID_FREQUENCY_PENALTY))
            s.frequency_penalty = in_range("frequency_penalty", double(in.frequency_penalty), -2, 2);
        if (has(DSV4_SAID_REPETITION_PENALTY)) {
            if (!(in.repetition_penalty > 0 && in.repetition_penalty <= 100))
                refuse("repetition_penalty", number(double(in.repetition_penalty)), "above 0 and at most 100");
            s.repetition_penalty = in.repetition_penalty;
        }
        s.seed = has(DSV4_SAID_SEED) ? in.seed : random_seed;
        if (in.logprobs < -1 || in.logprobs > max_logprobs)
            refuse("top_logprobs", std::to_string(in.logprobs), "from 0 to " + std::to_string(max_logprobs));
        s.logprobs = in.logprobs;

        if (in.bias_count > max_biases)
            refuse("logit_bias", "a list of " + std::to_string(in.bias_count) + " entries",
                   "one of at most " + std::to_string(max_biases));
        std::map<std::int32_t, float> bias;
        for (std::uint32_t i = 0; i < in.bias_count; ++i) {
            check_token("logit_bias", in.bias[i].token, vocab_size);
            const float value = in_range("logit_bias", double(in.bias[i].value), -100, 100);
            if (!bias.emplace(in.bias[i].token, value).second)
                throw Failure(Code::invalid,
                              "logit_bias: token " + std::to_string(in.bias[i].token) + " appears more than once.");
        }
        for (std::int32_t token : banned) bias[token] = never_bias;
        for (const auto& [token, value] : bias) s.bias.push_back({token, value});

        if (in.stop_count > max_stop_ids)
            refuse("stop_token_ids", "a list of " + std::to_string(in.stop_count) + " entries",
                   "one of at most " + std::to_string(max_stop_ids));
        s.stop_ids.assign(stop_ids.begin(), stop_ids.end());
        for (std::uint32_t i = 0; i < in.stop_count; ++i) {
            check_token("stop_token_ids", in.stop_ids[i], vocab_size);
            s.stop_ids.push_back(in.stop_ids[i]);
        }
        std::sort(s.stop_ids.begin(), s.stop_ids.end());
        s.stop_ids.erase(std::unique(s.stop_ids.begin(), s.stop_ids.end()), s.stop_ids.end());
        return s;
    });
}

} // namespace dsv4::sampling
