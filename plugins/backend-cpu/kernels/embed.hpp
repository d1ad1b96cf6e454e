// `embed`: token ids to residual streams.
#pragma once

#include <cstdint>

#include "matrix.hpp"
#include "rows.hpp"

namespace dsv4::cpu {

// streams [N, n * D] = n copies of the embedding row of each id, unscaled. Ids must be below table.rows.
void embed(std::span<const std::int32_t> ids, const Matrix& table, std::size_t copies, RowsOut streams);

} // namespace dsv4::cpu
