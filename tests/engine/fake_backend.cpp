// The hashing model, its records and pages.
#include "tests/engine/fake_backend.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <optional>
#include <thread>

namespace dsv4::test {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    std::uint64_t z = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

struct Kind {
    dsv4_state_kind kind;
    std::int64_t per_page; // positions
    std::int64_t ratio;    // positions a row
};
constexpr Kind kinds[] = {
    {DSV4_STATE_WINDOW, 64, 1},       {DSV4_STATE_CSA, 256, 4},       {DSV4_STATE_HCA, 256, 128},
    {DSV4_STATE_INDEX, 256, 4},       {DSV4_STATE_CSA_PARTIAL, 4, 1}, {DSV4_STATE_HCA_PARTIAL, 64, 1},
    {DSV4_STATE_INDEX_PARTIAL, 4, 1},
};

struct Cell {
    std::uint64_t value = 0xDEAD;
    std::int64_t position = -1;
};

struct SamplingCopy {
    dsv4_sampling raw{};
    std::vector<dsv4_bias> bias;
    std::vector<std::int32_t> stops;
    explicit SamplingCopy(const dsv4_sampling& s)
        : raw(s), bias(s.bias, s.bias + s.bias_count), stops(s.stop_ids, s.stop_ids + s.stop_count) {}
};

struct Record {
    std::int64_t committed = 0;
    std::int32_t last = -1;
    bool started = false, finished = false;
    std::optional<SamplingCopy> sampling;
    std::map<std::int32_t, int> prompt_counts, generated_counts;
};

struct SlotCopy {
    dsv4_batch_slot raw{};
    std::optional<SamplingCopy> sampling;
    std::vector<std::int32_t> prompt, generated;
    std::map<std::int32_t, std::pair<std::int64_t, std::vector<std::int32_t>>> tables; // kind -> first page, ids
};

struct TicketState {
    std::vector<dsv4_row> rows;
    std::vector<SlotCopy> slots;
    std::vector<dsv4_page_copy> copies;
    std::size_t masked_rows = 0;
    std::vector<std::uint32_t> mask;
    bool done = false;
    std::vector<dsv4_result> results;
    std::deque<std::vector<dsv4_top_logprob>> tops;
    std::vector<dsv4_row_error> errors;
    dsv4_ticket_result view{};
};

} // namespace

class FakeSession final : public sdk::Session {
  public:
    explicit FakeSession(FakeBackend& backend) : backend_(backend), options_(backend.options()) {}

    void weights_announce(std::span<const dsv4_weight>) override {}
    void* stage(std::uint64_t bytes) override {
        staged_.resize(bytes);
        return staged_.data();
    }
    void weight(std::uint32_t, std::uint32_t, std::string_view, std::string_view) override {}
    void weights_done() override {}
    void state_alloc(const program::Program&, std::span<const dsv4_state_pool> pools, std::uint32_t slots) override {
        records_.assign(slots, {});
        for (const dsv4_state_pool& pool : pools) {
            const Kind& k = kind(pool.kind);
            pages_[pool.kind].assign(pool.pages, std::vector<Cell>(std::size_t(k.per_page / k.ratio)));
        }
    }
    std::unique_ptr<sdk::Executable> compile(const program::Program&, const dsv4_compile_options& o) override {
        max_rows_ = o.max_rows;
        return std::make_unique<sdk::Executable>();
    }
    dsv4_ticket submit(std::span<const sdk::Work> works) override;
    void supply(dsv4_ticket ticket, std::uint32_t, std::span<const std::uint32_t> words) override {
        TicketState& t = tickets_.at(ticket);
        if (!t.mask.empty()) backend_.report("a mask was supplied twice");
        if (words.size() != t.masked_rows * mask_words()) backend_.report("a mask has a wrong number of words");
        t.mask.assign(words.begin(), words.end());
    }
    bool poll(dsv4_ticket ticket) override { return tickets_.at(ticket).done; }
    const dsv4_ticket_result& wait(dsv4_ticket ticket, std::uint64_t) override {
        for (auto& [number, t] : tickets_)
            if (number <= ticket && !t.done) execute(number, t);
        if (backend_.failing_ticket() == ticket) throw Failure(Code::environment, "the device was lost");
        return tickets_.at(ticket).view;
    }
    void ticket_release(dsv4_ticket ticket) override { tickets_.erase(ticket); }
    dsv4_memory_report memory() override {
        dsv4_memory_report r{};
        r.struct_size = sizeof r;
        return r;
    }

