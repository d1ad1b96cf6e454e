// The null backend: checks everything that it is given, computes nothing and emits the next token id for every wanted
// row.
#include <dsv4/sdk/backend.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>

namespace {

namespace program = dsv4::program;
using dsv4::Code;
using dsv4::Failure;
using dsv4::sdk::view;

[[noreturn]] void invalid(std::string message) { throw Failure(Code::invalid, std::move(message)); }
[[noreturn]] void unsupported(std::string message) { throw Failure(Code::unsupported, std::move(message)); }

// ---------------------------------------------------------------- sizes

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
    std::uint64_t r;
    if (__builtin_mul_overflow(a, b, &r)) invalid("a size does not fit 64 bits");
    return r;
}
std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

std::uint64_t packed_bytes(std::uint32_t element, std::uint64_t count) {
    if (element == DSV4_F4_E2M1 || element == DSV4_I4) return ceil_div(count, 2);
    return product(count, program::element_bytes(dsv4_element(element)));
}

std::uint64_t scale_element_bytes(std::uint32_t scale) {
    switch (scale) {
    case DSV4_SCALE_E8M0:
    case DSV4_SCALE_E4M3: return 1;
    case DSV4_SCALE_F32: return 4;
    case DSV4_SCALE_F16: return 2;
    default: return 0;
    }
}

struct Announced {
    std::string name;
    dsv4_format format{};
    std::vector<std::int64_t> dims;
    std::uint64_t data_bytes = 0, scale_bytes = 0; // of one part
    std::vector<bool> arrived;
};

Announced announced(const dsv4_weight& w) {
    Announced a;
    a.name = std::string(view(w.name));
    a.format = w.format;
    const auto& f = w.format;
    if (a.name.empty()) invalid("a weight has no name");
    if (w.dim_count < 1 || w.dim_count > 3) invalid("weight '" + a.name + "' must have 1 to 3 dimensions");
    a.dims.assign(w.dims, w.dims + w.dim_count);
    for (auto d : a.dims)
        if (d <= 0) invalid("weight '" + a.name + "' has an impossible dimension");
    if (f.element < DSV4_F32 || f.element > DSV4_U8)
        unsupported("weight '" + a.name +
                    "' has an element type that this backend does not know: " + program::format_name(f));
    if (f.scale > DSV4_SCALE_F16) unsupported("weight '" + a.name + "' has an unknown scale type");
    const bool parted = w.dim_count == 3 && w.parts == std::uint64_t(a.dims[0]);
    if (w.parts != 1 && !parted) invalid("weight '" + a.name + "' has neither 1 nor dims[0] parts");
    const std::uint64_t cols = std::uint64_t(a.dims.back());
    const std::uint64_t rows = a.dims.size() > 1 ? std::uint64_t(a.dims[a.dims.size() - 2]) : 1;
    const std::uint64_t stack = a.dims.size() == 3 && !parted ? std::uint64_t(a.dims[0]) : 1;
    a.data_bytes = product(stack, packed_bytes(f.element, product(rows, cols)));
    if (f.scale != DSV4_SCALE_NONE) {
        if (!f.block_rows || !f.block_cols) invalid("weight '" + a.name + "' has scales and no block size");
        const auto grid = product(ceil_div(rows, f.block_rows), ceil_div(cols, f.block_cols));
        a.scale_bytes = product(stack, product(grid, scale_element_bytes(f.scale)));
    }
    if (f.global_scale) a.scale_bytes += 4;
    a.arrived.assign(w.parts, false);
    return a;
}

// ---------------------------------------------------------------- state

struct Paging {
    std::uint32_t positions, rows; // a page; 0 for what is kept per slot
};
Paging paging(dsv4_state_kind kind) {
    switch (kind) {
    case DSV4_STATE_WINDOW:
    case DSV4_STATE_HCA_PARTIAL:
    case DSV4_STATE_DRAFT_WINDOW: return {64, 64};
    case DSV4_STATE_CSA:
    case DSV4_STATE_INDEX: return {256, 64};
    case DSV4_STATE_HCA: return {256, 2};
    case DSV4_STATE_CSA_PARTIAL:
    case DSV4_STATE_INDEX_PARTIAL: return {4, 4};
    default: return {0, 0};
    }
}

std::vector<dsv4_state_layout> layouts(const program::Program& p) {
    std::vector<dsv4_state_layout> list;
    for (const auto& s : p.states) {
        auto it = std::find_if(list.begin(), list.end(), [&](const auto& l) { return l.kind == s.kind; });
        if (it == list.end()) {
            const auto page = paging(s.kind);
            // "NULLBE" and a version: pages of this backend hold nothing and fit no other.
            list.push_back({sizeof(dsv4_state_layout), s.kind, page.positions, page.rows, 0, 0x4e554c4c42450001u});
            it = list.end() - 1;
        }
        std::uint64_t elements = std::max(1u, it->rows_per_page);
        for (auto d : s.row_dims) elements = product(elements, d);
        it->page_bytes += packed_bytes(s.element, elements);
    }
    return list;
}

