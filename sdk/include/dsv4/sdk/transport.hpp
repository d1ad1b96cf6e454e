// Base classes of a transport: Transport opens channels, Channel carries messages and bulk bytes. See dsv4/transport.h.
#pragma once

#include "dsv4/backend.h"
#include "dsv4/sdk/host.hpp"
#include "dsv4/sdk/plugin.hpp"
#include "dsv4/transport.h"

#include <memory>
#include <optional>
#include <string_view>

namespace dsv4::sdk {

// One thread. Errors are Failure exceptions: deadline when timeout_us passes. The destructor closes.
class Channel {
  public:
    struct Message {
        std::uint32_t type;
        std::string_view payload; // lives until the next call on the channel
    };
    virtual ~Channel() = default;
    virtual void send(std::uint32_t type, std::string_view payload, std::uint64_t timeout_us) = 0;
    virtual Message receive(std::uint64_t timeout_us) = 0;
    virtual void put(dsv4_memory_kind memory_kind, const void* memory, std::uint64_t bytes,
                     std::uint64_t timeout_us) = 0;
    virtual void get(dsv4_memory_kind memory_kind, void* memory, std::uint64_t bytes, std::uint64_t timeout_us) = 0;
    // Why the channel is down; nothing while it is up.
    virtual std::optional<Error> health() = 0;
};

// Control thread.
class Transport {
  public:
    using Interface = Transport;
    static constexpr std::int32_t kind = DSV4_KIND_TRANSPORT;
    virtual ~Transport() = default;
    virtual std::unique_ptr<Channel> open(const dsv4_channel_config& config) = 0;

    static const dsv4_transport_table& table();
};

namespace detail {
inline Transport& transport(void* self) { return *static_cast<Transport*>(self); }
inline Channel& channel(dsv4_channel* c) { return *reinterpret_cast<Channel*>(c); }
} // namespace detail

inline const dsv4_transport_table& Transport::table() {
    using namespace detail;
    static const dsv4_transport_table t = [] {
        dsv4_transport_table x{};
        x.struct_size = sizeof x;
        x.open = [](void* self, const dsv4_channel_config* config, dsv4_channel** out) noexcept {
            return contain([&] { *out = reinterpret_cast<dsv4_channel*>(transport(self).open(*config).release()); });
        };
        x.close = [](dsv4_channel* c) noexcept { delete &channel(c); };
        x.send = [](dsv4_channel* c, std::uint32_t type, dsv4_str payload, std::uint64_t timeout_us) noexcept {
            return contain([&] { channel(c).send(type, view(payload), timeout_us); });
        };
        x.receive = [](dsv4_channel* c, std::uint64_t timeout_us, std::uint32_t* type, dsv4_str* payload) noexcept {
            return contain([&] {
                const auto message = channel(c).receive(timeout_us);
                *type = message.type;
                *payload = str(message.payload);
            });
        };
        x.put = [](dsv4_channel* c, std::int32_t memory_kind, const void* memory, std::uint64_t bytes,
                   std::uint64_t timeout_us) noexcept {
            return contain([&] { channel(c).put(dsv4_memory_kind(memory_kind), memory, bytes, timeout_us); });
        };
        x.get = [](dsv4_channel* c, std::int32_t memory_kind, void* memory, std::uint64_t bytes,
                   std::uint64_t timeout_us) noexcept {
            return contain([&] { channel(c).get(dsv4_memory_kind(memory_kind), memory, bytes, timeout_us); });
        };
        x.health = [](dsv4_channel* c) noexcept {
            return contain([&] {
                if (auto down = channel(c).health()) throw Failure(std::move(*down));
            });
        };
        return x;
    }();
    return t;
}

} // namespace dsv4::sdk
