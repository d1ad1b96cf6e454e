// What a set of values says in a few numbers.
#pragma once

#include <cstddef>
#include <vector>

namespace dsv4::bench {

struct Distribution {
    std::size_t count = 0; // 0: the rest means nothing
    double mean = 0, min = 0, p50 = 0, p95 = 0, p99 = 0, max = 0;
};

// The nearest-rank percentile: the smallest value such that at least `percent` % of all are not above it, which is the
// ceil(percent / 100 * n)-th smallest. Always a value that was measured; nothing is interpolated. `sorted` ascends and
// is not empty; percent is an integer from 0 to 100 (0 gives the smallest).
double percentile(const std::vector<double>& sorted, unsigned percent);

Distribution distribution(std::vector<double> values);

} // namespace dsv4::bench
