// The session: what the engine thread calls, and the worker that runs tickets.
#include "session.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace dsv4::cpu {
namespace {

constexpr std::size_t max_queued = 4; // tickets not yet done before submit waits

} // namespace

void HostParallel::run(std::size_t tasks, const std::function<void(std::size_t)>& task) const {
    if (tasks > 1)
        host_.parallel_for(static_cast<std::uint32_t>(tasks), [&](std::uint32_t i) { task(i); });
    else if (tasks == 1)
        task(0);
}

Session::Session(const sdk::Host& host, Accum accum, const dsv4_session_config& config)
    : host_(host), parallel_(host), accum_(accum) {
    if (config.device != 0)
        throw Failure(Code::not_found, "the CPU backend has device 0 only, not " + std::to_string(config.device));
    if (config.group.world > 1)
        throw Failure(Code::unsupported, "the CPU backend runs one rank, not " + std::to_string(config.group.world));
    worker_ = std::thread([this] { work(); });
}

Session::~Session() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true; // a ticket that waits for masks gives up; others finish
    }
    changed_.notify_all();
    worker_.join();
}

void Session::require_idle(const char* what) {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, ticket] : tickets_)
        if (!ticket->done)
            throw Failure(Code::invalid, std::string(what) + " needs a session with no ticket in flight");
}

void Session::state_alloc(const program::Program& program, std::span<const dsv4_state_pool> pools,
                          std::uint32_t slots) {
    require_idle("state_alloc");
    if (slots > (1u << 20)) throw Failure(Code::invalid, "a session cannot have more than 2^20 slots");
    auto layouts = layouts_of(program);
    state_ready_ = false;
    state_ = StateStore(); // give the memory back first
    records_.clear();
    if (layouts != layouts_) ++state_generation_;
    layouts_ = layouts;
    state_ = StateStore(std::move(layouts), pools);
    records_.resize(slots);
    masked_.assign(slots, false);
    state_ready_ = true;
}

std::unique_ptr<sdk::Executable> Session::compile(const program::Program& program,
                                                  const dsv4_compile_options& options) {
    if (!program.weights.empty() && !weights_.complete())
        throw Failure(Code::invalid, "compile comes after weights_done");
    if (!state_ready_) throw Failure(Code::invalid, "compile comes after state_alloc");
    if (options.max_rows > (1u << 24) || options.max_slots > (1u << 20))
        throw Failure(Code::invalid, "the executable is asked to take too many rows or slots");
    auto executable = compile_program(program, options, accum_, &weights_, &state_);
    executable->state_generation = state_generation_;
    return executable;
}

dsv4_ticket Session::submit(std::span<const sdk::Work> works) {
    auto ticket = std::make_unique<Ticket>();
    std::vector<bool> masked = masked_;
    for (const sdk::Work& w : works) {
        auto* executable = static_cast<Executable*>(w.executable);
        if (!executable || !w.batch) throw Failure(Code::invalid, "a work needs an executable and a batch");
        if (!state_ready_ || executable->state_generation != state_generation_)
            throw Failure(Code::invalid, "Program '" + executable->name + "' was compiled for another state",
                          "compile it again after state_alloc");
        QueuedWork queued;
        queued.executable = executable;
        queued.batch = copy_batch(*w.batch, *executable, state_, static_cast<std::uint32_t>(records_.size()));
        for (const BatchSlot& s : queued.batch.slots)
            if (s.sampling || s.reset) masked[static_cast<std::size_t>(s.slot)] = s.sampling && s.sampling->masked;
        if (executable->mask_vocabulary > 0) {
            std::size_t rows = 0;
            for (const dsv4_row& r : queued.batch.rows)
                rows += (r.flags & DSV4_ROW_LOGITS) != 0 &&
                        masked[static_cast<std::size_t>(queued.batch.slots[static_cast<std::size_t>(r.slot)].slot)];
            queued.mask_words = rows * ((executable->mask_vocabulary + 31) / 32);
        }
        ticket->works.push_back(std::move(queued));
    }
    const dsv4_ticket number = enqueue(std::move(ticket));
    masked_ = std::move(masked);
    return number;
}

