// A batch from its rows to its results.
#include "run.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "../formats/bf16.hpp"

namespace dsv4::cpu {
namespace {

std::string kind_name(std::int32_t kind) {
    return std::string(program::state_name(static_cast<dsv4_state_kind>(kind)));
}

// Element-wise between the host's tensors and float32 buffers.
void read_floats(const std::byte* from, dsv4_element element, std::span<float> to) {
    load_row(from, element == DSV4_BF16, to);
}

} // namespace

Run::Run(Executable& executable, const Batch& batch, const StateStore& state, std::vector<Record>& records,
         const Parallel& parallel, Masks masks, std::uint32_t work, Outcome& outcome)
    : executable_(executable),
      batch_(batch),
      state_(state),
      records_(records),
      parallel_(parallel),
      masks_(std::move(masks)),
      work_(work),
      outcome_(outcome) {}

void Run::execute() {
    for (const dsv4_page_copy& c : batch_.copies) state_.copy_page(c.kind, c.from, c.to);
    start_records();
    resolve_rows();
    load_inputs();
    for (Step& step : executable_.steps) {
        const auto begin = std::chrono::steady_clock::now();
        step.run(*this);
        step.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        ++step.calls;
    }
    commit();
    store_outputs();
}

void Run::start_records() {
    const KindLayout* counts = state_.layout(DSV4_STATE_TOKEN_COUNTS);
    for (const BatchSlot& slot : batch_.slots) {
        Record& r = records_[static_cast<std::size_t>(slot.slot)];
        if (slot.reset) {
            r = Record{};
            r.committed = slot.committed;
            if (counts) {
                r.counts.assign(counts->width, 0);
                for (const std::int32_t id : slot.prompt) r.counts[static_cast<std::size_t>(id)] |= in_prompt;
                for (const std::int32_t id : slot.generated) ++r.counts[static_cast<std::size_t>(id)];
            }
        }
        if (slot.sampling) r.sampling = *slot.sampling;
    }
}

void Run::resolve_rows() {
    std::vector<std::int64_t> checked(executable_.needs.size());
    std::size_t last_slot = batch_.slots.size();
    std::size_t batch_logits = 0;
    std::vector<std::size_t> logits_number(batch_.rows.size());
    for (std::size_t i = 0; i < batch_.rows.size(); ++i) {
        const dsv4_row& in = batch_.rows[i];
        logits_number[i] = batch_logits;
        batch_logits += (in.flags & DSV4_ROW_LOGITS) != 0;
        ActiveRow row{i, static_cast<std::size_t>(in.slot), in.position, in.token, in.flags};
        if (row.slot != last_slot) std::fill(checked.begin(), checked.end(), 0);
        last_slot = row.slot;
        const Record& r = record(row);
        if ((in.flags & DSV4_ROW_PAD) != 0 || r.finished) continue;
        if ((in.flags & DSV4_ROW_RELATIVE) != 0) row.position += r.committed;
        if (row.position < 0) {
            fail(i, "row", "its position " + std::to_string(row.position) + " is negative");
            continue;
        }
        if (in.input == DSV4_INPUT_LAST) {
            row.token = r.last;
            if (row.token < 0) {
                fail(i, "row", "its slot has no last token yet");
                continue;
            }
        } else if (in.input == DSV4_INPUT_DRAFT) {
            const auto k = static_cast<std::size_t>(in.token);
            if (k >= r.drafts.size() || r.drafts[k].token < 0) {
                fail(i, "row", "its slot has no draft number " + std::to_string(k));
                continue;
            }
            row.token = r.drafts[k].token;
        }
        if (executable_.token_limit > 0 && (row.token < 0 || row.token >= executable_.token_limit)) {
            fail(i, "embed/1",
                 "its token id " + std::to_string(row.token) + " is not in 0.." +
                     std::to_string(executable_.token_limit - 1));
            continue;
        }
        if (check_needs(row, checked)) rows_.push_back(row);
    }
    std::erase_if(rows_, [&](const ActiveRow& row) { return failed(row); });
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        positions_.push_back(rows_[i].position);
        tokens_.push_back(rows_[i].token);
        if ((rows_[i].flags & DSV4_ROW_LOGITS) == 0) continue;
        logits_rows_.push_back(i);
        batch_logits_.push_back(logits_number[rows_[i].batch_row]);
    }
}

