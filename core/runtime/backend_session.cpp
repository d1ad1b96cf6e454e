// Calls through the backend table; turns boundary errors into Failure.
#include "core/runtime/backend_session.hpp"

#include <set>

namespace dsv4::runtime {
namespace {

// Hands streamed weights to the session.
class SessionSink final : public checkpoint::WeightSink {
  public:
    SessionSink(const BackendHandle& backend, dsv4_session* session, const lower::WeightTable& table)
        : backend_(backend), session_(session), table_(table) {}
    void* stage(std::size_t bytes) override {
        void* memory = nullptr;
        sdk::check(backend_.table->stage(session_, bytes, &memory));
        return memory;
    }
    void deliver(const model::Weight& weight, std::span<const std::byte> data,
                 std::span<const std::byte> scale) override {
        const lower::Part part = table_.part_of(weight);
        auto text = [](std::span<const std::byte> b) {
            return dsv4_str{reinterpret_cast<const char*>(b.data()), b.size()};
        };
        sdk::check(backend_.table->weight(session_, part.index, part.part, text(data), text(scale)));
    }

  private:
    const BackendHandle& backend_;
    dsv4_session* session_;
    const lower::WeightTable& table_;
};

} // namespace

void BackendHandle::require_complete() const {
    std::string missing;
    auto need = [&](bool there, const char* name) {
        if (!there) missing += (missing.empty() ? "" : ", ") + std::string(name);
    };
#define DSV4_NEED(member) need(DSV4_HAS(table, member), #member)
    DSV4_NEED(devices);
    DSV4_NEED(supports);
    DSV4_NEED(state_layouts);
    DSV4_NEED(open);
    DSV4_NEED(close);
    DSV4_NEED(weights_announce);
    DSV4_NEED(stage);
    DSV4_NEED(weight);
    DSV4_NEED(weights_done);
    DSV4_NEED(state_alloc);
    DSV4_NEED(compile);
    DSV4_NEED(executable_release);
    DSV4_NEED(submit);
    DSV4_NEED(supply);
    DSV4_NEED(poll);
    DSV4_NEED(wait);
    DSV4_NEED(ticket_release);
    DSV4_NEED(memory);
#undef DSV4_NEED
    if (!missing.empty()) throw Failure(Code::unsupported, "the backend's table lacks required functions: " + missing);
}

std::vector<dsv4_device_info> BackendHandle::devices() const {
    const dsv4_device_info* list = nullptr;
    std::uint32_t count = 0;
    sdk::check(table->devices(self, &list, &count));
    return {list, list + count};
}

Status BackendHandle::supports(const program::Program& program) const {
    return sdk::status(table->supports(self, sdk::str(program::encode(program))));
}

std::vector<dsv4_state_layout> BackendHandle::state_layouts(const program::Program& program) const {
    const std::string bytes = program::encode(program);
    std::uint32_t count = 0;
    sdk::check(table->state_layouts(self, sdk::str(bytes), nullptr, 0, &count));
    std::vector<dsv4_state_layout> layouts(count);
    sdk::check(table->state_layouts(self, sdk::str(bytes), layouts.data(), count, &count));
    return layouts;
}

BackendSession::BackendSession(BackendHandle backend, const dsv4_session_config& config) : backend_(backend) {
    backend_.require_complete();
    sdk::check(backend_.table->open(backend_.self, &config, &session_));
}

BackendSession::~BackendSession() {
    if (session_) backend_.table->close(session_);
}

void BackendSession::announce(std::span<const lower::TableEntry> entries) {
    std::vector<dsv4_weight> list;
    for (const lower::TableEntry& e : entries) {
        dsv4_weight w{};
        w.struct_size = sizeof w;
        w.name = sdk::str(e.name);
        w.format = e.format;
        w.dim_count = std::uint32_t(e.dims.size());
        std::copy(e.dims.begin(), e.dims.end(), w.dims);
        w.parts = e.parts;
        w.slice_dim = -1;
        list.push_back(w);
    }
    sdk::check(backend_.table->weights_announce(session_, list.data(), std::uint32_t(list.size())));
}

void BackendSession::deliver(std::uint32_t index, std::uint32_t part, std::string_view data, std::string_view scale) {
    sdk::check(backend_.table->weight(session_, index, part, sdk::str(data), sdk::str(scale)));
}

void BackendSession::weights_done() { sdk::check(backend_.table->weights_done(session_)); }

void BackendSession::load(const checkpoint::Checkpoint& checkpoint, const lower::WeightTable& table,
                          const std::function<bool(const checkpoint::Progress&)>& progress) {
    announce(table.entries());
    SessionSink sink(backend_, session_, table);
    checkpoint::StreamOptions options;
    options.progress = progress;
    options.wanted = [&](const model::Weight& w) { return table.contains(w); };
    checkpoint::stream_weights(checkpoint, sink, options).value();
    weights_done();
}

void BackendSession::allocate(const program::Program& program, std::span<const dsv4_state_pool> pools,
                              std::uint32_t slots) {
    sdk::check(backend_.table->state_alloc(session_, sdk::str(program::encode(program)), pools.data(),
                                           std::uint32_t(pools.size()), slots));
}

dsv4_executable* BackendSession::compile(const program::Program& program, std::uint32_t max_rows,
                                         std::uint32_t max_slots) {
    const dsv4_compile_options options{sizeof options, max_rows, max_slots};
    dsv4_executable* executable = nullptr;
    sdk::check(backend_.table->compile(session_, sdk::str(program::encode(program)), &options, &executable));
    return executable;
}

dsv4_ticket BackendSession::submit(dsv4_executable* executable, const dsv4_batch& batch) {
    const dsv4_work work{executable, &batch};
    dsv4_ticket ticket = 0;
    sdk::check(backend_.table->submit(session_, &work, 1, &ticket));
    return ticket;
}

void BackendSession::supply(dsv4_ticket ticket, std::span<const std::uint32_t> words) {
    sdk::check(backend_.table->supply(session_, ticket, 0, words.data(), words.size()));
}

TicketResult BackendSession::wait(dsv4_ticket ticket) {
    const dsv4_ticket_result* raw = nullptr;
    dsv4_error* error = backend_.table->wait(session_, ticket, UINT64_MAX, &raw);
    if (error) {
        Error e = sdk::take_error(error);
        backend_.table->ticket_release(session_, ticket);
        throw Failure(std::move(e));
    }
    TicketResult r;
    r.device_us = raw->device_us;
    for (std::uint32_t i = 0; i < raw->result_count; ++i) {
        const auto* at = reinterpret_cast<const char*>(raw->results) + std::size_t(i) * raw->result_bytes;
        const auto& result = *reinterpret_cast<const dsv4_result*>(at);
        r.tokens.push_back({result, {result.top, result.top + result.top_count}});
        r.tokens.back().result.top = nullptr; // the copy owns its list
    }
    for (std::uint32_t i = 0; i < raw->error_count; ++i) {
        const dsv4_row_error& e = raw->errors[i];
        r.errors.push_back({e.slot, e.row, std::string(sdk::view(e.op)), std::string(sdk::view(e.message))});
    }
    backend_.table->ticket_release(session_, ticket);
    return r;
}

} // namespace dsv4::runtime