// ---------------------------------------------------------------- Programs

constexpr std::string_view rotation = "rope_dim:i rope_theta:f rope_factor:f rope_original:i rope_beta_fast:f "
                                      "rope_beta_slow:f";
struct KnownOp {
    std::string_view name, attributes; // name:type, a space between; i int, f float, t text
    bool rotates;
};
constexpr KnownOp known_ops[] = {
    {"embed", "", false},
    {"hc_pre", "eps:f hc_eps:f sinkhorn_iterations:i", false},
    {"hc_post", "", false},
    {"hc_head", "eps:f hc_eps:f", false},
    {"norm", "eps:f", false},
    {"linear", "quant:t scale:f", false},
    {"head_norm_rope", "eps:f", true},
    {"index_query", "", true},
    {"kv_store", "eps:f", true},
    {"kv_rows", "eps:f", true},
    {"compress", "ratio:i eps:f index:i", true},
    {"index_select", "ratio:i", false},
    {"attend", "window:i ratio:i block:i", true},
    {"group_linear", "groups:i", false},
    {"route", "hash:i scale:f", false},
    {"experts", "limit:f quant:t", false},
    {"tap", "", false},
    {"head", "", false},
    {"mask", "", false},
    {"sample", "", false},
    {"verify", "", false},
    {"markov_step", "greedy:i", false},
    {"all_reduce", "", false},
    {"all_gather", "", false},
    {"reduce_scatter", "", false},
    {"dispatch", "capacity:i", false},
    {"combine", "", false},
};

// The type letter of `key` in a list of name:type, or 0.
char attribute_type(std::string_view list, std::string_view key) {
    while (!list.empty()) {
        auto item = list.substr(0, list.find(' '));
        if (item.substr(0, item.size() - 2) == key) return item.back();
        list.remove_prefix(std::min(list.size(), item.size() + 1));
    }
    return 0;
}

struct Tensor {
    std::string name;
    std::uint64_t element_bytes = 0;
    std::vector<std::int64_t> dims;

    std::uint64_t bytes(std::uint64_t rows, std::uint64_t logit_rows) const {
        std::uint64_t n = element_bytes;
        for (auto d : dims) n *= d > 0 ? std::uint64_t(d) : d == program::logit_rows ? logit_rows : rows;
        return n;
    }
};

// What is left of a Program: who emits, and what crosses with a batch.
struct Plan {
    std::int32_t vocab = 0; // 0: nothing has logits
    bool samples = false, verifies = false, drafts = false, masks = false;
    std::vector<Tensor> inputs, outputs;
    std::uint32_t max_rows = 0, max_slots = 0;
};

Plan plan_of(const program::Program& p) {
    Plan plan;
    for (const auto& op : p.ops) {
        const auto* known =
            std::find_if(std::begin(known_ops), std::end(known_ops), [&](const auto& k) { return k.name == op.name; });
        if (known == std::end(known_ops) || op.version != 1)
            unsupported("the null backend does not know op " + op.label());
        for (const auto& [key, value] : op.attributes) {
            char type = attribute_type(known->attributes, key);
            if (!type && known->rotates) type = attribute_type(rotation, key);
            if (!type) unsupported("op " + op.label() + " has an unknown attribute '" + key + "'");
            const bool fits = type == 'i'   ? std::holds_alternative<std::int64_t>(value)
                              : type == 'f' ? std::holds_alternative<double>(value)
                                            : std::holds_alternative<std::string>(value);
            if (!fits) unsupported("attribute '" + key + "' of op " + op.label() + " has another type than expected");
        }
        plan.samples |= op.name == "sample";
        plan.verifies |= op.name == "verify";
        plan.drafts |= op.name == "markov_step";
        plan.masks |= op.name == "mask";
        if (op.name == "sample" || op.name == "verify" || op.name == "mask" || op.name == "markov_step") {
            if (op.inputs.empty()) unsupported("op " + op.label() + " has no logits");
            const auto& v = p.values[op.inputs[0]];
            if (v.dims.size() != 2 || v.dims[0] != program::logit_rows || v.dims[1] <= 0 || v.dims[1] > 1 << 30)
                unsupported("logits '" + v.name + "' of op " + op.label() + " are not [M, vocabulary]");
            if (plan.vocab && plan.vocab != v.dims[1])
                unsupported("op " + op.label() + " has another vocabulary than an op before it");
            plan.vocab = std::int32_t(v.dims[1]);
        }
    }
    auto tensor = [&](program::ValueId id) {
        const auto& v = p.values[id];
        Tensor t{v.name, program::element_bytes(v.element), v.dims};
        if (!t.element_bytes) unsupported("value '" + v.name + "' has a type that does not cross the boundary");
        return t;
    };
    for (auto id : p.inputs) plan.inputs.push_back(tensor(id));
    for (auto id : p.outputs) plan.outputs.push_back(tensor(id));
    return plan;
}