  private:
    std::size_t mask_words() const { return std::size_t(options_.vocab + 31) / 32; }
    static const Kind& kind(std::int32_t k) {
        return *std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& x) { return x.kind == k; });
    }
    Cell* cell(const SlotCopy& slot, dsv4_state_kind k, std::int64_t position, const char* why) {
        const Kind& rule = kind(k);
        const auto& [first, ids] = slot.tables.at(k);
        const std::int64_t index = position / rule.per_page - first;
        if (index < 0 || index >= std::int64_t(ids.size()) || ids[std::size_t(index)] < 0) {
            backend_.report(std::string(why) + ": no page of kind " + std::to_string(k));
            return nullptr;
        }
        return &pages_[k].at(std::size_t(ids[std::size_t(index)]))[std::size_t(position % rule.per_page / rule.ratio)];
    }
    std::uint64_t read(const SlotCopy& slot, dsv4_state_kind k, std::int64_t position) {
        const Cell* c = cell(slot, k, position, "a row to read");
        if (!c) return 0;
        if (c->position != position) backend_.report("a stale row of kind " + std::to_string(k) + " was read");
        return c->value;
    }
    void write(const SlotCopy& slot, dsv4_state_kind k, std::int64_t position, std::uint64_t value) {
        Cell* c = cell(slot, k, position, "a row to write");
        if (!c) return;
        const Kind& rule = kind(k);
        const auto& [first, ids] = slot.tables.at(k);
        if (users_[{k, ids[std::size_t(position / rule.per_page - first)]}] > 1)
            backend_.report("a page of kind " + std::to_string(k) + " is written while another slot shares it");
        *c = {value, position};
    }
    std::uint64_t forward(const SlotCopy& slot, std::int64_t p, std::int32_t token);
    void execute(dsv4_ticket number, TicketState& t);
    std::int32_t choose(const Record& r, std::uint64_t h, std::int64_t position, const std::uint32_t* mask,
                        std::vector<dsv4_top_logprob>& top, float& logprob) const;

    FakeBackend& backend_;
    const FakeOptions options_;
    std::vector<char> staged_;
    std::vector<Record> records_;
    std::map<std::int32_t, std::vector<std::vector<Cell>>> pages_;
    std::map<std::pair<std::int32_t, std::int32_t>, int> users_; // of the batch: (kind, page) -> slots that list it
    std::map<dsv4_ticket, TicketState> tickets_;
    dsv4_ticket next_ = 1;
    std::uint32_t max_rows_ = 0;
};

std::span<const dsv4_device_info> FakeBackend::devices() {
    static const dsv4_device_info device = [] {
        dsv4_device_info d{};
        d.struct_size = sizeof d;
        d.name = sdk::str("fake");
        d.arch = sdk::str("x86_64");
        d.memory_bytes = d.free_bytes = 1u << 30;
        return d;
    }();
    return {&device, 1};
}

std::vector<dsv4_state_layout> FakeBackend::state_layouts(const program::Program&) {
    std::vector<dsv4_state_layout> out;
    auto add = [&](dsv4_state_kind id, std::int64_t positions, std::int64_t rows, std::uint64_t bytes) {
        dsv4_state_layout l{};
        l.struct_size = sizeof l;
        l.kind = id;
        l.positions_per_page = std::uint32_t(positions);
        l.rows_per_page = std::uint32_t(rows);
        l.page_bytes = bytes;
        l.layout_tag = 1;
        out.push_back(l);
    };
    for (const Kind& k : kinds) add(k.kind, k.per_page, k.per_page / k.ratio, std::uint64_t(k.per_page / k.ratio) * 64);
    add(DSV4_STATE_TOKEN_COUNTS, 0, 0, 4096);
    return out;
}