// `checked`: for each need the first page number not looked at yet for this slot.
bool Run::check_needs(const ActiveRow& row, std::vector<std::int64_t>& checked) {
    const std::int64_t p = row.position;
    for (std::size_t i = 0; i < executable_.needs.size(); ++i) {
        const Need& need = executable_.needs[i];
        const std::int64_t per_page = need.positions_per_page;
        std::int64_t low = p, high = p; // positions
        const bool closes = (p + 1) % need.ratio == 0;
        switch (need.span) {
        case Need::Span::own: break;
        case Need::Span::reach: low = std::max<std::int64_t>(0, p - need.reach + 1); break;
        case Need::Span::closing:
            if (closes) low = std::max<std::int64_t>(0, p - need.reach + 1);
            break;
        case Need::Span::entry:
            if (!closes) continue;
            low = high = p - need.ratio + 1;
            break;
        case Need::Span::entries:
            low = 0;
            high = (p + 1) / need.ratio * need.ratio - 1;
            break;
        case Need::Span::before: {
            const std::int64_t committed = record(row).committed;
            low = std::max<std::int64_t>(0, committed - need.reach);
            high = committed - 1;
            break;
        }
        }
        if (high < low) continue;
        const PageTable* table = batch_.slots[row.slot].table(need.kind);
        for (std::int64_t page = std::max(low / per_page, checked[i]); page <= high / per_page; ++page) {
            if (table && table->page(page) >= 0) continue;
            fail(row.batch_row, need.op,
                 "the page table of its slot has no page " + std::to_string(page) + " of " + kind_name(need.kind) +
                     ", which position " + std::to_string(p) + " needs");
            return false;
        }
        // What lies below was looked at for a row before, except where windows leave gaps; ranges only move up.
        if (need.span != Need::Span::closing) checked[i] = std::max(checked[i], high / per_page + 1);
    }
    return true;
}

RowsIn Run::in(const ValueRef& v) const { return {executable_.float_buffers[v.buffer].data(), count(v), v.width}; }

RowsOut Run::out(const ValueRef& v) {
    auto& buffer = executable_.float_buffers[v.buffer];
    if (buffer.size() < count(v) * v.width) buffer.resize(count(v) * v.width);
    return {buffer.data(), count(v), v.width};
}

std::span<const std::int32_t> Run::integers_in(const ValueRef& v) const {
    return {executable_.integer_buffers[v.buffer].data(), count(v) * v.width};
}

std::span<std::int32_t> Run::integers_out(const ValueRef& v) {
    auto& buffer = executable_.integer_buffers[v.buffer];
    if (buffer.size() < count(v) * v.width) buffer.resize(count(v) * v.width);
    return {buffer.data(), count(v) * v.width};
}

std::byte* Run::state_row(const StateRef& state, std::size_t slot, std::int64_t position) const {
    const PageTable* table = batch_.slots[slot].table(state.kind);
    const std::int32_t page = table ? table->page(position / state.positions_per_page) : -1;
    if (page < 0)
        throw Failure(Code::internal,
                      "the page of position " + std::to_string(position) + " was not checked before it was used");
    return state_.row(state.kind, state.layer_index, page, position);
}

std::pair<std::size_t, std::size_t> Run::slot_rows(std::size_t i) const {
    std::size_t begin = i, end = i + 1;
    while (begin > 0 && rows_[begin - 1].slot == rows_[i].slot) --begin;
    while (end < rows_.size() && rows_[end].slot == rows_[i].slot) ++end;
    return {begin, end};
}