struct NullExecutable final : dsv4::sdk::Executable {
    std::shared_ptr<const Plan> plan; // a queued ticket keeps it beyond executable_release
};

// ---------------------------------------------------------------- records and batches

struct Sampling {
    std::vector<std::int32_t> stop_ids;
    std::int64_t min_length = 0, max_length = std::numeric_limits<std::int64_t>::max();
    std::int32_t logprobs = -1;
    bool masked = false;
    void take(const dsv4_sampling& s) {
        stop_ids.assign(s.stop_ids, s.stop_ids + s.stop_count);
        min_length = s.min_length;
        max_length = s.max_length;
        logprobs = s.logprobs;
        masked = s.masked != 0;
    }
    bool stops(std::int32_t token) const {
        return std::find(stop_ids.begin(), stop_ids.end(), token) != stop_ids.end();
    }
};

struct Record {
    std::int64_t committed = 0;
    std::int32_t last = -1;
    bool finished = true; // until its first RESET
    std::vector<std::int32_t> drafts;
    Sampling sampling;
};

// Rows and slots at the strides that the host was built with.
struct View {
    const char* rows_at;
    const char* slots_at;
    std::uint32_t row_bytes, slot_bytes, rows, slots;
    const dsv4_row& row(std::uint32_t i) const {
        return *reinterpret_cast<const dsv4_row*>(rows_at + std::size_t(i) * row_bytes);
    }
    const dsv4_batch_slot& slot(std::uint32_t i) const {
        return *reinterpret_cast<const dsv4_batch_slot*>(slots_at + std::size_t(i) * slot_bytes);
    }
};
View view_of(const dsv4_batch& b) {
    return {reinterpret_cast<const char*>(b.rows),
            reinterpret_cast<const char*>(b.slots),
            b.row_bytes,
            b.slot_bytes,
            b.row_count,
            b.slot_count};
}

// A batch that has to wait for its masks, or for a ticket that does.
struct Saved {
    std::shared_ptr<const Plan> plan;
    std::vector<dsv4_row> rows;
    std::vector<dsv4_batch_slot> slots;
    std::deque<dsv4_sampling> samplings;
    std::deque<std::vector<std::int32_t>> stops;
    std::vector<dsv4_tensor> outputs;
    std::uint64_t mask_rows = 0; // 0: needs no supply
    bool supplied = false;
    std::vector<std::uint32_t> masks;
};

struct Ticket {
    dsv4_ticket id = 0;
    bool done = false, released = false;
    std::vector<Saved> saved;
    std::uint32_t work = 0; // the one that runs
    std::vector<dsv4_result> results;
    std::vector<dsv4_row_error> errors;
    std::vector<dsv4_top_logprob> tops;
    dsv4_ticket_result result{};
};

constexpr std::uint32_t known_row_flags =
    DSV4_ROW_LOGITS | DSV4_ROW_VERIFY | DSV4_ROW_DRAFT | DSV4_ROW_PAD | DSV4_ROW_RELATIVE;

class NullSession final : public dsv4::sdk::Session {
  public:
    void weights_announce(std::span<const dsv4_weight> weights) override {
        if (announced_) invalid("weights were announced before in this session");
        std::vector<Announced> list;
        std::map<std::string, std::uint32_t, std::less<>> names;
        for (const auto& w : weights) {
            list.push_back(announced(w));
            if (!names.emplace(list.back().name, std::uint32_t(list.size() - 1)).second)
                invalid("weight '" + list.back().name + "' was announced twice");
        }
        weights_ = std::move(list);
        names_ = std::move(names);
        announced_ = true;
    }

    void* stage(std::uint64_t bytes) override {
        auto& buffer = staged_[stage_turn_ ^= 1];
        if (bytes > buffer.size()) buffer.resize(bytes);
        return buffer.data();
    }

    void weight(std::uint32_t index, std::uint32_t part, std::string_view data, std::string_view scale) override {
        if (!announced_ || weights_ready_) invalid("a weight part came outside announce .. done");
        if (index >= weights_.size()) invalid("weight number " + std::to_string(index) + " was not announced");
        auto& w = weights_[index];
        if (part >= w.arrived.size()) invalid("weight '" + w.name + "' has no part " + std::to_string(part));
        if (w.arrived[part]) invalid("part " + std::to_string(part) + " of weight '" + w.name + "' came twice");
        check_bytes(w.name, "data", data.size(), w.data_bytes);
        check_bytes(w.name, "scales", scale.size(), w.scale_bytes);
        w.arrived[part] = true;
    }