std::unique_ptr<sdk::Session> FakeBackend::open(const dsv4_session_config&) {
    return std::make_unique<FakeSession>(*this);
}

std::vector<std::string> FakeBackend::violations() const {
    const std::lock_guard lock(mutex_);
    return {violations_.begin(), violations_.end()};
}

void FakeBackend::report(const std::string& what) {
    const std::lock_guard lock(mutex_);
    violations_.insert(what);
}

dsv4_ticket FakeSession::submit(std::span<const sdk::Work> works) {
    if (works.size() != 1) backend_.report("a step is not one work");
    if (tickets_.size() >= 2) backend_.report("more than two tickets are in flight");
    const dsv4_batch& b = *works[0].batch;
    if (b.row_count > max_rows_) backend_.report("a batch has more rows than were compiled for");
    TicketState t;
    t.rows.assign(b.rows, b.rows + b.row_count);
    t.copies.assign(b.copies, b.copies + b.copy_count);
    std::set<std::int32_t> seen;
    for (std::uint32_t i = 0; i < b.slot_count; ++i) {
        SlotCopy s;
        s.raw = b.slots[i];
        if (!seen.insert(s.raw.slot).second) backend_.report("a slot appears twice in a batch");
        if (s.raw.sampling) s.sampling.emplace(*s.raw.sampling);
        s.prompt.assign(s.raw.prompt_ids, s.raw.prompt_ids + s.raw.prompt_count);
        s.generated.assign(s.raw.generated_ids, s.raw.generated_ids + s.raw.generated_count);
        for (std::uint32_t k = 0; k < s.raw.table_count; ++k) {
            const dsv4_page_table& table = s.raw.tables[k];
            s.tables[table.kind] = {table.first_page, {table.ids, table.ids + table.count}};
        }
        if (s.tables.size() != std::size(kinds)) backend_.report("a slot lacks a page table");
        t.slots.push_back(std::move(s));
    }
    // Masked rows as the host must count them: by the sampling in force when the batch runs.
    std::map<std::int32_t, bool> masked;
    for (auto& [number, earlier] : tickets_)
        for (const SlotCopy& s : earlier.slots)
            if (s.sampling) masked[s.raw.slot] = s.sampling->raw.masked != 0;
    for (const dsv4_row& row : t.rows) {
        if (!(row.flags & DSV4_ROW_LOGITS)) continue;
        const SlotCopy& s = t.slots.at(std::size_t(row.slot));
        bool is_masked = false;
        if (s.sampling)
            is_masked = s.sampling->raw.masked != 0;
        else if (const auto it = masked.find(s.raw.slot); it != masked.end())
            is_masked = it->second;
        else if (const Record& r = records_.at(std::size_t(s.raw.slot)); r.sampling)
            is_masked = r.sampling->raw.masked != 0;
        t.masked_rows += is_masked;
    }
    tickets_.emplace(next_, std::move(t));
    return next_++;
}

// Reads what row p reads, writes what it writes, gives the hash its logits come from.
std::uint64_t FakeSession::forward(const SlotCopy& slot, std::int64_t p, std::int32_t token) {
    std::uint64_t h = mix(std::uint64_t(token), std::uint64_t(p));
    for (std::int64_t q = std::max<std::int64_t>(0, p - options_.window + 1); q < p; ++q)
        h = mix(h, read(slot, DSV4_STATE_WINDOW, q));
    for (std::int64_t j = 0; j < p / 4; ++j)
        h = mix(h, read(slot, DSV4_STATE_CSA, j * 4) ^ read(slot, DSV4_STATE_INDEX, j * 4));
    for (std::int64_t j = 0; j < p / 128; ++j) h = mix(h, read(slot, DSV4_STATE_HCA, j * 128));
    write(slot, DSV4_STATE_WINDOW, p, h);
    write(slot, DSV4_STATE_CSA_PARTIAL, p, mix(h, 1));
    write(slot, DSV4_STATE_INDEX_PARTIAL, p, mix(h, 2));
    write(slot, DSV4_STATE_HCA_PARTIAL, p, mix(h, 3));
    auto close = [&](dsv4_state_kind partial, dsv4_state_kind rows, std::int64_t ratio, std::int64_t reads) {
        if ((p + 1) % ratio != 0) return;
        std::uint64_t c = 7;
        for (std::int64_t q = std::max<std::int64_t>(0, p + 1 - reads); q <= p; ++q) c = mix(c, read(slot, partial, q));
        write(slot, rows, p + 1 - ratio, c);
    };
    close(DSV4_STATE_CSA_PARTIAL, DSV4_STATE_CSA, 4, 8);
    close(DSV4_STATE_INDEX_PARTIAL, DSV4_STATE_INDEX, 4, 8);
    close(DSV4_STATE_HCA_PARTIAL, DSV4_STATE_HCA, 128, 128);
    return mix(h, 4);
}

