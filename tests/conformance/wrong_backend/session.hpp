// A session of the wrapped backend with the mistake built in. One thread at a time.
#pragma once

#include "dsv4/sdk/backend.hpp"
#include "inner.hpp"
#include "spoil.hpp"

#include <map>

namespace dsv4::wrong {

class Session final : public sdk::Session {
  public:
    Session(std::shared_ptr<InnerSession> inner, const Settings& settings)
        : inner_(std::move(inner)), settings_(settings) {}

    void weights_announce(std::span<const dsv4_weight> weights) override;
    void* stage(std::uint64_t bytes) override;
    void weight(std::uint32_t index, std::uint32_t part, std::string_view data, std::string_view scale) override;
    void weights_done() override;
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

  private:
    // An output that is spoiled once its ticket completed.
    struct Output {
        const program::Program* program;
        program::ValueId value;
        std::vector<RowFacts> rows;
        dsv4_tensor tensor;
        std::vector<unsigned char> instead; // where the backend writes when `tensor` is to stay unwritten
    };
    struct Ticket {
        std::vector<Output> outputs;
        std::vector<const program::Program*> programs; // by work
        std::vector<dsv4_result> results;
        dsv4_ticket_result result{};
        bool waited = false;
    };
    const dsv4_backend_table& table() const { return inner_->table(); }
    void spoil_results(Ticket& ticket);

    std::shared_ptr<InnerSession> inner_;
    Settings settings_;
    std::map<dsv4_ticket, Ticket> tickets_;
};

} // namespace dsv4::wrong