    void weights_done() override {
        if (!announced_) invalid("no weights were announced");
        for (const auto& w : weights_)
            for (std::size_t part = 0; part < w.arrived.size(); ++part)
                if (!w.arrived[part])
                    invalid("part " + std::to_string(part) + " of weight '" + w.name + "' is missing");
        for (auto& buffer : staged_) std::vector<char>().swap(buffer);
        weights_ready_ = true;
    }

    void state_alloc(const program::Program& p, std::span<const dsv4_state_pool> pools, std::uint32_t slots) override {
        const std::lock_guard lock(mutex_);
        for (const auto& ticket : tickets_)
            if (!ticket->done) invalid("state_alloc while a ticket is in flight");
        std::uint32_t pages[DSV4_STATE_KIND_COUNT] = {};
        for (const auto& pool : pools) {
            if (pool.kind <= 0 || pool.kind >= DSV4_STATE_KIND_COUNT) invalid("a state pool has an unknown kind");
            pages[pool.kind] = pool.pages;
        }
        std::vector<Record> records(slots);
        std::copy(std::begin(pages), std::end(pages), pages_);
        states_ = p.states;
        records_.swap(records);
        masked_.assign(slots, 0);
        seen_.assign(slots, 0);
        state_ready_ = true;
    }

    std::unique_ptr<dsv4::sdk::Executable> compile(const program::Program& p,
                                                   const dsv4_compile_options& options) override {
        if (!state_ready_) invalid("compile before state_alloc");
        if (!p.weights.empty() && !weights_ready_) invalid("compile before weights_done");
        auto plan = std::make_shared<Plan>(plan_of(p));
        for (const auto& w : p.weights) {
            const auto it = names_.find(w.name);
            if (it == names_.end())
                invalid("Program '" + p.name + "' uses weight '" + w.name + "', which was not announced");
            const auto& a = weights_[it->second];
            if (!program::same_format(a.format, w.format))
                invalid("weight '" + w.name + "' was announced as " + program::format_name(a.format) +
                        ", the Program wants " + program::format_name(w.format));
            if (a.dims != w.dims) invalid("weight '" + w.name + "' was announced with another shape");
        }
        for (const auto& s : p.states)
            if (std::none_of(states_.begin(), states_.end(), [&](const auto& have) {
                    return have.kind == s.kind && have.layer == s.layer && have.row_dims == s.row_dims;
                }))
                invalid("state " + std::string(program::state_name(s.kind)) + "." + std::to_string(s.layer) +
                        " was not allocated");
        plan->max_rows = options.max_rows;
        plan->max_slots = options.max_slots;
        auto executable = std::make_unique<NullExecutable>();
        executable->plan = std::move(plan);
        return executable;
    }

    dsv4_ticket submit(std::span<const dsv4::sdk::Work> works) override {
        const std::lock_guard lock(mutex_);
        bool defer = queued_ != 0;
        for (const auto& work : works) check_batch(*plan_at(work), *work.batch);
        // From here on nothing fails but memory, and that before anything changed.
        auto ticket = take_ticket();
        for (const auto& work : works) {
            if (plan_at(work)->masks && masked_before_.empty()) masked_before_ = masked_;
            defer |= note_masked(*plan_at(work), view_of(*work.batch), nullptr) != 0;
        }
        if (!defer) {
            for (const auto& work : works) {
                const auto& plan = *plan_at(work);
                ticket->work = std::uint32_t(&work - works.data());
                run(plan, view_of(*work.batch), nullptr, *ticket);
                write_outputs({work.batch->outputs, work.batch->output_count});
            }
            complete(*ticket);
        } else {
            if (!masked_before_.empty()) masked_.swap(masked_before_); // save goes through the works again
            for (const auto& work : works) save(work, *ticket);
            ++queued_;
        }
        masked_before_.clear();
        tickets_.push_back(std::move(ticket));
        drain_queue();
        return last_ticket_ = tickets_.back()->id;
    }

    void supply(dsv4_ticket id, std::uint32_t work, std::span<const std::uint32_t> words) override {
        const std::lock_guard lock(mutex_);
        auto& ticket = find(id);
        if (ticket.done || work >= ticket.saved.size() || !ticket.saved[work].mask_rows)
            invalid("work " + std::to_string(work) + " of ticket " + std::to_string(id) + " waits for no mask");
        auto& saved = ticket.saved[work];
        if (saved.supplied) invalid("masks of ticket " + std::to_string(id) + " were supplied twice");
        const std::uint64_t want = saved.mask_rows * mask_words(*saved.plan);
        if (words.size() != want)
            invalid("masks have " + std::to_string(words.size()) + " words instead of " + std::to_string(want));
        saved.masks.assign(words.begin(), words.end());
        saved.supplied = true;
        drain_queue();
    }

    bool poll(dsv4_ticket id) override {
        const std::lock_guard lock(mutex_);
        if (id == 0 || id > last_ticket_ || id < first_ticket()) return true; // nothing will ever come
        return find(id).done;
    }

