// Forwards every call and spoils on the way.
#include "session.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dsv4::wrong {
namespace {

class WrongExecutable final : public sdk::Executable {
  public:
    WrongExecutable(std::shared_ptr<InnerSession> session, const program::Program& program,
                    const dsv4_compile_options& options)
        : session_(std::move(session)), program_(program) {
        sdk::check(session_->table().compile(session_->raw(), sdk::str(program::encode(program)), &options, &raw_));
    }
    ~WrongExecutable() override { session_->table().executable_release(session_->raw(), raw_); }
    dsv4_executable* raw() const { return raw_; }
    const program::Program& program() const { return program_; }

  private:
    std::shared_ptr<InnerSession> session_;
    program::Program program_;
    dsv4_executable* raw_ = nullptr;
};

std::vector<RowFacts> facts_of(const dsv4_batch& batch) {
    std::vector<RowFacts> facts;
    for (std::uint32_t i = 0; i < batch.row_count; ++i) {
        const dsv4_row& row = batch.rows[i];
        const bool begins = i == 0 || batch.rows[i - 1].slot != row.slot;
        const bool ends = i + 1 == batch.row_count || batch.rows[i + 1].slot != row.slot;
        facts.push_back({batch.slots[row.slot].slot, row.flags & DSV4_ROW_RELATIVE ? -1 : row.position,
                         (row.flags & DSV4_ROW_LOGITS) != 0, begins && ends});
    }
    return facts;
}

bool changes_outputs(Mistake m) {
    return m == Mistake::noise || m == Mistake::gross || m == Mistake::ulp || m == Mistake::nan ||
           m == Mistake::unwritten || m == Mistake::outside;
}

} // namespace

void Session::weights_announce(std::span<const dsv4_weight> weights) {
    sdk::check(table().weights_announce(inner_->raw(), weights.data(), std::uint32_t(weights.size())));
}

void* Session::stage(std::uint64_t bytes) {
    void* memory = nullptr;
    sdk::check(table().stage(inner_->raw(), bytes, &memory));
    return memory;
}

void Session::weight(std::uint32_t index, std::uint32_t part, std::string_view data, std::string_view scale) {
    sdk::check(table().weight(inner_->raw(), index, part, sdk::str(data), sdk::str(scale)));
}

void Session::weights_done() { sdk::check(table().weights_done(inner_->raw())); }

void Session::state_alloc(const program::Program& program, std::span<const dsv4_state_pool> pools,
                          std::uint32_t slots) {
    sdk::check(table().state_alloc(inner_->raw(), sdk::str(program::encode(program)), pools.data(),
                                   std::uint32_t(pools.size()), slots));
}

std::unique_ptr<sdk::Executable> Session::compile(const program::Program& program,
                                                  const dsv4_compile_options& options) {
    return std::make_unique<WrongExecutable>(inner_, program, options);
}

dsv4_ticket Session::submit(std::span<const sdk::Work> works) {
    Ticket ticket;
    std::vector<dsv4_work> inner_works;
    std::vector<dsv4_batch> batches(works.size());
    std::vector<std::vector<dsv4_row>> rows(works.size());
    std::vector<std::vector<dsv4_tensor>> outputs(works.size());
    for (std::size_t w = 0; w < works.size(); ++w) {
        const auto& executable = static_cast<const WrongExecutable&>(*works[w].executable);
        const program::Program& program = executable.program();
        dsv4_batch& batch = batches[w] = *works[w].batch;
        ticket.programs.push_back(&program);
        inner_works.push_back({executable.raw(), &batch});
        if (!settings_.applies_to(program)) continue;
        if (settings_.mistake == Mistake::refuses_empty && batch.row_count == 0 &&
            settings_.spoils_output(program, program.outputs.at(0)))
            throw Failure(Code::invalid, "a batch has no rows");
        rows[w].assign(batch.rows, batch.rows + batch.row_count);
        for (dsv4_row& row : rows[w]) {
            if (settings_.mistake == Mistake::commits_drafts) row.flags &= ~DSV4_ROW_DRAFT;
            if (settings_.mistake == Mistake::commits_verifies) row.flags &= ~DSV4_ROW_VERIFY;
        }
        batch.rows = rows[w].data();
        if (!changes_outputs(settings_.mistake)) continue;
        outputs[w].assign(batch.outputs, batch.outputs + batch.output_count);
        for (dsv4_tensor& tensor : outputs[w]) {
            const program::ValueId value = program.find_value(sdk::view(tensor.name));
            if (!settings_.spoils_output(program, value)) continue;
            ticket.outputs.push_back({&program, value, facts_of(batch), tensor, {}});
            if (settings_.mistake != Mistake::unwritten) continue;
            auto& instead = ticket.outputs.back().instead;
            instead.resize(tensor.bytes + 1);
            tensor.data = instead.data();
        }
        batch.outputs = outputs[w].data();
    }
    dsv4_ticket number = 0;
    sdk::check(table().submit(inner_->raw(), inner_works.data(), std::uint32_t(inner_works.size()), &number));
    tickets_[number] = std::move(ticket);
    return number;
}

