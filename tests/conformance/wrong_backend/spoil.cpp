// Changes bytes of outputs.
#include "spoil.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace dsv4::wrong {
namespace {

bool picked(const Settings& s, const std::vector<RowFacts>& rows, std::size_t i) {
    const RowFacts& row = rows[i];
    if (s.slot >= 0 && row.slot != s.slot) return false;
    if (s.rows == "position_127") return row.position >= 0 && row.position % 128 == 127;
    if (s.rows == "window_of_4") return row.position >= 0 && row.position % 4 == 3;
    if (s.rows == "last_of_batch") return i + 1 == rows.size();
    if (s.rows == "decode") return row.alone;
    if (s.rows == "of_large_batches") return rows.size() > 64;
    return true;
}

float load(const unsigned char* at, bool narrow) {
    std::uint32_t bits = 0;
    std::memcpy(narrow ? reinterpret_cast<unsigned char*>(&bits) + 2 : reinterpret_cast<unsigned char*>(&bits), at,
                narrow ? 2 : 4);
    return std::bit_cast<float>(bits);
}

void store(unsigned char* at, bool narrow, float v) {
    auto bits = std::bit_cast<std::uint32_t>(v);
    if (narrow) bits += 0x8000u; // to nearest is enough for a mistake
    std::memcpy(at, narrow ? reinterpret_cast<unsigned char*>(&bits) + 2 : reinterpret_cast<unsigned char*>(&bits),
                narrow ? 2 : 4);
}

// Signs that alternate without a pattern.
float sign(std::size_t i) { return ((i * 2654435761u) >> 13) & 1 ? 1.0f : -1.0f; }

void spoil_floats(Mistake mistake, unsigned char* row, std::size_t width, bool narrow) {
    const std::size_t size = narrow ? 2 : 4;
    if (mistake == Mistake::nan) {
        store(row, narrow, std::numeric_limits<float>::infinity());
        row[size - 2] |= 1;
        return;
    }
    for (std::size_t i = 0; i < width; ++i) {
        unsigned char* at = row + i * size;
        if (mistake == Mistake::ulp)
            at[0] ^= 1;
        else
            store(at, narrow, load(at, narrow) * (1 + (mistake == Mistake::gross ? 0.3f : 0.02f) * sign(i)));
    }
}

// Every fourth id becomes its neighbour; -1 (none) stays.
void spoil_integers(unsigned char* row, std::size_t width) {
    for (std::size_t i = 0; i < width; i += 4) {
        std::int32_t v = 0;
        std::memcpy(&v, row + 4 * i, 4);
        if (v >= 0) v ^= 1;
        std::memcpy(row + 4 * i, &v, 4);
    }
}

} // namespace

bool Settings::applies_to(const program::Program& program) const {
    return precision == "any" || (precision == "score") == (program.precision == DSV4_SCORE);
}

bool Settings::spoils_output(const program::Program& program, program::ValueId output) const {
    if (op.empty()) return true;
    return std::any_of(program.ops.begin(), program.ops.end(), [&](const program::Op& o) {
        return o.name == op && std::find(o.outputs.begin(), o.outputs.end(), output) != o.outputs.end();
    });
}

void spoil(const Settings& settings, const program::Value& value, const std::vector<RowFacts>& rows,
           const dsv4_tensor& tensor) {
    auto* bytes = static_cast<unsigned char*>(tensor.data);
    if (settings.mistake == Mistake::outside) {
        if (tensor.bytes > 0) bytes[tensor.bytes] ^= 0xFF;
        return;
    }
    std::size_t width = 1;
    for (std::size_t i = 1; i < value.dims.size(); ++i) width *= std::size_t(value.dims[i]);
    const std::size_t row_bytes = width * program::element_bytes(value.element);
    const bool only_logits = value.dims[0] == program::logit_rows;
    std::size_t number = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (only_logits && !rows[i].logits) continue;
        unsigned char* row = bytes + number++ * row_bytes;
        if (!picked(settings, rows, i)) continue;
        if (value.element == DSV4_I32)
            spoil_integers(row, width);
        else
            spoil_floats(settings.mistake, row, width, value.element == DSV4_BF16);
    }
}

Mistake mistake_named(const std::string& name) {
    static constexpr std::array<std::pair<const char*, Mistake>, 15> names{{
        {"none", Mistake::none},
        {"noise", Mistake::noise},
        {"gross", Mistake::gross},
        {"ulp", Mistake::ulp},
        {"nan", Mistake::nan},
        {"unwritten", Mistake::unwritten},
        {"outside", Mistake::outside},
        {"refuses_empty", Mistake::refuses_empty},
        {"shifted_token", Mistake::shifted_token},
        {"accepts_more", Mistake::accepts_more},
        {"ignores_masks", Mistake::ignores_masks},
        {"commits_drafts", Mistake::commits_drafts},
        {"commits_verifies", Mistake::commits_verifies},
        {"loses_page", Mistake::loses_page},
        {"accepts_any_blob", Mistake::accepts_any_blob},
    }};
    for (const auto& [text, mistake] : names)
        if (name == text) return mistake;
    throw Failure(Code::invalid, "there is no mistake '" + name + "'");
}

} // namespace dsv4::wrong
