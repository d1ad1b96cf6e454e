// The metric registry of the process, in Prometheus terms.
#pragma once

#include "dsv4/host.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsv4::host {

inline constexpr std::size_t max_series_per_metric = 512; // label sets
inline constexpr std::size_t max_labels = 8;
inline constexpr std::size_t max_metric_families = 2048;

using Labels = std::vector<std::pair<std::string, std::string>>;

// Any thread. Metrics live as long as the registry.
class Metrics {
  public:
    Metrics();
    ~Metrics();
    Metrics(const Metrics&) = delete;
    Metrics& operator=(const Metrics&) = delete;

    // The same kind, name and labels (in any order) give the same metric. Null for an invalid name or label, a name in
    // use with another kind, other label names than the metric's first use, or beyond the limits above. Buckets of a
    // histogram follow the unit in its name: seconds, bytes or tokens.
    dsv4_metric* metric(std::int32_t kind, std::string_view name, std::string_view help, const Labels& labels) noexcept;
    // Counter: adds; gauge: sets; histogram: observes. NaN, and negative values of a counter, are ignored; so is null.
    static void update(dsv4_metric* metric, double value) noexcept;
    // The Prometheus text format.
    std::string expose() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace dsv4::host