    const dsv4_ticket_result& wait(dsv4_ticket id, std::uint64_t timeout_us) override {
        std::unique_lock lock(mutex_);
        auto& ticket = find(id);
        if (!ticket.done) {
            auto done = [&] { return ticket.done; };
            constexpr std::uint64_t century_us = 3'155'760'000'000'000;
            if (timeout_us >= century_us)
                changed_.wait(lock, done);
            else if (!changed_.wait_for(lock, std::chrono::microseconds(timeout_us), done))
                throw Failure(Code::deadline, "ticket " + std::to_string(id) + " did not complete in time");
        }
        return ticket.result;
    }

    void ticket_release(dsv4_ticket id) override {
        const std::lock_guard lock(mutex_);
        if (id == 0 || id < first_ticket() || id > last_ticket_) return;
        tickets_[id - first_ticket()]->released = true;
        while (!tickets_.empty() && tickets_.front()->released && tickets_.front()->done) {
            spare_.push_back(std::move(tickets_.front()));
            tickets_.pop_front();
        }
    }

    dsv4_memory_report memory() override {
        dsv4_memory_report report{};
        report.struct_size = sizeof report;
        return report;
    }

  private:
    static void check_bytes(const std::string& name, const char* what, std::uint64_t have, std::uint64_t want) {
        if (have != want)
            invalid("weight '" + name + "' brings " + std::to_string(have) + " bytes of " + what + " instead of " +
                    std::to_string(want));
    }
    static const std::shared_ptr<const Plan>& plan_at(const dsv4::sdk::Work& work) {
        return static_cast<const NullExecutable*>(work.executable)->plan;
    }
    static std::uint64_t mask_words(const Plan& plan) { return (std::uint64_t(plan.vocab) + 31) / 32; }

    void check_tensors(const std::vector<Tensor>& known, const dsv4_tensor* given, std::uint32_t count,
                       std::uint64_t rows, std::uint64_t logit_rows) const {
        for (std::uint32_t i = 0; i < count; ++i) {
            const auto name = view(given[i].name);
            auto it = std::find_if(known.begin(), known.end(), [&](const Tensor& t) { return t.name == name; });
            if (it == known.end()) invalid("the Program has no input or output '" + std::string(name) + "'");
            if (it->bytes(rows, logit_rows) != given[i].bytes)
                invalid("'" + it->name + "' has " + std::to_string(given[i].bytes) + " bytes instead of " +
                        std::to_string(it->bytes(rows, logit_rows)));
            if (given[i].bytes && !given[i].data) invalid("'" + it->name + "' has no memory");
        }
    }

    void check_batch(const Plan& plan, const dsv4_batch& b) {
        if (b.row_bytes < sizeof(dsv4_row) || b.slot_bytes < sizeof(dsv4_batch_slot))
            invalid("rows or slots are too short");
        if (b.row_count > plan.max_rows || b.slot_count > plan.max_slots)
            invalid("the batch is larger than the executable was compiled for");
        const View v = view_of(b);
        ++generation_;
        for (std::uint32_t i = 0; i < v.slots; ++i) {
            const auto& s = v.slot(i);
            if (s.slot < 0 || std::size_t(s.slot) >= records_.size())
                invalid("slot " + std::to_string(s.slot) + " does not exist");
            if (seen_[std::size_t(s.slot)] == generation_) invalid("slot " + std::to_string(s.slot) + " comes twice");
            seen_[std::size_t(s.slot)] = generation_;
            if (s.flags & ~DSV4_SLOT_RESET) unsupported("a slot has unknown flags");
            if ((s.flags & DSV4_SLOT_RESET) && s.committed < 0) invalid("a slot starts at a negative position");
            if (s.sampling && s.sampling->struct_size < sizeof(dsv4_sampling)) invalid("a dsv4_sampling is too short");
        }
        std::uint64_t logit_rows = 0;
        std::int64_t slot = -1;
        const dsv4_row* before = nullptr;
        for (std::uint32_t i = 0; i < v.rows; ++i) {
            const auto& r = v.row(i);
            if (r.slot != slot) {
                if (r.slot != slot + 1 || std::uint32_t(r.slot) >= v.slots)
                    invalid("row " + std::to_string(i) + " is not in the order of the slots");
                slot = r.slot;
                before = nullptr;
            }
            if (r.flags & ~known_row_flags) unsupported("row " + std::to_string(i) + " has unknown flags");
            if (r.input < DSV4_INPUT_GIVEN || r.input > DSV4_INPUT_NOISE)
                unsupported("row " + std::to_string(i) + " has an unknown input");
            if (before && !((before->flags | r.flags) & DSV4_ROW_PAD) &&
                (before->flags & DSV4_ROW_RELATIVE) == (r.flags & DSV4_ROW_RELATIVE) && r.position <= before->position)
                invalid("row " + std::to_string(i) + " is not after the row before it");
            if ((r.flags & DSV4_ROW_VERIFY) && !plan.verifies)
                invalid("row " + std::to_string(i) + " is to be verified and the Program has no verify op");
            logit_rows += r.flags & DSV4_ROW_LOGITS;
            before = &r;
        }
        if (slot + 1 != std::int64_t(v.slots)) invalid("a slot of the batch has no rows");
        for (std::uint32_t i = 0; i < b.copy_count; ++i) {
            const auto& c = b.copies[i];
            if (c.kind <= 0 || c.kind >= DSV4_STATE_KIND_COUNT || c.from < 0 || c.to < 0 ||
                std::uint32_t(c.from) >= pages_[c.kind] || std::uint32_t(c.to) >= pages_[c.kind])
                invalid("page copy " + std::to_string(i) + " names a page that does not exist");
        }
        if (b.input_count != plan.inputs.size()) invalid("the batch does not bring every input of the Program");
        check_tensors(plan.inputs, b.inputs, b.input_count, v.rows, logit_rows);
        check_tensors(plan.outputs, b.outputs, b.output_count, v.rows, logit_rows);
    }

