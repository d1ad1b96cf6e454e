// Batches of many sequences.
#include "tests/numerics/slots.hpp"

#include "core/lower/deepseek_v4.hpp"

namespace dsv4::numerics {

Slots::Slots(Model& model, int slots, std::int64_t positions, std::uint32_t max_rows)
    : model_(model), lengths_(std::size_t(slots), 0) {
    lower::Options lowering;
    lowering.precision = model.numbers().precision;
    lowering.sample = false;
    lowering.logits_output = true;
    const program::Program program = lower::lower(model.geometry(), model.weights(), lowering);
    std::vector<dsv4_state_pool> sizes;
    for (const state::KindRule& rule :
         state::kind_rules(model.session().backend().state_layouts(program), model.geometry().sliding_window)) {
        const auto per_slot = std::uint32_t((positions + rule.positions_per_page - 1) / rule.positions_per_page);
        pools_.emplace_back(rule, per_slot * std::uint32_t(slots));
        sizes.push_back({rule.kind, per_slot * std::uint32_t(slots)});
    }
    model.session().allocate(program, sizes, std::uint32_t(slots));
    executable_ = model.session().compile(program, max_rows, std::uint32_t(slots));
    for (int s = 0; s < slots; ++s) {
        pages_.push_back(std::make_unique<state::SequencePages>(pools_));
        if (!pages_.back()->reserve(positions)) throw Failure(Code::internal, "the pools are too small for the slots");
    }
}

Slots::~Slots() { model_.session().backend().table->executable_release(model_.session().raw(), executable_); }

std::vector<float> Slots::run(const std::vector<Piece>& pieces) {
    runtime::Batch batch;
    std::size_t wanted = 0;
    for (const Piece& piece : pieces) {
        std::int64_t& length = lengths_.at(std::size_t(piece.slot));
        dsv4_batch_slot& slot = batch.slot(piece.slot, pages_.at(std::size_t(piece.slot))->tables());
        if (length == 0) slot.flags = DSV4_SLOT_RESET;
        for (std::size_t i = 0; i < piece.tokens.size(); ++i) {
            const bool logits = i + piece.logits >= piece.tokens.size();
            const auto at = std::int64_t(i) + (piece.relative ? 0 : length);
            batch.row(at, DSV4_INPUT_GIVEN, piece.tokens[i],
                      (logits ? DSV4_ROW_LOGITS : 0u) | (piece.relative ? DSV4_ROW_RELATIVE : 0u));
            wanted += logits;
        }
        length += std::int64_t(piece.tokens.size());
    }
    std::vector<float> logits(wanted * std::size_t(model_.geometry().vocab_size));
    batch.output("logits", logits.data(), logits.size() * sizeof(float));
    const runtime::TicketResult result = model_.session().run(executable_, batch.view());
    if (!result.errors.empty())
        throw Failure(Code::internal, "row " + std::to_string(result.errors[0].row) + " failed in " +
                                          result.errors[0].op + ": " + result.errors[0].message);
    return logits;
}

} // namespace dsv4::numerics
