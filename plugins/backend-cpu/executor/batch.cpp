// Copying and checking a batch.
#include "batch.hpp"

#include <cstring>

#include "executable.hpp"
#include "state.hpp"

namespace dsv4::cpu {
namespace {

constexpr std::int64_t max_position = std::int64_t{1} << 40;

[[noreturn]] void refuse(const std::string& why) {
    throw Failure(Code::invalid, "the batch cannot be submitted: " + why);
}

std::vector<std::int32_t> ids(const std::int32_t* data, std::uint64_t count, std::size_t limit, const char* what) {
    if (count > 0 && !data) refuse(std::string(what) + " ids are missing");
    std::vector<std::int32_t> out(data, data + count);
    for (const std::int32_t id : out)
        if (id < 0 || static_cast<std::size_t>(id) >= limit)
            refuse(std::string(what) + " id " + std::to_string(id) + " is outside the vocabulary");
    return out;
}

BatchSlot copy_slot(const dsv4_batch_slot& from, const StateStore& state, std::uint32_t slots) {
    BatchSlot to;
    const std::string label = "slot " + std::to_string(from.slot);
    if (from.slot < 0 || static_cast<std::uint32_t>(from.slot) >= slots)
        refuse(label + " does not exist; there are " + std::to_string(slots));
    to.slot = from.slot;
    if ((from.flags & ~DSV4_SLOT_RESET) != 0) refuse(label + " has unknown flags");
    to.reset = (from.flags & DSV4_SLOT_RESET) != 0;
    to.committed = from.committed;
    if (to.reset && (to.committed < 0 || to.committed > max_position))
        refuse(label + " starts at an impossible length");
    const KindLayout* counts = state.layout(DSV4_STATE_TOKEN_COUNTS);
    if (from.sampling) {
        to.sampling = read_sampling(*from.sampling);
        if (counts)
            for (const auto& [token, value] : to.sampling->parameters.bias)
                if (static_cast<std::size_t>(token) >= counts->width)
                    refuse("bias token " + std::to_string(token) + " is outside the vocabulary");
    }
    if (to.reset && counts) {
        to.prompt = ids(from.prompt_ids, from.prompt_count, counts->width, "prompt");
        to.generated = ids(from.generated_ids, from.generated_count, counts->width, "generated");
    }
    for (std::uint32_t i = 0; i < from.table_count; ++i) {
        const dsv4_page_table& t = from.tables[i];
        const std::uint32_t pages = state.pages(t.kind);
        if (t.first_page < 0) refuse(label + " has a page table that begins before page 0");
        PageTable copy{t.kind, t.first_page, {t.ids, t.ids + t.count}};
        for (const std::int32_t id : copy.ids)
            if (id < -1 || (id >= 0 && static_cast<std::uint32_t>(id) >= pages))
                refuse(label + " names page " + std::to_string(id) + " of kind " + std::to_string(t.kind) +
                       ", whose pool has " + std::to_string(pages));
        if (to.table(t.kind)) refuse(label + " has two page tables of one kind");
        to.tables.push_back(std::move(copy));
    }
    return to;
}

void check_rows(const Batch& batch) {
    constexpr std::uint32_t known =
        DSV4_ROW_LOGITS | DSV4_ROW_VERIFY | DSV4_ROW_DRAFT | DSV4_ROW_PAD | DSV4_ROW_RELATIVE;
    std::vector<bool> seen(batch.slots.size());
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        const dsv4_row& r = batch.rows[i];
        const std::string label = "row " + std::to_string(i);
        if (r.slot < 0 || static_cast<std::size_t>(r.slot) >= batch.slots.size())
            refuse(label + " names slot entry " + std::to_string(r.slot) + " of " + std::to_string(batch.slots.size()));
        if ((r.flags & ~known) != 0) refuse(label + " has unknown flags");
        if (r.input < DSV4_INPUT_GIVEN || r.input > DSV4_INPUT_NOISE) refuse(label + " has an unknown kind of input");
        if (r.input == DSV4_INPUT_DRAFT && r.token < 0) refuse(label + " names a negative draft");
        if (r.position > max_position || r.position < -max_position) refuse(label + " has an impossible position");
        const auto slot = static_cast<std::size_t>(r.slot);
        const bool follows = i > 0 && batch.rows[i - 1].slot == r.slot;
        if (!follows && seen[slot]) refuse(label + " is apart from the other rows of its slot");
        seen[slot] = true;
        if (follows && (r.flags & DSV4_ROW_PAD) == 0 && (batch.rows[i - 1].flags & DSV4_ROW_PAD) == 0 &&
            (r.flags & DSV4_ROW_RELATIVE) == (batch.rows[i - 1].flags & DSV4_ROW_RELATIVE) &&
            r.position <= batch.rows[i - 1].position)
            refuse(label + " does not come after the row before it");
    }
}

const dsv4_tensor* find(const dsv4_tensor* tensors, std::uint32_t count, const std::string& name) {
    for (std::uint32_t i = 0; i < count; ++i)
        if (std::string_view(tensors[i].name.data, tensors[i].name.size) == name) return &tensors[i];
    return nullptr;
}

} // namespace

