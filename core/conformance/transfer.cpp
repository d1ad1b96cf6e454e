// The transfer check of a backend's paged state.
#include "core/conformance/transfer.hpp"

#include "core/runtime/batch.hpp"
#include "core/state/pages.hpp"

#include <cstring>

namespace dsv4::conformance {
namespace {

struct Pages {
    std::vector<std::vector<std::int32_t>> ids; // by kind
    std::vector<dsv4_page_table> tables;
    std::vector<dsv4_page_list> lists;

    Pages(const std::vector<state::KindRule>& rules, std::int64_t positions, std::int32_t copy) {
        for (const auto& rule : rules) {
            const auto n = std::int32_t((positions + rule.positions_per_page - 1) / rule.positions_per_page);
            ids.emplace_back();
            for (std::int32_t i = 0; i < n; ++i) ids.back().push_back(copy ? 2 * n - 1 - i : i);
        }
        for (std::size_t k = 0; k < rules.size(); ++k) {
            tables.push_back({rules[k].kind, std::uint32_t(ids[k].size()), 0, ids[k].data()});
            lists.push_back({rules[k].kind, std::uint32_t(ids[k].size()), ids[k].data()});
        }
    }
};

} // namespace

TransferResult run_transfer(runtime::BackendSession& session, const program::Program& program,
                            const std::vector<std::int32_t>& tokens, std::int64_t half) {
    const auto total = std::int64_t(tokens.size());
    const auto rules = state::kind_rules(session.backend().state_layouts(program), 1 << 20);
    const Pages first(rules, total, 0), second(rules, total, 1);
    std::vector<dsv4_state_pool> pools;
    for (std::size_t k = 0; k < rules.size(); ++k)
        pools.push_back({rules[k].kind, std::uint32_t(2 * first.ids[k].size())});
    session.allocate(program, pools, 2);
    auto* executable = session.compile(program, std::uint32_t(total), 2);
    const auto vocab = std::size_t(program.values[program.find_value("logits")].dims[1]);

    auto run = [&](int slot, const Pages& pages, std::int64_t begin, std::int64_t end, bool reset) {
        runtime::Batch batch;
        auto& s = batch.slot(slot, pages.tables);
        if (reset) {
            s.flags = DSV4_SLOT_RESET;
            s.committed = begin;
        }
        for (std::int64_t p = begin; p < end; ++p)
            batch.row(p, DSV4_INPUT_GIVEN, tokens[std::size_t(p)], DSV4_ROW_LOGITS);
        Bytes logits(std::size_t(end - begin) * vocab * 4, 0xFF);
        batch.output("logits", logits.data(), logits.size());
        const auto result = session.run(executable, batch.view());
        if (!result.errors.empty()) throw Failure(Code::internal, "a row failed: " + result.errors[0].message);
        return logits;
    };
    const auto* table = session.backend().table;
    auto finish = [&](dsv4_ticket ticket) { session.wait(ticket); };

    TransferResult r;
    run(0, first, 0, half, true);
    dsv4_transfer t{};
    t.struct_size = sizeof t;
    t.page_list_count = std::uint32_t(first.lists.size());
    t.pages = first.lists.data();
    t.end_position = half;
    std::memset(t.checkpoint_hash, 7, sizeof t.checkpoint_hash);
    t.memory_kind = DSV4_MEMORY_HOST;
    std::uint64_t needed = 0;
    dsv4_ticket ticket = 0;
    if (dsv4_error* measured = table->state_export(session.raw(), &t, &needed, &ticket))
        measured->release(measured);
    else
        finish(ticket);
    if (needed == 0) throw Failure(Code::internal, "state_export with no memory did not say how much it needs");
    Bytes blob(needed);
    t.memory = blob.data();
    t.memory_bytes = blob.size();
    sdk::check(table->state_export(session.raw(), &t, &needed, &ticket));
    finish(ticket);
    r.straight = run(0, first, half, total, false);

    auto import_fails = [&](Bytes& memory, const dsv4_transfer& as) {
        dsv4_transfer attempt = as;
        attempt.memory = memory.data();
        attempt.memory_bytes = memory.size();
        dsv4_ticket made = 0;
        if (dsv4_error* error = table->state_import(session.raw(), &attempt, &made)) {
            error->release(error);
            return true;
        }
        return !guard([&] { finish(made); }).ok();
    };
    t.pages = second.lists.data();
    dsv4_transfer other = t;
    other.checkpoint_hash[0] ^= 1;
    r.refuses_other_checkpoint = import_fails(blob, other);
    Bytes damaged = blob;
    damaged[0] ^= 0x20;
    r.refuses_damage = import_fails(damaged, t);
    Bytes cut(blob.begin(), blob.begin() + std::ptrdiff_t(blob.size() / 2));
    r.refuses_damage = r.refuses_damage && import_fails(cut, t);
    sdk::check(table->state_import(session.raw(), &t, &ticket));
    finish(ticket);
    r.imported = run(1, second, half, total, true);
    table->executable_release(session.raw(), executable);
    return r;
}

} // namespace dsv4::conformance