std::int32_t FakeSession::choose(const Record& r, std::uint64_t h, std::int64_t position, const std::uint32_t* mask,
                                 std::vector<dsv4_top_logprob>& top, float& logprob) const {
    const SamplingCopy& s = *r.sampling;
    if (s.raw.temperature > 0) h = mix(h, mix(s.raw.seed, std::uint64_t(position)));
    if (s.raw.presence_penalty != 0 || s.raw.frequency_penalty != 0 || s.raw.repetition_penalty != 1) {
        for (const auto& [token, count] : r.generated_counts) h += mix(std::uint64_t(token), std::uint64_t(count));
        for (const auto& [token, count] : r.prompt_counts) h += mix(std::uint64_t(token) + 77, std::uint64_t(count));
    }
    std::map<std::int32_t, float> logits;
    for (std::uint64_t i = 0; i < 16; ++i)
        logits.emplace(std::int32_t(20 + mix(h, i) % std::uint64_t(options_.vocab - 20)), 8.0f - 0.5f * float(i));
    if (options_.stop_every && mix(h, 99) % options_.stop_every == 0) logits[options_.stop_token] = 20.0f;
    const std::int64_t scripted = position - options_.script_origin;
    if (scripted >= 0 && scripted < std::int64_t(options_.script.size()))
        logits[options_.script[std::size_t(scripted)]] = 30.0f;
    std::vector<std::pair<float, std::int32_t>> raw;
    for (const auto& [token, logit] : logits) raw.push_back({-logit, token});
    std::sort(raw.begin(), raw.end());
    double sum = 0;
    for (const auto& [negative, token] : raw) sum += std::exp(double(-negative));
    auto log_softmax = [&](float logit) { return float(double(logit) - std::log(sum)); };
    if (mask) // something allowed always exists; stop ids last
        for (std::int32_t t = 0; t < options_.vocab; ++t)
            if (mask[t / 32] >> (t % 32) & 1) {
                const bool stop = std::find(s.stops.begin(), s.stops.end(), t) != s.stops.end();
                logits.emplace(t, stop ? -50.0f : -1.0f - float(mix(h, std::uint64_t(t)) % 64));
            }
    std::map<std::int32_t, float> changed = logits;
    for (const dsv4_bias& b : s.bias) {
        changed.emplace(b.token, 0.0f);
        changed[b.token] += b.value;
    }
    std::int32_t best = -1;
    float best_logit = 0;
    for (const auto& [token, logit] : changed) {
        const bool stop = std::find(s.stops.begin(), s.stops.end(), token) != s.stops.end();
        if (stop && position + 1 < s.raw.min_length) continue;
        if (mask && !(mask[token / 32] >> (token % 32) & 1)) continue;
        if (best < 0 || logit > best_logit) {
            best = token;
            best_logit = logit;
        }
    }
    logprob = std::numeric_limits<float>::quiet_NaN();
    if (s.raw.logprobs >= 0) {
        logprob = log_softmax(logits.contains(best) ? logits.at(best) : 0.0f);
        for (std::size_t i = 0; i < raw.size() && i < std::size_t(s.raw.logprobs); ++i)
            top.push_back({raw[i].second, log_softmax(-raw[i].first)});
    }
    return best;
}