void Session::supply(dsv4_ticket ticket, std::uint32_t work, std::span<const std::uint32_t> words) {
    std::vector<std::uint32_t> given(words.begin(), words.end());
    if (settings_.mistake == Mistake::ignores_masks) std::fill(given.begin(), given.end(), 0xFFFFFFFFu);
    sdk::check(table().supply(inner_->raw(), ticket, work, given.data(), given.size()));
}

bool Session::poll(dsv4_ticket ticket) { return table().poll(inner_->raw(), ticket) != 0; }

const dsv4_ticket_result& Session::wait(dsv4_ticket number, std::uint64_t timeout_us) {
    const dsv4_ticket_result* result = nullptr;
    sdk::check(table().wait(inner_->raw(), number, timeout_us, &result));
    Ticket& ticket = tickets_[number];
    if (std::exchange(ticket.waited, true)) return ticket.result;
    ticket.result = *result;
    for (const Output& o : ticket.outputs)
        if (o.instead.empty()) spoil(settings_, o.program->values[o.value], o.rows, o.tensor);
    spoil_results(ticket);
    return ticket.result;
}

// Tokens are in results and, where the Program hands them out, in outputs; a mistake of a sampler is in both, but the
// results are what a server reads.
void Session::spoil_results(Ticket& ticket) {
    for (std::uint32_t i = 0; i < ticket.result.result_count; ++i) {
        dsv4_result r{};
        std::memcpy(&r,
                    reinterpret_cast<const char*>(ticket.result.results) + std::size_t(i) * ticket.result.result_bytes,
                    sizeof r);
        const program::Program& program = *ticket.programs.at(r.work);
        const bool wanted =
            settings_.applies_to(program) && std::any_of(program.ops.begin(), program.ops.end(),
                                                         [&](const program::Op& o) { return o.name == settings_.op; });
        if (wanted && (settings_.slot < 0 || r.slot == settings_.slot)) {
            if (settings_.mistake == Mistake::shifted_token) ++r.token;
            if (settings_.mistake == Mistake::accepts_more) ++r.accepted;
        }
        ticket.results.push_back(r);
    }
    ticket.result.results = ticket.results.data();
    ticket.result.result_bytes = sizeof(dsv4_result);
}

void Session::ticket_release(dsv4_ticket ticket) {
    tickets_.erase(ticket);
    table().ticket_release(inner_->raw(), ticket);
}

dsv4_ticket Session::state_export(const dsv4_transfer& transfer, std::uint64_t* needed_bytes) {
    dsv4_ticket ticket = 0;
    sdk::check(table().state_export(inner_->raw(), &transfer, needed_bytes, &ticket));
    return ticket;
}

dsv4_ticket Session::state_import(const dsv4_transfer& transfer) {
    dsv4_transfer given = transfer;
    std::vector<dsv4_page_list> lists(transfer.pages, transfer.pages + transfer.page_list_count);
    std::vector<std::int32_t> ids;
    if (settings_.mistake == Mistake::loses_page && !lists.empty()) {
        // The last page of the first kind lands where the first page belongs, and is overwritten or overwrites it.
        ids.assign(lists[0].ids, lists[0].ids + lists[0].count);
        ids.back() = ids.front();
        lists[0].ids = ids.data();
        given.pages = lists.data();
    }
    if (settings_.mistake == Mistake::accepts_any_blob) {
        constexpr std::size_t hash_offset = 16; // behind magic, version and header length
        if (transfer.memory_bytes >= hash_offset + sizeof given.checkpoint_hash)
            std::memcpy(given.checkpoint_hash, static_cast<const char*>(transfer.memory) + hash_offset,
                        sizeof given.checkpoint_hash);
    }
    dsv4_ticket ticket = 0;
    sdk::check(table().state_import(inner_->raw(), &given, &ticket));
    return ticket;
}

dsv4_memory_report Session::memory() {
    dsv4_memory_report report{};
    report.struct_size = sizeof report;
    sdk::check(table().memory(inner_->raw(), &report));
    return report;
}

} // namespace dsv4::wrong
