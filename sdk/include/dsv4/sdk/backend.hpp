// Base classes of a backend: Backend is the machine, Session one opened device. See dsv4/backend.h for every contract.
#pragma once

#include "dsv4/backend.h"
#include "dsv4/sdk/host.hpp"
#include "dsv4/sdk/plugin.hpp"
#include "dsv4/sdk/program.hpp"

#include <memory>
#include <span>
#include <vector>

namespace dsv4::sdk {

// What compile returns; destroyed by executable_release or with the session.
class Executable {
  public:
    virtual ~Executable() = default;
};

struct Work {
    Executable* executable;
    const dsv4_batch* batch; // valid during submit only
};

// Errors are Failure exceptions. Threads as in dsv4/backend.h. The destructor waits for running tickets.
class Session {
  public:
    virtual ~Session() = default;
    virtual void weights_announce(std::span<const dsv4_weight> weights) = 0;
    virtual void* stage(std::uint64_t bytes) = 0;
    virtual void weight(std::uint32_t index, std::uint32_t part, std::string_view data, std::string_view scale) = 0;
    virtual void weights_done() = 0;
    virtual void state_alloc(const program::Program& program, std::span<const dsv4_state_pool> pools,
                             std::uint32_t slots) = 0;
    virtual std::unique_ptr<Executable> compile(const program::Program& program,
                                                const dsv4_compile_options& options) = 0;
    virtual dsv4_ticket submit(std::span<const Work> works) = 0;
    virtual void supply(dsv4_ticket ticket, std::uint32_t work, std::span<const std::uint32_t> words) = 0;
    virtual bool poll(dsv4_ticket ticket) = 0;
    // Throws Failure(deadline) when timeout_us passes.
    virtual const dsv4_ticket_result& wait(dsv4_ticket ticket, std::uint64_t timeout_us) = 0;
    virtual void ticket_release(dsv4_ticket ticket) = 0;
    virtual dsv4_ticket state_export(const dsv4_transfer&, std::uint64_t* /*needed_bytes*/) {
        throw Failure(Code::unsupported, "this backend cannot export state");
    }
    virtual dsv4_ticket state_import(const dsv4_transfer&) {
        throw Failure(Code::unsupported, "this backend cannot import state");
    }
    virtual dsv4_memory_report memory() = 0;
    virtual double copy_rate(std::uint64_t /*bytes*/) {
        throw Failure(Code::unsupported, "this backend cannot measure its copy rate");
    }
    virtual std::span<const dsv4_kernel_use> kernels() { return {}; }
};

class Backend {
  public:
    using Interface = Backend;
    static constexpr std::int32_t kind = DSV4_KIND_BACKEND;
    virtual ~Backend() = default;

    virtual std::span<const dsv4_device_info> devices() = 0;
    // Throws Failure(unsupported) naming what cannot be compiled.
    virtual void supports(const program::Program& program) = 0;
    virtual std::vector<dsv4_state_layout> state_layouts(const program::Program& program) = 0;
    virtual std::vector<std::uint8_t> unique_id() {
        throw Failure(Code::unsupported, "this backend runs one rank only");
    }
    virtual std::unique_ptr<Session> open(const dsv4_session_config& config) = 0;

