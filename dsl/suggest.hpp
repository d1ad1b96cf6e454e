// "Did you mean": the nearest of a set of names.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace dsv4::dsl {

// Insertions, deletions, replacements and swaps of neighbours that turn one name into the other; `limit + 1` where that
// is more than `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

// The nearest candidate at a distance of at most 2 and less than half of the name's length; empty where there is none.
// The first of equals wins.
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

} // namespace dsv4::dsl
