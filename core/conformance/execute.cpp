// Drives a backend with the cases of the check.
#include "core/conformance/execute.hpp"

#include "core/runtime/batch.hpp"
#include "core/state/pages.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

namespace dsv4::conformance {
namespace {

constexpr std::size_t guard_bytes = 64;
constexpr unsigned char poison = 0xFF; // NaN in every floating type, -1 in integers
constexpr unsigned char guard = 0xA5;

dsv4_session_config session_config() {
    dsv4_session_config c{};
    c.struct_size = sizeof c;
    c.group.world = 1;
    c.deterministic = 1;
    return c;
}

std::size_t output_bytes(const program::Value& v, std::size_t n, std::size_t m) {
    std::size_t bytes = program::element_bytes(v.element);
    for (auto d : v.dims) bytes *= d == program::logit_rows ? m : d > 0 ? std::size_t(d) : n;
    return bytes;
}

bool marks_unwritten(const Bytes& b, std::size_t element_bytes) {
    for (std::size_t i = 0; i + element_bytes <= b.size(); i += element_bytes)
        if (std::all_of(b.begin() + std::ptrdiff_t(i), b.begin() + std::ptrdiff_t(i + element_bytes),
                        [](unsigned char c) { return c == poison; }))
            return true;
    return false;
}

} // namespace

Bench::Bench(runtime::BackendHandle backend, const lower::WeightTable& weights,
             const std::vector<lower::TableEntry>& more, std::int64_t experts, std::uint64_t seed)
    : session_(backend, session_config()) {
    std::vector<lower::TableEntry> entries = weights.entries();
    entries.insert(entries.end(), more.begin(), more.end());
    session_.announce(entries);
    for (std::uint32_t i = 0; i < entries.size(); ++i)
        for (std::uint32_t part = 0; part < entries[i].parts; ++part) {
            const WeightBytes w = random_weight(entries[i], part, seed, experts);
            auto view = [](const Bytes& b) {
                return std::string_view(reinterpret_cast<const char*>(b.data()), b.size());
            };
            session_.deliver(i, part, view(w.data), view(w.scale));
        }
    session_.weights_done();
}

CaseOutput Bench::run(const Case& check) {
    // State kinds of all Programs together: one allocation serves them.
    program::Program all = check.programs.front();
    for (const auto& p : check.programs)
        for (const auto& s : p.states) all.state(s.kind, s.layer, s.row_dims, s.element);
    std::vector<dsv4_state_pool> pools;
    std::vector<std::vector<std::vector<std::int32_t>>> ids(std::size_t(check.slots)); // [slot][kind][page]
    std::vector<state::KindRule> rules = state::kind_rules(session_.backend().state_layouts(all), 1 << 20);
    Random random(seed_of(check.what, 99));
    for (const auto& rule : rules) {
        const auto per_slot = std::uint32_t((check.positions + rule.positions_per_page - 1) / rule.positions_per_page);
        std::vector<std::int32_t> order(std::size_t(per_slot) * std::size_t(check.slots));
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = std::int32_t(i);
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(std::uint32_t(i))]);
        pools.push_back({rule.kind, std::uint32_t(order.size())});
        for (std::size_t s = 0; s < ids.size(); ++s)
            ids[s].emplace_back(order.begin() + std::ptrdiff_t(s * per_slot),
                                order.begin() + std::ptrdiff_t((s + 1) * per_slot));
    }
    std::vector<std::vector<dsv4_page_table>> tables(ids.size());
    for (std::size_t s = 0; s < ids.size(); ++s)
        for (std::size_t k = 0; k < rules.size(); ++k)
            tables[s].push_back({rules[k].kind, std::uint32_t(ids[s][k].size()), 0, ids[s][k].data()});
    session_.allocate(all, pools, std::uint32_t(check.slots));

    std::uint32_t most_rows = 1;
    for (const Step& s : check.steps) most_rows = std::max(most_rows, std::uint32_t(s.rows.size()));
    std::vector<dsv4_executable*> executables;
    for (const auto& p : check.programs)
        executables.push_back(session_.compile(p, most_rows, std::uint32_t(check.slots)));

    const auto* table = session_.backend().table;
    if (DSV4_HAS(table, kernels)) { // drop what ran before
        const dsv4_kernel_use* uses = nullptr;
        std::uint32_t count = 0;
        sdk::check(table->kernels(session_.raw(), &uses, &count));
    }
    CaseOutput out;
    const auto begin = std::chrono::steady_clock::now();
    for (const Step& step : check.steps) out.steps.push_back(run_step(check, step, executables[step.program], tables));
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (DSV4_HAS(table, kernels)) {
        const dsv4_kernel_use* uses = nullptr;
        std::uint32_t count = 0;
        sdk::check(table->kernels(session_.raw(), &uses, &count));
        std::vector<std::string> names;
        for (std::uint32_t i = 0; i < count; ++i) {
            std::string name(sdk::view(uses[i].kernel));
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
        }
        for (const auto& name : names) out.kernels += (out.kernels.empty() ? "" : ", ") + name;
    }
    for (auto* e : executables) table->executable_release(session_.raw(), e);
    return out;
}

