// Drives a backend with the cases of the check.
#include "core/conformance/execute.hpp"

#include "core/runtime/batch.hpp"
#include "core/state/pages.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
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

// The batch of one step, with everything it points to.
class PreparedStep {
  public:
    PreparedStep(const program::Program& program, const Step& step,
                 const std::vector<std::vector<dsv4_page_table>>& tables)
        : program_(program), step_(step) {
        add_rows(tables);
        for (const auto& [name, bytes] : step.inputs) batch_.input(name, bytes.data(), bytes.size());
        std::size_t m = 0;
        for (const Row& r : step.rows) m += (r.flags & DSV4_ROW_LOGITS) != 0;
        for (auto id : program.outputs) {
            const program::Value& v = program.values[id];
            const std::size_t bytes = output_bytes(v, step.rows.size(), m);
            Bytes& b = guarded_[v.name];
            b.assign(bytes + 2 * guard_bytes, guard);
            std::fill(b.begin() + guard_bytes, b.end() - guard_bytes, poison);
            batch_.output(v.name, b.data() + guard_bytes, bytes);
        }
    }
    PreparedStep(const PreparedStep&) = delete;
    PreparedStep& operator=(const PreparedStep&) = delete;

    const dsv4_batch& view() { return batch_.view(); }

    // The outputs, after the ticket completed. Throws Failure where bytes were missed or hit that must not be.
    std::map<std::string, Bytes> outputs() const {
        std::map<std::string, Bytes> values;
        const bool idle = std::any_of(step_.rows.begin(), step_.rows.end(), [](const Row& r) { return r.idle; });
        for (const auto& [name, b] : guarded_) {
            auto is_guard = [](unsigned char c) { return c == guard; };
            if (!std::all_of(b.begin(), b.begin() + guard_bytes, is_guard) ||
                !std::all_of(b.end() - guard_bytes, b.end(), is_guard))
                throw Failure(Code::internal, "bytes outside output '" + name + "' were written");
            Bytes inner(b.begin() + guard_bytes, b.end() - guard_bytes);
            const auto element = program_.values[program_.find_value(name)].element;
            // -1 is a legal pick and token, so only floating outputs show poison that was left.
            if (step_.compared && !idle && (element == DSV4_F32 || element == DSV4_BF16) &&
                marks_unwritten(inner, program::element_bytes(element)))
                throw Failure(Code::internal, "part of output '" + name + "' was not written");
            values[name] = std::move(inner);
        }
        return values;
    }

  private:
    void add_rows(const std::vector<std::vector<dsv4_page_table>>& tables) {
        int slot = -1;
        for (const Row& r : step_.rows) {
            if (r.slot != slot) {
                slot = r.slot;
                dsv4_batch_slot& s = batch_.slot(slot, tables[std::size_t(slot)]);
                if (auto it = step_.resets.find(slot); it != step_.resets.end()) reset(s, it->second);
            }
            batch_.row(r.position, r.input, r.token, r.flags);
        }
    }
    void reset(dsv4_batch_slot& slot, const Reset& with) {
        slot.flags |= DSV4_SLOT_RESET;
        slot.committed = with.committed;
        slot.prompt_ids = with.prompt_ids.data();
        slot.prompt_count = with.prompt_ids.size();
        slot.generated_ids = with.generated_ids.data();
        slot.generated_count = with.generated_ids.size();
        if (!with.sampling.struct_size) return;
        samplings_.push_back(std::make_unique<dsv4_sampling>(with.sampling));
        dsv4_sampling& sampling = *samplings_.back();
        sampling.bias = with.bias.data();
        sampling.bias_count = std::uint32_t(with.bias.size());
        sampling.stop_ids = with.stop_ids.data();
        sampling.stop_count = std::uint32_t(with.stop_ids.size());
        slot.sampling = &sampling;
    }

    const program::Program& program_;
    const Step& step_;
    runtime::Batch batch_;
    std::vector<std::unique_ptr<dsv4_sampling>> samplings_;
    std::map<std::string, Bytes> guarded_;
};

} // namespace

Bench::Bench(runtime::BackendHandle backend, const std::vector<lower::TableEntry>& entries)
    : session_(backend, session_config()) {
    session_.announce(entries);
}

void deliver_random(std::initializer_list<Bench*> benches, const std::vector<lower::TableEntry>& entries,
                    std::int64_t experts, std::uint64_t seed) {
    auto view = [](const Bytes& b) { return std::string_view(reinterpret_cast<const char*>(b.data()), b.size()); };
    for (std::uint32_t i = 0; i < entries.size(); ++i)
        for (std::uint32_t part = 0; part < entries[i].parts; ++part) {
            const WeightBytes w = random_weight(entries[i], part, seed, experts);
            for (Bench* bench : benches) bench->session().deliver(i, part, view(w.data), view(w.scale));
        }
    for (Bench* bench : benches) bench->session().weights_done();
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
    for (std::size_t step = 0; step < check.steps.size();) {
        std::size_t end = step + 1;
        while (end < check.steps.size() && check.steps[end].joined) ++end;
        auto outputs = run_ticket(check, step, end, executables, tables);
        std::move(outputs.begin(), outputs.end(), std::back_inserter(out.steps));
        step = end;
    }
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

std::vector<StepOutput> Bench::run_ticket(const Case& check, std::size_t begin, std::size_t end,
                                          const std::vector<dsv4_executable*>& executables,
                                          const std::vector<std::vector<dsv4_page_table>>& tables) {
    std::vector<std::unique_ptr<PreparedStep>> prepared;
    std::vector<dsv4_work> works;
    for (std::size_t s = begin; s < end; ++s) {
        const Step& step = check.steps[s];
        prepared.push_back(std::make_unique<PreparedStep>(check.programs[step.program], step, tables));
        works.push_back({executables[step.program], &prepared.back()->view()});
    }
    const auto* table = session_.backend().table;
    dsv4_ticket ticket = 0;
    sdk::check(table->submit(session_.raw(), works.data(), std::uint32_t(works.size()), &ticket));
    for (std::size_t s = begin; s < end; ++s)
        if (const auto& masks = check.steps[s].masks; !masks.empty())
            sdk::check(table->supply(session_.raw(), ticket, std::uint32_t(s - begin), masks.data(), masks.size()));
    const auto result = session_.wait(ticket);
    if (!result.errors.empty())
        throw Failure(Code::internal, "row " + std::to_string(result.errors[0].row) + " failed in " +
                                          result.errors[0].op + ": " + result.errors[0].message);
    std::vector<StepOutput> outputs(prepared.size());
    for (std::size_t i = 0; i < prepared.size(); ++i) outputs[i].values = prepared[i]->outputs();
    for (const auto& token : result.tokens) {
        if (token.result.work >= outputs.size())
            throw Failure(Code::internal, "a result names work " + std::to_string(token.result.work) +
                                              " of a ticket of " + std::to_string(outputs.size()));
        outputs[token.result.work].tokens.push_back(token);
    }
    return outputs;
}

} // namespace dsv4::conformance