    // Rows that take a mask, by what the host knows: flags and the latest sampling given. Updates the latter.
    std::uint64_t note_masked(const Plan& plan, const View& v, Saved* saved) {
        for (std::uint32_t i = 0; i < v.slots; ++i)
            if (const auto& s = v.slot(i); s.sampling) masked_[std::size_t(s.slot)] = s.sampling->masked != 0;
        if (!plan.masks) return 0;
        std::uint64_t n = 0;
        for (std::uint32_t i = 0; i < v.rows; ++i)
            n += (v.row(i).flags & DSV4_ROW_LOGITS) && masked_[std::size_t(v.slot(std::uint32_t(v.row(i).slot)).slot)];
        if (saved) saved->mask_rows = n;
        return n;
    }

    void save(const dsv4::sdk::Work& work, Ticket& ticket) {
        auto& s = ticket.saved.emplace_back();
        s.plan = plan_at(work);
        const View v = view_of(*work.batch);
        for (std::uint32_t i = 0; i < v.rows; ++i) s.rows.push_back(v.row(i));
        for (std::uint32_t i = 0; i < v.slots; ++i) {
            auto& slot = s.slots.emplace_back(v.slot(i));
            if (!slot.sampling) continue;
            auto& sampling = s.samplings.emplace_back(*slot.sampling);
            auto& stops = s.stops.emplace_back(sampling.stop_ids, sampling.stop_ids + sampling.stop_count);
            sampling.stop_ids = stops.data();
            slot.sampling = &sampling;
        }
        s.outputs.assign(work.batch->outputs, work.batch->outputs + work.batch->output_count);
        note_masked(*s.plan, v, &s);
    }

    // Runs queued tickets in order as far as their masks have come.
    void drain_queue() {
        if (!queued_) return;
        for (auto& ticket : tickets_) {
            if (ticket->done) continue;
            for (const auto& s : ticket->saved)
                if (s.mask_rows && !s.supplied) return;
            for (const auto& s : ticket->saved) {
                ticket->work = std::uint32_t(&s - ticket->saved.data());
                const View v{reinterpret_cast<const char*>(s.rows.data()),
                             reinterpret_cast<const char*>(s.slots.data()),
                             sizeof(dsv4_row),
                             sizeof(dsv4_batch_slot),
                             std::uint32_t(s.rows.size()),
                             std::uint32_t(s.slots.size())};
                run(*s.plan, v, s.mask_rows ? s.masks.data() : nullptr, *ticket);
                write_outputs(s.outputs);
            }
            complete(*ticket);
            --queued_;
        }
        changed_.notify_all();
    }

    static void write_outputs(std::span<const dsv4_tensor> outputs) {
        for (const auto& t : outputs)
            if (t.bytes) std::memset(t.data, 0, t.bytes);
    }

    // input + 1, or the first id after it that the mask and the minimal length allow.
    static std::int32_t choose(const Plan& plan, const Sampling& sampling, std::int32_t input, std::int64_t length,
                               const std::uint32_t* mask) {
        auto next = [&](std::int32_t t) { return t + 1 < plan.vocab ? t + 1 : 0; };
        std::int32_t token = next(input);
        if (!mask && length >= sampling.min_length) return token;
        for (std::int32_t tries = 0; tries < plan.vocab; ++tries, token = next(token)) {
            if (mask && !(mask[token / 32] >> (token % 32) & 1)) continue;
            if (length < sampling.min_length && sampling.stops(token)) continue;
            return token;
        }
        return -1;
    }

