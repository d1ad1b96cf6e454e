// Several sequences in the slots of one backend session, with rows batched as a test asks for.
#pragma once

#include "core/runtime/batch.hpp"
#include "core/state/pages.hpp"
#include "tests/numerics/model.hpp"

#include <memory>
#include <span>

namespace dsv4::numerics {

// Rows of one slot in a batch: `tokens` behind what the slot holds. Logits are asked for the last `logits` rows.
struct Piece {
    int slot = 0;
    std::span<const std::int32_t> tokens;
    std::size_t logits = 1;
    bool relative = false; // positions count from the record's committed length instead of being given
};

// Replaces the session's state. Every slot can hold `positions` tokens.
class Slots {
  public:
    Slots(Model& model, int slots, std::int64_t positions, std::uint32_t max_rows);
    ~Slots();
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;

    // Runs the pieces as one batch, slots in the given order; the logits [M, V] that they ask for.
    std::vector<float> run(const std::vector<Piece>& pieces);
    // The next piece of the slot starts a new sequence at position 0.
    void restart(int slot) { lengths_.at(std::size_t(slot)) = 0; }

  private:
    Model& model_;
    std::vector<state::PagePool> pools_;
    std::vector<std::unique_ptr<state::SequencePages>> pages_;
    std::vector<std::int64_t> lengths_;
    dsv4_executable* executable_ = nullptr;
};

} // namespace dsv4::numerics