    static const dsv4_backend_table& table();
};

namespace detail {

inline Backend& backend(void* self) { return *static_cast<Backend*>(self); }

// What a dsv4_session points to: the author's session and the executables that are still alive.
struct SessionHolder {
    std::vector<std::unique_ptr<Executable>> executables; // destroyed after the session
    std::unique_ptr<Session> session;
};
inline SessionHolder& holder(dsv4_session* s) { return *reinterpret_cast<SessionHolder*>(s); }
inline Session& session(dsv4_session* s) { return *holder(s).session; }

} // namespace detail

inline const dsv4_backend_table& Backend::table() {
    using namespace detail;
    static const dsv4_backend_table t = [] {
        dsv4_backend_table b{};
        b.struct_size = sizeof b;
        b.devices = [](void* self, const dsv4_device_info** out, std::uint32_t* count) noexcept {
            return contain([&] {
                auto list = backend(self).devices();
                *out = list.data();
                *count = std::uint32_t(list.size());
            });
        };
        b.supports = [](void* self, dsv4_str p) noexcept {
            return contain([&] { backend(self).supports(program::decode(view(p))); });
        };
        b.state_layouts = [](void* self, dsv4_str p, dsv4_state_layout* out, std::uint32_t capacity,
                             std::uint32_t* count) noexcept {
            return contain([&] {
                auto list = backend(self).state_layouts(program::decode(view(p)));
                *count = std::uint32_t(list.size());
                for (std::size_t i = 0; i < list.size() && i < capacity; ++i) out[i] = list[i];
            });
        };
        b.unique_id = [](void* self, std::uint8_t* out, std::uint32_t* bytes) noexcept {
            return contain([&] {
                auto id = backend(self).unique_id();
                if (id.size() > 256) throw Failure(Code::internal, "a communicator id has more than 256 bytes");
                std::copy(id.begin(), id.end(), out);
                *bytes = std::uint32_t(id.size());
            });
        };
        b.open = [](void* self, const dsv4_session_config* config, dsv4_session** out) noexcept {
            return contain([&] {
                auto h = std::make_unique<SessionHolder>();
                h->session = backend(self).open(*config);
                *out = reinterpret_cast<dsv4_session*>(h.release());
            });
        };
        b.close = [](dsv4_session* s) noexcept { delete &holder(s); };
        b.weights_announce = [](dsv4_session* s, const dsv4_weight* weights, std::uint32_t count) noexcept {
            return contain([&] { session(s).weights_announce({weights, count}); });
        };
        b.stage = [](dsv4_session* s, std::uint64_t bytes, void** out) noexcept {
            return contain([&] { *out = session(s).stage(bytes); });
        };
        b.weight = [](dsv4_session* s, std::uint32_t index, std::uint32_t part, dsv4_str data,
                      dsv4_str scale) noexcept {
            return contain([&] { session(s).weight(index, part, view(data), view(scale)); });
        };
        b.weights_done = [](dsv4_session* s) noexcept { return contain([&] { session(s).weights_done(); }); };
        b.state_alloc = [](dsv4_session* s, dsv4_str p, const dsv4_state_pool* pools, std::uint32_t count,
                           std::uint32_t slots) noexcept {
            return contain([&] { session(s).state_alloc(program::decode(view(p)), {pools, count}, slots); });
        };
        b.compile = [](dsv4_session* s, dsv4_str p, const dsv4_compile_options* options,
                       dsv4_executable** out) noexcept {
            return contain([&] {
                auto executable = session(s).compile(program::decode(view(p)), *options);
                holder(s).executables.push_back(std::move(executable));
                *out = reinterpret_cast<dsv4_executable*>(holder(s).executables.back().get());
            });
        };
        b.executable_release = [](dsv4_session* s, dsv4_executable* e) noexcept {
            std::erase_if(holder(s).executables,
                          [&](const auto& x) { return x.get() == reinterpret_cast<Executable*>(e); });
        };
        b.submit = [](dsv4_session* s, const dsv4_work* works, std::uint32_t count, dsv4_ticket* out) noexcept {
            return contain([&] {
                std::vector<Work> list(count);
                for (std::uint32_t i = 0; i < count; ++i)
                    list[i] = {reinterpret_cast<Executable*>(works[i].executable), works[i].batch};
                *out = session(s).submit(list);
            });
        };
        b.supply = [](dsv4_session* s, dsv4_ticket ticket, std::uint32_t work, const std::uint32_t* words,
                      std::uint64_t count) noexcept {
            return contain([&] { session(s).supply(ticket, work, {words, count}); });
        };
        b.poll = [](dsv4_session* s, dsv4_ticket ticket) noexcept -> std::int32_t { return session(s).poll(ticket); };
        b.wait = [](dsv4_session* s, dsv4_ticket ticket, std::uint64_t timeout_us,
                    const dsv4_ticket_result** out) noexcept {
            return contain([&] { *out = &session(s).wait(ticket, timeout_us); });
        };
        b.ticket_release = [](dsv4_session* s, dsv4_ticket ticket) noexcept { session(s).ticket_release(ticket); };
        b.state_export = [](dsv4_session* s, const dsv4_transfer* transfer, std::uint64_t* needed,
                            dsv4_ticket* out) noexcept {
            return contain([&] { *out = session(s).state_export(*transfer, needed); });
        };
        b.state_import = [](dsv4_session* s, const dsv4_transfer* transfer, dsv4_ticket* out) noexcept {
            return contain([&] { *out = session(s).state_import(*transfer); });
        };
        b.memory = [](dsv4_session* s, dsv4_memory_report* out) noexcept {
            return contain([&] { copy_out(out, session(s).memory()); });
        };
        b.copy_rate = [](dsv4_session* s, std::uint64_t bytes, double* out) noexcept {
            return contain([&] { *out = session(s).copy_rate(bytes); });
        };
        b.kernels = [](dsv4_session* s, const dsv4_kernel_use** out, std::uint32_t* count) noexcept {
            return contain([&] {
                auto list = session(s).kernels();
                *out = list.data();
                *count = std::uint32_t(list.size());
            });
        };
        return b;
    }();
    return t;
}

} // namespace dsv4::sdk
