// One batch going through one executable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../kernels/parallel.hpp"
#include "batch.hpp"
#include "executable.hpp"
#include "record.hpp"

namespace dsv4::cpu {

// A row that takes part: not pad, its record not finished, its pages there.
struct ActiveRow {
    std::size_t batch_row = 0;
    std::size_t slot = 0; // in Batch::slots
    std::int64_t position = 0;
    std::int32_t token = 0;
    std::uint32_t flags = 0;
};

// What a ticket collects.
struct Outcome {
    struct Emitted {
        dsv4_result result{};
        std::vector<dsv4_top_logprob> top;
    };
    struct RowError {
        std::int32_t slot, row;
        std::string op, message;
        std::uint32_t work = 0;
    };
    std::vector<Emitted> results;
    std::vector<RowError> errors;
};

class Run {
  public:
    // masks: waits for the late masks of this work; called at the mask op only.
    using Masks = std::function<std::span<const std::uint32_t>()>;
    Run(Executable& executable, const Batch& batch, const StateStore& state, std::vector<Record>& records,
        const Parallel& parallel, Masks masks, std::uint32_t work, Outcome& outcome);

    // Page copies, record resets, rows, steps, commits, outputs.
    void execute();

    // For the steps ------------------------------------------------------------------------------------------------
    const Numerics& numerics() const { return executable_.numerics; }
    const Parallel& parallel() const { return parallel_; }
    const std::vector<ActiveRow>& rows() const { return rows_; }
    std::span<const std::int64_t> positions() const { return positions_; }
    std::span<const std::int32_t> tokens() const { return tokens_; }
    std::span<const std::size_t> logits_rows() const { return logits_rows_; } // numbers of active rows, ascending
    std::size_t count(const ValueRef& v) const { return v.logits_rows ? logits_rows_.size() : rows_.size(); }

    RowsIn in(const ValueRef& v) const;
    RowsOut out(const ValueRef& v);
    std::span<const std::int32_t> integers_in(const ValueRef& v) const;
    std::span<std::int32_t> integers_out(const ValueRef& v);

    Record& record(const ActiveRow& row) { return records_[static_cast<std::size_t>(batch_.slots[row.slot].slot)]; }
    // The stored row of `position` in the pages of the row's slot, which `needs` has checked.
    std::byte* state_row(const StateRef& state, std::size_t slot, std::int64_t position) const;
    // First and one-past-last active row of the same slot as row `i`.
    std::pair<std::size_t, std::size_t> slot_rows(std::size_t i) const;

    // Words of the late mask of the j-th row with logits, or null when its slot is not masked. Waits.
    const std::uint32_t* mask(std::size_t j, std::size_t vocabulary);

    // The row failed: its record is finished, the slot emits nothing more.
    void fail(std::size_t batch_row, const std::string& op, const std::string& message);
    // Draft rows compute but leave the target's state alone; the draft window is theirs.
    bool writes(const ActiveRow& row, const StateRef& state) const {
        return (row.flags & DSV4_ROW_DRAFT) == 0 || state.kind == DSV4_STATE_DRAFT_WINDOW;
    }
    bool failed(const ActiveRow& row) const { return failed_slots_.count(row.slot) > 0; }
    void emit(const ActiveRow& row, Outcome::Emitted emitted);

  private:
    void start_records();
    void resolve_rows();
    bool check_needs(const ActiveRow& row, std::vector<std::int64_t>& checked);
    void load_inputs();
    void store_outputs();
    void commit();

    Executable& executable_;
    const Batch& batch_;
    const StateStore& state_;
    std::vector<Record>& records_;
    const Parallel& parallel_;
    Masks masks_;
    std::uint32_t work_; // number within its submit
    Outcome& outcome_;
    std::vector<ActiveRow> rows_;
    std::vector<std::int64_t> positions_;
    std::vector<std::int32_t> tokens_;
    std::vector<std::size_t> logits_rows_;
    std::vector<std::size_t> batch_logits_; // for each row with logits: its number among all of the batch
    std::set<std::size_t> failed_slots_;
};

} // namespace dsv4::cpu
