// Expert routing.
#include "route.hpp"

#include <algorithm>

#include "index_select.hpp"

namespace dsv4::cpu {

void route(RowsIn x, std::span<const std::int32_t> tokens, const Router& router, std::span<std::int32_t> ids,
           RowsOut weights, const Numerics& numerics, const Parallel& parallel) {
    const std::size_t experts = router.gate.rows, k = router.picks;
    std::vector<float> logits(x.count * experts), biased(experts);
    const RowsOut scores{logits.data(), x.count, experts};
    linear(x, router.gate, scores, {.quantiser = Quantiser::none, .round_output = false}, numerics, parallel);
    with_accumulator(numerics, [&]<class Acc>() {
        for (std::size_t r = 0; r < x.count; ++r) {
            const auto score = scores[r];
            for (float& s : score) s = sqrt_softplus_as<Acc>(s);
            const auto picked = ids.subspan(r * k, k);
            if (!router.table.empty()) {
                std::copy_n(&router.table[static_cast<std::size_t>(tokens[r]) * k], k, picked.begin());
            } else {
                for (std::size_t e = 0; e < experts; ++e) biased[e] = score[e] + router.bias[e];
                const auto best = top_k(biased, k);
                std::copy(best.begin(), best.end(), picked.begin());
            }
            Acc sum = 0;
            for (const std::int32_t e : picked) sum += static_cast<Acc>(score[static_cast<std::size_t>(e)]);
            const auto total = static_cast<float>(sum);
            for (std::size_t j = 0; j < k; ++j)
                weights[r][j] = score[static_cast<std::size_t>(picked[j])] / total * router.scaling;
        }
    });
}

} // namespace dsv4::cpu