Batch copy_batch(const dsv4_batch& from, const Executable& executable, const StateStore& state, std::uint32_t slots) {
    Batch to;
    if (from.row_bytes < sizeof(dsv4_row) || from.slot_bytes < sizeof(dsv4_batch_slot))
        refuse("its rows or slots are smaller than this version's");
    if (from.row_count > executable.max_rows)
        refuse("it has " + std::to_string(from.row_count) + " rows and the executable was compiled for " +
               std::to_string(executable.max_rows));
    if (from.slot_count > executable.max_slots)
        refuse("it has " + std::to_string(from.slot_count) + " slots and the executable was compiled for " +
               std::to_string(executable.max_slots));
    to.rows.resize(from.row_count);
    for (std::uint32_t i = 0; i < from.row_count; ++i)
        std::memcpy(&to.rows[i], reinterpret_cast<const std::byte*>(from.rows) + std::size_t{i} * from.row_bytes,
                    sizeof(dsv4_row));
    for (dsv4_row& r : to.rows)
        if ((r.flags & DSV4_ROW_VERIFY) != 0) r.flags |= DSV4_ROW_LOGITS;
    std::vector<bool> used(slots);
    for (std::uint32_t i = 0; i < from.slot_count; ++i) {
        dsv4_batch_slot slot;
        std::memcpy(&slot, reinterpret_cast<const std::byte*>(from.slots) + std::size_t{i} * from.slot_bytes,
                    sizeof slot);
        to.slots.push_back(copy_slot(slot, state, slots));
        const auto record = static_cast<std::size_t>(slot.slot);
        if (used[record]) refuse("slot " + std::to_string(slot.slot) + " appears twice");
        used[record] = true;
    }
    check_rows(to);

    for (std::uint32_t i = 0; i < from.copy_count; ++i) {
        const dsv4_page_copy& c = from.copies[i];
        const auto pages = static_cast<std::int64_t>(state.pages(c.kind));
        if (c.from < 0 || c.to < 0 || c.from >= pages || c.to >= pages)
            refuse("it copies page " + std::to_string(c.from) + " to " + std::to_string(c.to) + " of kind " +
                   std::to_string(c.kind) + ", whose pool has " + std::to_string(pages));
        to.copies.push_back(c);
    }

    std::uint64_t logits = 0;
    for (const dsv4_row& r : to.rows) logits += (r.flags & DSV4_ROW_LOGITS) != 0;
    const auto bytes_of = [&](const EdgeValue& edge) {
        return (edge.value.logits_rows ? logits : from.row_count) * edge.value.width *
               program::element_bytes(edge.element);
    };
    const auto check_size = [&](const EdgeValue& edge, const dsv4_tensor& t, const char* what) {
        if (t.bytes != bytes_of(edge) || (t.bytes > 0 && !t.data))
            refuse(std::string(what) + " '" + edge.name + "' has " + std::to_string(t.bytes) + " bytes, not " +
                   std::to_string(bytes_of(edge)));
    };
    for (std::size_t i = 0; i < executable.inputs.size(); ++i) {
        const EdgeValue& edge = executable.inputs[i];
        const dsv4_tensor* t = find(from.inputs, from.input_count, edge.name);
        if (!t) refuse("input '" + edge.name + "' is missing");
        check_size(edge, *t, "input");
        const auto* data = static_cast<const std::byte*>(t->data);
        to.inputs.push_back({i, std::vector<std::byte>(data, data + t->bytes), nullptr});
    }
    for (std::uint32_t i = 0; i < from.output_count; ++i) {
        const dsv4_tensor& t = from.outputs[i];
        const std::string_view name(t.name.data, t.name.size);
        std::size_t number = 0;
        while (number < executable.outputs.size() && executable.outputs[number].name != name) ++number;
        if (number == executable.outputs.size()) refuse("the Program has no output '" + std::string(name) + "'");
        check_size(executable.outputs[number], t, "output");
        to.outputs.push_back({number, {}, static_cast<std::byte*>(t.data)});
    }
    return to;
}

} // namespace dsv4::cpu