StepOutput Bench::run_step(const Case& check, const Step& step, dsv4_executable* executable,
                           std::vector<std::vector<dsv4_page_table>>& tables) {
    const program::Program& program = check.programs[step.program];
    runtime::Batch batch;
    int slot = -1;
    std::size_t m = 0;
    for (const Row& r : step.rows) {
        if (r.slot != slot) {
            slot = r.slot;
            dsv4_batch_slot& s = batch.slot(slot, tables[std::size_t(slot)]);
            if (auto it = step.resets.find(slot); it != step.resets.end()) {
                const Reset& reset = it->second;
                s.flags |= DSV4_SLOT_RESET;
                s.committed = reset.committed;
                s.prompt_ids = reset.prompt_ids.data();
                s.prompt_count = reset.prompt_ids.size();
                s.generated_ids = reset.generated_ids.data();
                s.generated_count = reset.generated_ids.size();
            }
        }
        batch.row(r.position, r.input, r.token, r.flags);
        m += (r.flags & DSV4_ROW_LOGITS) != 0;
    }
    // Sampling structures live until submit.
    std::vector<std::unique_ptr<dsv4_sampling>> samplings;
    dsv4_batch& view = const_cast<dsv4_batch&>(batch.view());
    auto* slots = const_cast<dsv4_batch_slot*>(view.slots);
    for (std::uint32_t i = 0; i < view.slot_count; ++i)
        if (auto it = step.resets.find(slots[i].slot); it != step.resets.end() && it->second.sampling.struct_size) {
            samplings.push_back(std::make_unique<dsv4_sampling>(it->second.sampling));
            samplings.back()->bias = it->second.bias.data();
            samplings.back()->bias_count = std::uint32_t(it->second.bias.size());
            samplings.back()->stop_ids = it->second.stop_ids.data();
            samplings.back()->stop_count = std::uint32_t(it->second.stop_ids.size());
            slots[i].sampling = samplings.back().get();
        }
    for (const auto& [name, bytes] : step.inputs) batch.input(name, bytes.data(), bytes.size());
    StepOutput out;
    std::map<std::string, Bytes> guarded;
    for (auto id : program.outputs) {
        const program::Value& v = program.values[id];
        const std::size_t bytes = output_bytes(v, step.rows.size(), m);
        Bytes& b = guarded[v.name];
        b.assign(bytes + 2 * guard_bytes, guard);
        std::fill(b.begin() + guard_bytes, b.end() - guard_bytes, poison);
        batch.output(v.name, b.data() + guard_bytes, bytes);
    }
    const auto* table = session_.backend().table;
    const dsv4_work work{executable, &batch.view()};
    dsv4_ticket ticket = 0;
    sdk::check(table->submit(session_.raw(), &work, 1, &ticket));
    if (!step.masks.empty()) sdk::check(table->supply(session_.raw(), ticket, 0, step.masks.data(), step.masks.size()));
    const auto result = session_.wait(ticket);
    if (!result.errors.empty())
        throw Failure(Code::internal, "row " + std::to_string(result.errors[0].row) + " failed in " +
                                          result.errors[0].op + ": " + result.errors[0].message);
    for (auto& [name, b] : guarded) {
        if (!std::all_of(b.begin(), b.begin() + guard_bytes, [](unsigned char c) { return c == guard; }) ||
            !std::all_of(b.end() - guard_bytes, b.end(), [](unsigned char c) { return c == guard; }))
            throw Failure(Code::internal, "bytes outside output '" + name + "' were written");
        Bytes inner(b.begin() + guard_bytes, b.end() - guard_bytes);
        const auto element = program.values[program.find_value(name)].element;
        // -1 is a legal pick and token, so only floating outputs show poison that was left.
        if (step.compared && (element == DSV4_F32 || element == DSV4_BF16) &&
            marks_unwritten(inner, program::element_bytes(element)))
            throw Failure(Code::internal, "part of output '" + name + "' was not written");
        out.values[name] = std::move(inner);
    }
    out.tokens = result.tokens;
    return out;
}

} // namespace dsv4::conformance