    static void emit(const Plan& plan, Record& record, std::int32_t slot, std::int32_t token, std::int64_t position,
                     std::int32_t accepted, std::uint32_t row, Ticket& ticket) {
        dsv4_result r{};
        r.slot = slot;
        r.token = token;
        r.position = position;
        r.accepted = accepted;
        const auto& s = record.sampling;
        if (s.stops(token) || position + 1 >= s.max_length) {
            record.finished = true;
            r.flags = DSV4_RESULT_FINISHED;
        }
        r.logprob = std::numeric_limits<float>::quiet_NaN();
        if (s.logprobs >= 0) { // all probability is on the token
            r.logprob = 0;
            r.top_count = std::uint32_t(std::min(s.logprobs, plan.vocab));
            for (std::uint32_t k = 0, id = 0; k < r.top_count; ++k) {
                if (k == 0) {
                    ticket.tops.push_back({token, 0});
                    continue;
                }
                if (id == std::uint32_t(token)) ++id;
                ticket.tops.push_back({std::int32_t(id++), -std::numeric_limits<float>::infinity()});
            }
        }
        record.last = token;
        r.work = ticket.work;
        r.row = row;
        ticket.results.push_back(r);
    }

    static void fail_row(Record& record, std::int32_t slot, std::uint32_t row, std::string_view op,
                         std::string_view message, Ticket& ticket) {
        record.finished = true;
        ticket.errors.push_back({slot, std::int32_t(row), dsv4::sdk::str(op), dsv4::sdk::str(message), ticket.work, 0});
    }

    void run(const Plan& plan, const View& v, const std::uint32_t* masks, Ticket& ticket) {
        std::uint32_t i = 0;
        for (std::uint32_t s = 0; s < v.slots; ++s) {
            const auto& slot = v.slot(s);
            auto& record = records_[std::size_t(slot.slot)];
            if (slot.flags & DSV4_SLOT_RESET) {
                record.committed = slot.committed;
                record.last = -1;
                record.finished = false;
                record.drafts.clear();
            }
            if (slot.sampling) record.sampling.take(*slot.sampling);
            const auto base = record.committed;
            const auto last = record.last; // inputs are read when the step begins
            auto input_of = [&](const dsv4_row& r) {
                if (r.input == DSV4_INPUT_LAST) return last;
                if (r.input != DSV4_INPUT_DRAFT) return r.token;
                return r.token >= 0 && std::size_t(r.token) < record.drafts.size() ? record.drafts[std::size_t(r.token)]
                                                                                   : -1;
            };
            auto position_of = [&](const dsv4_row& r) {
                return r.flags & DSV4_ROW_RELATIVE ? base + r.position : r.position;
            };
            // A mask belongs to every row with logits of a masked slot, also where the row turns out to be idle.
            auto mask_of = [&](const dsv4_row& r) {
                const std::uint32_t* mask = nullptr;
                if (masks && record.sampling.masked && (r.flags & DSV4_ROW_LOGITS)) {
                    mask = masks;
                    masks += mask_words(plan);
                }
                return mask;
            };
            std::vector<std::int32_t>& drafts = drafts_;
            drafts.clear();
            while (i < v.rows && std::uint32_t(v.row(i).slot) == s) {
                const auto& r = v.row(i);
                const auto* mask = mask_of(r);
                const auto at = i++;
                if (record.finished || (r.flags & DSV4_ROW_PAD)) continue;
                const auto input = input_of(r);
                const auto p = position_of(r);
                if (r.flags & DSV4_ROW_DRAFT) {
                    if (plan.drafts && (r.flags & DSV4_ROW_LOGITS)) {
                        const auto previous = drafts.empty() ? last : drafts.back();
                        drafts.push_back(previous + 1 < plan.vocab ? previous + 1 : 0);
                    }
                    continue;
                }
                if (plan.vocab && (input < 0 || input >= plan.vocab)) {
                    fail_row(record, slot.slot, at, "embed", "the input id is outside the vocabulary", ticket);
                    continue;
                }
                if (p < 0) {
                    fail_row(record, slot.slot, at, "embed", "the position is negative", ticket);
                    continue;
                }
                if (r.flags & DSV4_ROW_VERIFY) {
                    i = verify(plan, v, at, record, slot.slot, input, p, mask, input_of, mask_of, ticket);
                    continue;
                }
                record.committed = p + 1;
                if (!plan.samples || !(r.flags & DSV4_ROW_LOGITS)) continue;
                const auto token = choose(plan, record.sampling, input, p + 2, mask);
                if (token < 0)
                    fail_row(record, slot.slot, at, "sample", "the mask allows no token", ticket);
                else
                    emit(plan, record, slot.slot, token, p + 1, 0, at, ticket);
            }
            if (!drafts.empty()) record.drafts = drafts;
        }
    }

