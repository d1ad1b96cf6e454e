// Fuzzes config.json: any text gives a geometry whose tensors have sizes that fit, or an error that names the file.
#include "core/model/expected_tensors.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace dsv4::model;
    const auto geometry = parse_geometry({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    if (!geometry.ok()) {
        require(geometry.error().message.find("fuzz.json") != std::string::npos);
        return 0;
    }
    // Large models are legal and slow to list.
    if (geometry->num_hidden_layers * geometry->n_routed_experts > 2048) return 0;
    const DraftKind draft = geometry->dspark ? DraftKind::dspark : DraftKind::mtp;
    for (const ExpectedTensor& t : expected_tensors(*geometry, {.draft = draft})) {
        // UBSan stops the run if a product overflows; the bound is the one that geometry.hpp promises.
        require(t.bytes() > 0 && t.bytes() < (std::int64_t{1} << 62));
    }
    return 0;
}
