// One opened session: weights, state, executables and the queue of tickets, run in order by one worker thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "batch.hpp"
#include "dsv4/sdk/backend.hpp"
#include "executable.hpp"
#include "run.hpp"
#include "state.hpp"
#include "weights.hpp"

namespace dsv4::cpu {

// The host's pool as the kernels see it.
class HostParallel final : public Parallel {
  public:
    explicit HostParallel(const sdk::Host& host) : host_(host) {}
    void run(std::size_t tasks, const std::function<void(std::size_t)>& task) const override;

  private:
    sdk::Host host_;
};

class Session final : public sdk::Session {
  public:
    Session(const sdk::Host& host, Accum accum, const dsv4_session_config& config);
    ~Session() override;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    void weights_announce(std::span<const dsv4_weight> weights) override { weights_.announce(weights); }
    void* stage(std::uint64_t bytes) override { return weights_.stage(bytes); }
    void weight(std::uint32_t index, std::uint32_t part, std::string_view data, std::string_view scale) override {
        weights_.take(index, part, data, scale);
    }
    void weights_done() override { weights_.done(); }
    void state_alloc(const program::Program& program, std::span<const dsv4_state_pool> pools,
                     std::uint32_t slots) override;
    std::unique_ptr<sdk::Executable> compile(const program::Program& program,
                                             const dsv4_compile_options& options) override;
    dsv4_ticket submit(std::span<const sdk::Work> works) override;
    void supply(dsv4_ticket ticket, std::uint32_t work, std::span<const std::uint32_t> words) override;
    bool poll(dsv4_ticket ticket) override;
    const dsv4_ticket_result& wait(dsv4_ticket ticket, std::uint64_t timeout_us) override;
    void ticket_release(dsv4_ticket ticket) override;
    dsv4_ticket state_export(const dsv4_transfer& transfer, std::uint64_t* needed_bytes) override;
    dsv4_ticket state_import(const dsv4_transfer& transfer) override;
    dsv4_memory_report memory() override;
    double copy_rate(std::uint64_t bytes) override;
    std::span<const dsv4_kernel_use> kernels() override;

  private:
    struct QueuedWork {
        Executable* executable = nullptr;
        Batch batch;
        std::size_t mask_words = 0; // late words it waits for; 0: none
        std::optional<std::vector<std::uint32_t>> masks;
    };
    struct Transfer {
        dsv4_transfer header{};
        std::vector<dsv4_page_list> lists;
        std::vector<std::vector<std::int32_t>> ids;
        bool exporting = false;
    };
    struct Ticket {
        std::vector<QueuedWork> works;
        std::optional<Transfer> transfer;
        bool done = false;
        std::optional<Error> error; // the ticket failed as a whole
        Outcome outcome;
        std::vector<dsv4_result> results; // what the caller sees, pointing into outcome
        std::vector<dsv4_row_error> errors;
        dsv4_ticket_result result{};
    };

    void work();
    void run_ticket(Ticket& ticket);
    std::span<const std::uint32_t> wait_for_masks(QueuedWork& work);
    Ticket& find(dsv4_ticket ticket); // with the lock held
    dsv4_ticket enqueue(std::unique_ptr<Ticket> ticket);
    Transfer copy_transfer(const dsv4_transfer& from) const;
    void require_idle(const char* what);

    sdk::Host host_;
    HostParallel parallel_;
    Accum accum_;
    WeightStore weights_;
    StateStore state_;
    std::vector<Record> records_; // the worker's while tickets run
    bool state_ready_ = false;
    std::vector<KindLayout> layouts_;
    std::uint64_t state_generation_ = 0; // counts changes of the layouts
    std::vector<bool> masked_;           // of each slot as of the last submit

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<dsv4_ticket, std::unique_ptr<Ticket>> tickets_;
    std::deque<dsv4_ticket> queue_;
    dsv4_ticket last_ticket_ = 0;
    bool closing_ = false;
    // (op, double sums) -> calls, seconds since the last report
    std::map<std::pair<std::string, bool>, std::pair<std::uint64_t, double>> used_;
    std::vector<std::string> kernel_names_;
    std::vector<dsv4_kernel_use> kernel_report_;
    std::uint64_t workspace_bytes_ = 0;
    std::thread worker_;
};

} // namespace dsv4::cpu
