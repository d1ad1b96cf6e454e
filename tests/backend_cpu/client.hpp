// A host for tests: loads the plugin by its C entry point and drives sessions through the C table alone.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dsv4/backend.h"
#include "dsv4/host.h"
#include "dsv4/plugin.h"
#include "dsv4/sdk/error.hpp"
#include "dsv4/sdk/program.hpp"

namespace dsv4::test {

// The library and one instance of it, with `accumulate` as its only option. Threads: size of the host's pool.
class Plugin {
  public:
    explicit Plugin(const std::string& accumulate, unsigned threads = 2);
    ~Plugin();
    Plugin(const Plugin&) = delete;

    static const dsv4_plugin& descriptor();
    const dsv4_backend_table& table() const { return *static_cast<const dsv4_backend_table*>(instance_.table); }
    void* self() const { return instance_.self; }
    void supports(const program::Program& p) const; // throws Failure

  private:
    struct Context {
        std::string accumulate;
        unsigned threads;
    };
    Context context_;
    dsv4_host host_{};
    dsv4_instance instance_{};
};

struct WeightData {
    std::string name;
    dsv4_format format;
    std::vector<std::int64_t> dims;
    std::vector<std::pair<std::vector<std::uint8_t>, std::vector<std::uint8_t>>> parts; // data, scale
};

// What a batch says about one slot; page tables are filled in by Client, which gives each slot its own run of pages.
struct SlotPlan {
    std::int32_t slot = 0;
    bool reset = false;
    std::int64_t committed = 0;
    const dsv4_sampling* sampling = nullptr;
    std::vector<std::int32_t> prompt{}, generated{};
};

struct Token {
    std::int32_t slot, token;
    std::int64_t position;
    std::uint32_t flags;
    std::int32_t accepted;
    float logprob;
    std::vector<dsv4_top_logprob> top;
};
struct TicketOutput {
    std::vector<Token> tokens;
    struct RowError {
        std::int32_t slot, row;
        std::string op, message;
    };
    std::vector<RowError> errors;
};

class Client {
  public:
    explicit Client(const Plugin& plugin);
    ~Client();
    Client(const Client&) = delete;

    void load(const std::vector<WeightData>& weights, bool staged = true);
    // Pools that hold `positions` positions of every slot; page ids are handed out in a scrambled order.
    void allocate(const program::Program& program, std::uint32_t slots, std::int64_t positions);
    dsv4_executable* compile(const program::Program& program, std::uint32_t rows = 512, std::uint32_t slots = 1024);

    using Inputs = std::map<std::string, std::vector<std::uint8_t>>;
    using Outputs = std::map<std::string, std::vector<std::uint8_t>>; // sized by the caller
    struct Item {
        dsv4_executable* executable;
        std::vector<SlotPlan> slots;
        std::vector<dsv4_row> rows;
        Inputs inputs{};
        Outputs* outputs = nullptr;
        // Positions below this have no pages in the tables (slots' boundary tests); one a kind.
        std::map<std::int32_t, std::int64_t> hidden_below{};
    };
    dsv4_ticket submit(const std::vector<Item>& items);
    TicketOutput wait(dsv4_ticket ticket); // and releases
    TicketOutput run(const Item& item) { return wait(submit({item})); }

    dsv4_session* session() const { return session_; }
    const dsv4_backend_table& table() const { return plugin_.table(); }
    std::vector<std::int32_t> pages(std::int32_t kind, std::int32_t slot) const {
        return pages_.at(kind)[static_cast<std::size_t>(slot)];
    }

  private:
    const Plugin& plugin_;
    dsv4_session* session_ = nullptr;
    std::map<std::int32_t, std::vector<std::vector<std::int32_t>>> pages_; // kind -> slot -> page ids
    std::map<std::int32_t, std::uint32_t> per_page_;
};

template <class T> std::vector<std::uint8_t> bytes_of(const std::vector<T>& values) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(values.data());
    return {p, p + values.size() * sizeof(T)};
}
template <class T> std::vector<T> values_of(const std::vector<std::uint8_t>& bytes) {
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!out.empty()) __builtin_memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}
std::vector<std::uint8_t> bf16_bytes(const std::vector<float>& values);
std::vector<float> from_bf16(const std::vector<std::uint8_t>& bytes);

} // namespace dsv4::test
