// Sampling from logits.
#include "sample.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dsv4/sdk/result.hpp"
#include "index_select.hpp"

namespace dsv4::cpu {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

// exp(l - largest) / sum over `logits`, which are not empty and have a finite maximum.
std::vector<float> softmax(std::span<const float> logits) {
    const float largest = *std::max_element(logits.begin(), logits.end());
    std::vector<float> p(logits.size());
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(logits[i] - largest);
    const auto total = static_cast<float>(sum);
    for (float& v : p) v /= total;
    return p;
}

// Positions 0..n-1 of p, most probable first, lower position first on a tie.
std::vector<std::int32_t> by_probability(std::span<const float> p) { return top_k(p, p.size()); }

} // namespace

void adjust_logits(std::span<float> logits, const SamplingParameters& s, std::span<const TokenCount> counts,
                   std::span<const std::int32_t> forbidden) {
    for (const auto& [id, value] : s.bias) logits[index(id)] += value;
    if (s.penalises() && !counts.empty()) {
        for (std::size_t v = 0; v < logits.size(); ++v) {
            const TokenCount count = counts[v];
            if (count == 0) continue;
            float& l = logits[v];
            if (s.repetition_penalty != 1) l = l > 0 ? l / s.repetition_penalty : l * s.repetition_penalty;
            const TokenCount generated = count & ~in_prompt;
            if (generated > 0) {
                l -= s.frequency_penalty * static_cast<float>(generated);
                l -= s.presence_penalty;
            }
        }
    }
    for (const std::int32_t id : forbidden)
        if (id >= 0 && index(id) < logits.size()) logits[index(id)] = minus_infinity;
}

float Distribution::of(std::int32_t id) const {
    const auto at = std::lower_bound(ids.begin(), ids.end(), id);
    return at != ids.end() && *at == id ? probabilities[static_cast<std::size_t>(at - ids.begin())] : 0.0f;
}

Distribution distribution(std::span<const float> logits, const SamplingParameters& s) {
    float largest = minus_infinity;
    std::int32_t best = -1;
    for (std::size_t v = 0; v < logits.size(); ++v) {
        if (std::isnan(logits[v]) || logits[v] == -minus_infinity)
            throw Failure(Code::invalid, "the logit of token " + std::to_string(v) + " is not a number");
        if (logits[v] > largest) {
            largest = logits[v];
            best = static_cast<std::int32_t>(v);
        }
    }
    if (best < 0) throw Failure(Code::invalid, "no token is allowed: every logit is minus infinity");
    if (s.temperature == 0) return {{best}, {1.0f}};

    Distribution kept;
    std::vector<float> scaled;
    const auto keep = [&](std::size_t v) {
        kept.ids.push_back(static_cast<std::int32_t>(v));
        scaled.push_back(logits[v] / s.temperature);
    };
    if (s.top_k > 0 && static_cast<std::size_t>(s.top_k) < logits.size()) {
        auto order = top_k(logits, static_cast<std::size_t>(s.top_k));
        std::sort(order.begin(), order.end());
        for (const std::int32_t v : order)
            if (logits[index(v)] > minus_infinity) keep(index(v));
    } else {
        for (std::size_t v = 0; v < logits.size(); ++v)
            if (logits[v] > minus_infinity) keep(v);
    }

    std::vector<float> p = softmax(scaled);
    const auto retain = [&](const std::vector<bool>& wanted) {
        std::size_t to = 0;
        for (std::size_t i = 0; i < p.size(); ++i) {
            if (!wanted[i]) continue;
            kept.ids[to] = kept.ids[i];
            scaled[to] = scaled[i];
            p[to++] = p[i];
        }
        kept.ids.resize(to);
        scaled.resize(to);
        p.resize(to);
    };
    if (s.top_p < 1) {
        std::vector<bool> wanted(p.size());
        double sum = 0;
        for (const std::int32_t i : by_probability(p)) {
            wanted[index(i)] = true;
            sum += p[index(i)];
            if (sum >= s.top_p) break;
        }
        retain(wanted);
    }
    if (s.min_p > 0) {
        const float least = s.min_p * *std::max_element(p.begin(), p.end());
        std::vector<bool> wanted(p.size());
        for (std::size_t i = 0; i < p.size(); ++i) wanted[i] = p[i] >= least;
        retain(wanted);
    }
    kept.probabilities = softmax(scaled);
    return kept;
}

std::int32_t draw(const Distribution& from, std::uint64_t seed, std::int64_t position, Stream stream) {
    if (from.ids.size() == 1) return from.ids[0];
    std::int32_t chosen = -1;
    double best = 0;
    for (std::size_t i = 0; i < from.ids.size(); ++i) {
        const float p = from.probabilities[i];
        if (!(p > 0)) continue;
        const double u = uniform(seed, position, stream, static_cast<std::uint32_t>(from.ids[i]));
        const double key = std::log(static_cast<double>(p)) - std::log(-std::log(u));
        if (chosen < 0 || key > best) {
            chosen = from.ids[i];
            best = key;
        }
    }
    return chosen;
}

Distribution residual(const Distribution& p, const Distribution& q) {
    Distribution r;
    double sum = 0;
    for (std::size_t i = 0; i < p.ids.size(); ++i) {
        const float d = p.probabilities[i] - q.of(p.ids[i]);
        if (!(d > 0)) continue;
        r.ids.push_back(p.ids[i]);
        r.probabilities.push_back(d);
        sum += d;
    }
    if (sum <= 1e-8) return p;
    for (float& v : r.probabilities) v = static_cast<float>(v / sum);
    return r;
}

LogProbabilities log_probabilities(std::span<const float> logits, std::int32_t token, std::size_t k) {
    const float largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float l : logits) sum += std::exp(static_cast<double>(l) - largest);
    const double log_sum = std::log(sum) + largest;
    const auto of = [&](std::int32_t id) { return static_cast<float>(logits[index(id)] - log_sum); };
    LogProbabilities out{of(token), {}};
    for (const std::int32_t id : top_k(logits, k)) out.best.emplace_back(id, of(id));
    return out;
}

} // namespace dsv4::cpu