dsv4_ticket Session::enqueue(std::unique_ptr<Ticket> ticket) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.size() < max_queued; });
    const dsv4_ticket number = ++last_ticket_;
    tickets_.emplace(number, std::move(ticket));
    queue_.push_back(number);
    changed_.notify_all();
    return number;
}

Session::Ticket& Session::find(dsv4_ticket ticket) {
    const auto it = tickets_.find(ticket);
    if (it == tickets_.end())
        throw Failure(Code::not_found, "ticket " + std::to_string(ticket) + " does not exist or was released");
    return *it->second;
}

void Session::supply(dsv4_ticket ticket, std::uint32_t work, std::span<const std::uint32_t> words) {
    {
        const std::lock_guard lock(mutex_);
        Ticket& t = find(ticket);
        const std::string label = "work " + std::to_string(work) + " of ticket " + std::to_string(ticket);
        if (work >= t.works.size()) throw Failure(Code::invalid, label + " does not exist");
        QueuedWork& w = t.works[work];
        if (w.mask_words == 0) throw Failure(Code::invalid, label + " takes no masks");
        if (w.masks) throw Failure(Code::invalid, label + " got its masks already");
        if (words.size() != w.mask_words)
            throw Failure(Code::invalid, label + " takes " + std::to_string(w.mask_words) + " mask words, not " +
                                             std::to_string(words.size()));
        w.masks.emplace(words.begin(), words.end());
    }
    changed_.notify_all();
}

bool Session::poll(dsv4_ticket ticket) {
    const std::lock_guard lock(mutex_);
    const auto it = tickets_.find(ticket);
    return it == tickets_.end() || it->second->done;
}

const dsv4_ticket_result& Session::wait(dsv4_ticket ticket, std::uint64_t timeout_us) {
    std::unique_lock lock(mutex_);
    Ticket& t = find(ticket);
    const auto done = [&] { return t.done; };
    constexpr std::uint64_t longest_us = std::uint64_t{3600} * 24 * 365 * 1'000'000;
    if (timeout_us > longest_us)
        changed_.wait(lock, done);
    else if (!changed_.wait_for(lock, std::chrono::microseconds(timeout_us), done))
        throw Failure(Code::deadline, "ticket " + std::to_string(ticket) + " did not finish in time");
    if (t.error) throw Failure(*t.error);
    return t.result;
}

void Session::ticket_release(dsv4_ticket ticket) {
    std::unique_lock lock(mutex_);
    const auto it = tickets_.find(ticket);
    if (it == tickets_.end()) return;
    changed_.wait(lock, [&] { return it->second->done; });
    tickets_.erase(it);
}

Session::Transfer Session::copy_transfer(const dsv4_transfer& from) const {
    if (from.memory_kind != DSV4_MEMORY_HOST && from.memory_kind != DSV4_MEMORY_PINNED)
        throw Failure(Code::unsupported, "the CPU backend transfers state to and from host memory only");
    Transfer t;
    t.header = from;
    for (std::uint32_t i = 0; i < from.page_list_count; ++i) {
        t.lists.push_back(from.pages[i]);
        t.ids.emplace_back(from.pages[i].ids, from.pages[i].ids + from.pages[i].count);
    }
    for (std::size_t i = 0; i < t.lists.size(); ++i)
        t.lists[i].ids = t.ids[i].data(); // vectors of ids keep their memory when moved
    return t;
}

dsv4_ticket Session::state_export(const dsv4_transfer& transfer, std::uint64_t* needed_bytes) {
    const std::uint64_t bytes = state_.blob_bytes(transfer);
    if (needed_bytes) *needed_bytes = bytes;
    if (transfer.memory_bytes < bytes)
        throw Failure(Code::exhausted, "the state blob needs " + std::to_string(bytes) +
                                           " bytes and there is room for " + std::to_string(transfer.memory_bytes));
    auto ticket = std::make_unique<Ticket>();
    ticket->transfer = copy_transfer(transfer);
    ticket->transfer->exporting = true;
    return enqueue(std::move(ticket));
}

dsv4_ticket Session::state_import(const dsv4_transfer& transfer) {
    auto ticket = std::make_unique<Ticket>();
    ticket->transfer = copy_transfer(transfer);
    state_.check_blob(transfer, 0, 1);
    return enqueue(std::move(ticket));
}

