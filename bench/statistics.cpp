// Nearest-rank percentiles, the rank in integers so that no rounding moves it.
#include "bench/statistics.hpp"

#include <algorithm>
#include <numeric>

namespace dsv4::bench {

double percentile(const std::vector<double>& sorted, unsigned percent) {
    const std::size_t rank = (sorted.size() * percent + 99) / 100;
    return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

Distribution distribution(std::vector<double> values) {
    Distribution d;
    d.count = values.size();
    if (values.empty()) return d;
    std::sort(values.begin(), values.end());
    d.mean = std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
    d.min = values.front();
    d.p50 = percentile(values, 50);
    d.p95 = percentile(values, 95);
    d.p99 = percentile(values, 99);
    d.max = values.back();
    return d;
}

} // namespace dsv4::bench