const std::uint32_t* Run::mask(std::size_t j, std::size_t vocabulary) {
    const ActiveRow& row = rows_[logits_rows_[j]];
    if (!record(row).sampling.masked) return nullptr;
    // Masks come for every row with logits of the batch whose slot is masked, rows that act as pad included.
    std::size_t number = 0;
    for (std::size_t i = 0; i < row.batch_row; ++i) {
        const dsv4_row& before = batch_.rows[i];
        const auto slot = static_cast<std::size_t>(batch_.slots[static_cast<std::size_t>(before.slot)].slot);
        number += (before.flags & DSV4_ROW_LOGITS) != 0 && records_[slot].sampling.masked;
    }
    return masks_().data() + number * ((vocabulary + 31) / 32);
}

void Run::fail(std::size_t batch_row, const std::string& op, const std::string& message) {
    const auto slot = static_cast<std::size_t>(batch_.rows[batch_row].slot);
    const std::int32_t record = batch_.slots[slot].slot;
    if (!failed_slots_.insert(slot).second) return;
    records_[static_cast<std::size_t>(record)].finished = true;
    const std::string row = "row " + std::to_string(batch_row) + " of slot " + std::to_string(record);
    outcome_.errors.push_back({record, static_cast<std::int32_t>(batch_row), op, row + ": " + message, work_});
}

void Run::emit(const ActiveRow& row, Outcome::Emitted emitted) {
    emitted.result.slot = batch_.slots[row.slot].slot;
    emitted.result.work = work_;
    emitted.result.row = static_cast<std::uint32_t>(row.batch_row);
    outcome_.results.push_back(std::move(emitted));
}

void Run::load_inputs() {
    for (const BoundTensor& t : batch_.inputs) {
        const EdgeValue& edge = executable_.inputs[t.number];
        const std::size_t element = program::element_bytes(edge.element);
        const std::size_t row_bytes = edge.value.width * element;
        const std::size_t n = count(edge.value);
        for (std::size_t i = 0; i < n; ++i) {
            std::size_t from = edge.value.logits_rows ? batch_logits_[i] : rows_[i].batch_row;
            const std::byte* bytes = t.bytes.data() + from * row_bytes;
            if (edge.integers)
                std::memcpy(&integers_out(edge.value)[i * edge.value.width], bytes, row_bytes);
            else
                read_floats(bytes, edge.element, out(edge.value)[i]);
        }
        if (n == 0) edge.integers ? void(integers_out(edge.value)) : void(out(edge.value));
    }
}

void Run::store_outputs() {
    for (const BoundTensor& t : batch_.outputs) {
        const EdgeValue& edge = executable_.outputs[t.number];
        const std::size_t row_bytes = edge.value.width * program::element_bytes(edge.element);
        std::size_t total = batch_.rows.size();
        if (edge.value.logits_rows)
            total =
                static_cast<std::size_t>(std::count_if(batch_.rows.begin(), batch_.rows.end(), [](const dsv4_row& r) {
                    return (r.flags & DSV4_ROW_LOGITS) != 0;
                }));
        std::memset(t.out, 0, total * row_bytes); // rows that acted as pad
        for (std::size_t i = 0; i < count(edge.value); ++i) {
            const std::size_t to = edge.value.logits_rows ? batch_logits_[i] : rows_[i].batch_row;
            if (edge.integers)
                std::memcpy(t.out + to * row_bytes, &integers_in(edge.value)[i * edge.value.width], row_bytes);
            else
                store_row(t.out + to * row_bytes, edge.element == DSV4_BF16, in(edge.value)[i]);
        }
    }
}

void Run::commit() {
    for (const ActiveRow& row : rows_) {
        if ((row.flags & (DSV4_ROW_VERIFY | DSV4_ROW_DRAFT)) != 0 || failed(row)) continue;
        record(row).committed = row.position + 1;
    }
}

} // namespace dsv4::cpu