    // Judges the group of VERIFY rows that begins at `at`; returns the row after it.
    template <class InputOf, class MaskOf>
    std::uint32_t verify(const Plan& plan, const View& v, std::uint32_t at, Record& record, std::int32_t slot,
                         std::int32_t input, std::int64_t p, const std::uint32_t* mask, InputOf& input_of,
                         MaskOf& mask_of, Ticket& ticket) {
        const auto first = ticket.results.size();
        const auto group = v.row(at).slot;
        std::uint32_t i = at + 1;
        bool going = true;
        std::int32_t emitted = 0;
        while (true) {
            std::int32_t token = -1;
            if (going) {
                token = choose(plan, record.sampling, input, p + 2, mask);
                if (token < 0) {
                    fail_row(record, slot, i - 1, "verify", "the mask allows no token", ticket);
                    going = false;
                } else {
                    emit(plan, record, slot, token, p + 1, 0, i - 1, ticket);
                    record.committed = p + 1;
                    ++emitted;
                    going = !record.finished;
                }
            }
            if (i >= v.rows || v.row(i).slot != group || !(v.row(i).flags & DSV4_ROW_VERIFY)) break;
            const auto& next = v.row(i++);
            mask = mask_of(next);
            input = input_of(next);
            going = going && input == token;
            ++p;
        }
        for (auto k = first; k < ticket.results.size(); ++k) ticket.results[k].accepted = emitted - 1;
        return i;
    }

    void complete(Ticket& t) {
        const dsv4_top_logprob* top = t.tops.data();
        if (!t.tops.empty())
            for (auto& r : t.results) {
                r.top = r.top_count ? top : nullptr;
                top += r.top_count;
            }
        t.result.struct_size = sizeof t.result;
        t.result.result_bytes = sizeof(dsv4_result);
        t.result.result_count = std::uint32_t(t.results.size());
        t.result.error_count = std::uint32_t(t.errors.size());
        t.result.results = t.results.data();
        t.result.errors = t.errors.data();
        t.saved.clear();
        t.done = true;
    }

    std::unique_ptr<Ticket> take_ticket() {
        std::unique_ptr<Ticket> t;
        if (spare_.empty())
            t = std::make_unique<Ticket>();
        else {
            t = std::move(spare_.back());
            spare_.pop_back();
        }
        t->id = last_ticket_ + 1;
        t->done = t->released = false;
        t->results.clear();
        t->errors.clear();
        t->tops.clear();
        t->result = {};
        return t;
    }
    dsv4_ticket first_ticket() const { return last_ticket_ + 1 - tickets_.size(); }
    Ticket& find(dsv4_ticket id) {
        if (id == 0 || id < first_ticket() || id > last_ticket_ || tickets_[id - first_ticket()]->released)
            throw Failure(Code::not_found, "there is no ticket " + std::to_string(id));
        return *tickets_[id - first_ticket()];
    }

    std::vector<Announced> weights_;
    std::map<std::string, std::uint32_t, std::less<>> names_;
    std::vector<char> staged_[2];
    std::size_t stage_turn_ = 0;
    bool announced_ = false, weights_ready_ = false, state_ready_ = false;

    std::mutex mutex_; // what follows
    std::condition_variable changed_;
    std::vector<program::State> states_;
    std::uint32_t pages_[DSV4_STATE_KIND_COUNT] = {};
    std::vector<Record> records_;
    std::vector<std::uint8_t> masked_;        // by slot, as of the last submit
    std::vector<std::uint8_t> masked_before_; // scratch of submit
    std::vector<std::uint64_t> seen_;         // by slot: the last check that met it
    std::uint64_t generation_ = 0;
    std::vector<std::int32_t> drafts_;
    std::deque<std::unique_ptr<Ticket>> tickets_; // not released, in order
    std::vector<std::unique_ptr<Ticket>> spare_;
    dsv4_ticket last_ticket_ = 0;
    std::uint32_t queued_ = 0; // tickets that wait for a mask
};

class NullBackend final : public dsv4::sdk::Backend {
  public:
    NullBackend(const dsv4::sdk::Host&, const dsv4::sdk::Options& options) {
        const auto gib = options.integer("memory_gib");
        if (gib < 1 || gib > 65536) invalid("option memory_gib must be 1 .. 65536");
        device_.struct_size = sizeof device_;
        device_.name = dsv4::sdk::str("null");
        device_.arch = dsv4::sdk::str("x86_64");
        device_.memory_bytes = device_.free_bytes = std::uint64_t(gib) << 30;
    }
    std::span<const dsv4_device_info> devices() override { return {&device_, 1}; }
    void supports(const program::Program& p) override { plan_of(p); }
    std::vector<dsv4_state_layout> state_layouts(const program::Program& p) override { return layouts(p); }
    std::unique_ptr<dsv4::sdk::Session> open(const dsv4_session_config& config) override {
        if (config.device != 0) invalid("there is no device " + std::to_string(config.device));
        if (config.group.world > 1) unsupported("the null backend runs one rank only");
        return std::make_unique<NullSession>();
    }

  private:
    dsv4_device_info device_{};
};

} // namespace

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.0.0",
                              .licence = "Apache-2.0",
                              .status = DSV4_STATUS_BETA,
                              .posture = DSV4_POSTURE_UNTRUSTED_INPUT}),
            NullBackend)
