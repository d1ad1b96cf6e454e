// The embedding lookup.
#include "embed.hpp"

#include <algorithm>
#include <vector>

namespace dsv4::cpu {

void embed(std::span<const std::int32_t> ids, const Matrix& table, std::size_t copies, RowsOut streams) {
    std::vector<float> scratch(table.cols);
    for (std::size_t r = 0; r < ids.size(); ++r) {
        const float* row = dequantise_row(table, static_cast<std::size_t>(ids[r]), scratch.data());
        for (std::size_t j = 0; j < copies; ++j) std::copy_n(row, table.cols, streams[r].data() + j * table.cols);
    }
}

} // namespace dsv4::cpu