std::span<const std::uint32_t> Session::wait_for_masks(QueuedWork& work) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return work.masks.has_value() || closing_; });
    if (!work.masks) throw Failure(Code::cancelled, "the session closed while a batch waited for its masks");
    return *work.masks;
}

void Session::run_ticket(Ticket& ticket) {
    if (ticket.transfer) {
        dsv4_transfer t = ticket.transfer->header;
        t.pages = ticket.transfer->lists.data();
        if (ticket.transfer->exporting)
            state_.write_blob(t, 0, 1);
        else
            state_.read_blob(t);
    }
    for (std::size_t i = 0; i < ticket.works.size(); ++i) {
        QueuedWork& w = ticket.works[i];
        Run run(
            *w.executable, w.batch, state_, records_, parallel_, [&] { return wait_for_masks(w); },
            static_cast<std::uint32_t>(i), ticket.outcome);
        run.execute();
    }
}

void Session::work() {
    for (;;) {
        Ticket* ticket = nullptr;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return !queue_.empty() || closing_; });
            if (queue_.empty()) return;
            ticket = tickets_.at(queue_.front()).get(); // never released before it is done
        }
        const auto begin = std::chrono::steady_clock::now();
        std::optional<Error> error;
        try {
            run_ticket(*ticket);
        } catch (...) {
            error = current_error();
        }
        const auto elapsed = std::chrono::steady_clock::now() - begin;
        {
            const std::lock_guard lock(mutex_);
            Ticket& t = *ticket;
            for (Outcome::Emitted& e : t.outcome.results) {
                e.result.top = e.top.data();
                e.result.top_count = static_cast<std::uint32_t>(e.top.size());
                t.results.push_back(e.result);
            }
            for (const Outcome::RowError& e : t.outcome.errors)
                t.errors.push_back({e.slot, e.row, sdk::str(e.op), sdk::str(e.message), e.work, 0});
            t.result.struct_size = sizeof t.result;
            t.result.result_bytes = sizeof(dsv4_result);
            t.result.result_count = static_cast<std::uint32_t>(t.results.size());
            t.result.results = t.results.data();
            t.result.error_count = static_cast<std::uint32_t>(t.errors.size());
            t.result.errors = t.errors.data();
            t.result.device_us =
                static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
            t.error = std::move(error);
            for (QueuedWork& w : t.works) {
                workspace_bytes_ = std::max(workspace_bytes_, w.executable->buffer_bytes());
                for (Step& s : w.executable->steps) {
                    auto& [calls, seconds] = used_[{s.label, w.executable->numerics.wide()}];
                    calls += s.calls;
                    seconds += s.seconds;
                    s.calls = 0;
                    s.seconds = 0;
                }
            }
            for (QueuedWork& w : t.works) w.batch = {}; // a late supply may still name the work
            t.done = true;
            queue_.pop_front();
        }
        changed_.notify_all();
    }
}

dsv4_memory_report Session::memory() {
    dsv4_memory_report report{};
    report.struct_size = sizeof report;
    report.weights_bytes = weights_.resident_bytes();
    report.state_bytes = state_.bytes();
    if (const KindLayout* counts = state_.layout(DSV4_STATE_TOKEN_COUNTS))
        report.state_bytes += records_.size() * counts->page_bytes();
    const std::lock_guard lock(mutex_);
    report.workspace_bytes = workspace_bytes_;
    return report;
}

double Session::copy_rate(std::uint64_t bytes) {
    if (bytes == 0 || bytes > (std::uint64_t{1} << 32))
        throw Failure(Code::invalid, "a copy rate is measured over 1 byte to 4 GiB");
    const Bytes from(bytes), to(bytes);
    const auto begin = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return static_cast<double>(bytes) / std::max(seconds, 1e-9);
}

std::span<const dsv4_kernel_use> Session::kernels() {
    static constexpr std::string_view names[] = {"cpu.f32", "cpu.f64"};
    const std::lock_guard lock(mutex_);
    kernel_names_.clear();
    kernel_report_.clear();
    kernel_names_.reserve(used_.size());
    for (const auto& [op, use] : used_) {
        kernel_names_.push_back(op.first);
        kernel_report_.push_back({sdk::str(kernel_names_.back()), sdk::str(names[op.second]), use.first, use.second});
    }
    used_.clear();
    return kernel_report_;
}

} // namespace dsv4::cpu