void FakeSession::execute(dsv4_ticket number, TicketState& t) {
    if (options_.ticket_us) std::this_thread::sleep_for(std::chrono::microseconds(options_.ticket_us));
    for (const dsv4_page_copy& c : t.copies)
        pages_[c.kind].at(std::size_t(c.to)) = pages_[c.kind].at(std::size_t(c.from));
    users_.clear();
    for (const SlotCopy& s : t.slots)
        for (const auto& [k, table] : s.tables)
            for (std::int32_t id : table.second) ++users_[{k, id}];
    for (const SlotCopy& s : t.slots) {
        Record& r = records_.at(std::size_t(s.raw.slot));
        if (s.raw.flags & DSV4_SLOT_RESET) {
            r = {};
            r.started = true;
            r.committed = s.raw.committed;
            if (!s.sampling) backend_.report("a record began without sampling parameters");
            for (std::int32_t token : s.prompt) ++r.prompt_counts[token];
            for (std::int32_t token : s.generated) ++r.generated_counts[token];
        }
        if (!r.started) backend_.report("a slot was used before its first reset");
        if (s.sampling) r.sampling = s.sampling;
    }
    if (t.masked_rows > 0 && t.mask.empty()) backend_.report("a step was waited for before its masks were supplied");
    std::size_t mask_row = 0;
    std::int32_t previous = -1;
    for (std::size_t i = 0; i < t.rows.size(); ++i) {
        const dsv4_row& row = t.rows[i];
        if (row.slot < previous) backend_.report("rows of a slot are not consecutive");
        previous = row.slot;
        const SlotCopy& slot = t.slots.at(std::size_t(row.slot));
        Record& r = records_.at(std::size_t(slot.raw.slot));
        const bool wants_logits = (row.flags & DSV4_ROW_LOGITS) != 0;
        const std::uint32_t* mask = nullptr;
        if (wants_logits && r.sampling && r.sampling->raw.masked && !t.mask.empty())
            mask = t.mask.data() + mask_row++ * mask_words();
        if (r.finished) continue;
        if (number == backend_.failing_row() && t.errors.empty()) {
            r.finished = true;
            dsv4_row_error error{};
            error.slot = slot.raw.slot;
            error.row = std::int32_t(i);
            error.op = sdk::str("attend");
            error.message = sdk::str("planted");
            t.errors.push_back(error);
            continue;
        }
        const std::int64_t p = row.flags & DSV4_ROW_RELATIVE ? r.committed + row.position : row.position;
        if (p != r.committed) backend_.report("a row does not continue its record");
        std::int32_t token = row.token;
        if (row.input == DSV4_INPUT_LAST) {
            token = r.last;
            if (token < 0) backend_.report("the last token was asked for before there was one");
        }
        const std::uint64_t h = forward(slot, p, token);
        r.committed = p + 1;
        if (!wants_logits) continue;
        auto& top = t.tops.emplace_back();
        float logprob = 0;
        const std::int32_t chosen = choose(r, h, r.committed, mask, top, logprob);
        r.last = chosen;
        ++r.generated_counts[chosen];
        const auto& stops = r.sampling->stops;
        r.finished = std::find(stops.begin(), stops.end(), chosen) != stops.end() ||
                     r.committed + 1 >= r.sampling->raw.max_length;
        dsv4_result out{};
        out.slot = slot.raw.slot;
        out.token = chosen;
        out.position = r.committed;
        out.flags = r.finished ? DSV4_RESULT_FINISHED : 0u;
        out.logprob = logprob;
        out.top_count = std::uint32_t(top.size());
        out.top = top.data();
        out.row = std::uint32_t(i);
        t.results.push_back(out);
    }
    t.view = {};
    t.view.struct_size = sizeof t.view;
    t.view.result_bytes = sizeof(dsv4_result);
    t.view.result_count = std::uint32_t(t.results.size());
    t.view.error_count = std::uint32_t(t.errors.size());
    t.view.results = t.results.data();
    t.view.errors = t.errors.data();
    t.done = true;
}

program::Program fake_program() {
    program::Program p;
    p.name = "fake";
    p.precision = DSV4_SERVE;
    return p;
}

} // namespace dsv4::test
