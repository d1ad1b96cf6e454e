// Optimal string alignment distance.
#include "dsl/suggest.hpp"

#include <algorithm>
#include <vector>

namespace dsv4::dsl {

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
    const std::size_t longer = std::max(a.size(), b.size());
    if (longer - std::min(a.size(), b.size()) > limit) return limit + 1;
    std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return std::min(above[b.size()], limit + 1);
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
    constexpr std::size_t limit = 2;
    std::string_view best;
    std::size_t best_distance = std::min(limit + 1, (name.size() + 1) / 2);
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = edit_distance(name, candidate, limit);
        if (distance >= best_distance) continue;
        best = candidate;
        best_distance = distance;
    }
    return best;
}

} // namespace dsv4::dsl
