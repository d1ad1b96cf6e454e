// Gathers rows of inputs and outputs.
#include "core/conformance/select_rows.hpp"

#include <algorithm>
#include <set>

namespace dsv4::conformance {
namespace {

std::size_t row_bytes(const program::Value& v) {
    std::size_t bytes = program::element_bytes(v.element);
    for (std::size_t i = 1; i < v.dims.size(); ++i) bytes *= std::size_t(v.dims[i]);
    return bytes;
}

// The numbers of `rows` among those of `from` that have logits, or among all of them.
std::vector<std::size_t> numbers(const Step& step, const std::vector<std::size_t>& from,
                                 const std::vector<std::size_t>& rows, bool logits) {
    std::vector<std::size_t> found;
    std::size_t number = 0;
    for (std::size_t row : from) {
        if (logits && !(step.rows[row].flags & DSV4_ROW_LOGITS)) continue;
        if (std::binary_search(rows.begin(), rows.end(), row)) found.push_back(number);
        ++number;
    }
    return found;
}

Bytes gather(const Bytes& from, std::size_t width, const std::vector<std::size_t>& numbers) {
    Bytes to;
    to.reserve(numbers.size() * width);
    for (std::size_t n : numbers)
        to.insert(to.end(), from.begin() + std::ptrdiff_t(n * width), from.begin() + std::ptrdiff_t((n + 1) * width));
    return to;
}

std::vector<std::size_t> all_rows(const Case& whole) {
    std::vector<std::size_t> rows(whole.steps.front().rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    return rows;
}

} // namespace

Case select_rows(const Case& whole, const std::vector<std::size_t>& rows) {
    const Step& step = whole.steps.front();
    const program::Program& program = whole.programs[step.program];
    Case part = whole;
    Step& kept = part.steps.front();
    kept.rows.clear();
    for (std::size_t row : rows) kept.rows.push_back(step.rows[row]);
    for (auto& [name, bytes] : kept.inputs) {
        const program::Value& v = program.values[program.find_value(name)];
        bytes = gather(bytes, row_bytes(v), numbers(step, all_rows(whole), rows, v.dims[0] == program::logit_rows));
    }
    return part;
}

CaseOutput select_outputs(const Case& whole, const CaseOutput& output, const std::vector<std::size_t>& ran,
                          const std::vector<std::size_t>& kept) {
    const Step& step = whole.steps.front();
    const program::Program& program = whole.programs[step.program];
    CaseOutput part = output;
    for (auto& [name, bytes] : part.steps.front().values) {
        const program::Value& v = program.values[program.find_value(name)];
        bytes = gather(bytes, row_bytes(v), numbers(step, ran, kept, v.dims[0] == program::logit_rows));
    }
    return part;
}

std::vector<std::size_t> sample_rows(const std::vector<std::uint32_t>& row_counts) {
    constexpr std::size_t every = 8, spread = 12;
    std::set<std::size_t> rows;
    for (std::size_t n : row_counts) {
        for (std::size_t i = 0; i < std::min(n, every); ++i) rows.insert(i);
        for (std::size_t i = 0; i < spread && n > 0; ++i) rows.insert(i * (n - 1) / (spread - 1));
    }
    return {rows.begin(), rows.end()};
}

} // namespace dsv4::conformance
