// Loading the plugin, and its table as a few C++ calls.
#include "client.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "plugins/backend-cpu/formats/bf16.hpp"

namespace dsv4::test {
namespace {

const char* option_value(const dsv4_options* options) { return reinterpret_cast<const char*>(options); }

dsv4_error* option_string(const dsv4_options* options, dsv4_str name, dsv4_str* out) {
    if (sdk::view(name) != "accumulate") return sdk::make_error({Code::not_found, "no such option", {}});
    *out = sdk::str(option_value(options));
    return nullptr;
}

// Threads made for the call: slow, and as unordered as a pool.
void parallel_for(void* ctx, std::uint32_t count, void (*body)(void*, std::uint32_t), void* arg) {
    static thread_local bool nested = false;
    const unsigned threads = nested ? 1 : *static_cast<unsigned*>(ctx);
    std::atomic<std::uint32_t> next{0};
    const auto work = [&] {
        nested = true;
        for (std::uint32_t i; (i = next.fetch_add(1)) < count;) body(arg, i);
        nested = false;
    };
    if (threads <= 1 || count < 64) { // thread creation would dominate small calls
        const bool outer = nested;
        for (std::uint32_t i = count; i-- > 0;) body(arg, i); // backwards: no kernel may rely on the order
        nested = outer;
        return;
    }
    std::vector<std::thread> pool;
    for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work);
    work();
    for (std::thread& t : pool) t.join();
}

} // namespace

const dsv4_plugin& Plugin::descriptor() {
    void* library = dlopen(DSV4_PLUGIN_DIR "/backend-cpu.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    const auto entry = reinterpret_cast<dsv4_plugin_entry_fn>(dlsym(library, DSV4_PLUGIN_ENTRY_SYMBOL));
    if (!entry) throw std::runtime_error("no entry symbol");
    return *entry(DSV4_ABI_MAJOR, DSV4_ABI_MINOR);
}

Plugin::Plugin(const std::string& accumulate, unsigned threads) : context_{accumulate, threads} {
    host_.struct_size = sizeof host_;
    host_.abi_major = DSV4_ABI_MAJOR;
    host_.abi_minor = DSV4_ABI_MINOR;
    host_.ctx = &context_.threads;
    host_.option_string = option_string;
    host_.log = [](void*, std::int32_t, dsv4_str) {};
    host_.monotonic_us = [](void*) { return std::uint64_t{0}; };
    host_.thread_count = [](void* ctx) { return *static_cast<std::uint32_t*>(ctx); };
    host_.parallel_for = parallel_for;
    instance_.struct_size = sizeof instance_;
    sdk::check(descriptor().create(&host_, DSV4_KIND_BACKEND,
                                   reinterpret_cast<const dsv4_options*>(context_.accumulate.c_str()), &instance_));
}

Plugin::~Plugin() { instance_.destroy(instance_.self); }

void Plugin::supports(const program::Program& p) const {
    const std::string bytes = program::encode(p);
    sdk::check(table().supports(self(), sdk::str(bytes)));
}

Client::Client(const Plugin& plugin) : plugin_(plugin) {
    dsv4_session_config config{};
    config.struct_size = sizeof config;
    config.group.world = 1;
    sdk::check(table().open(plugin.self(), &config, &session_));
}

Client::~Client() { table().close(session_); }

void Client::load(const std::vector<WeightData>& weights, bool staged) {
    std::vector<dsv4_weight> list;
    for (const WeightData& w : weights) {
        dsv4_weight a{};
        a.struct_size = sizeof a;
        a.name = sdk::str(w.name);
        a.format = w.format;
        std::copy(w.dims.begin(), w.dims.end(), a.dims);
        a.dim_count = static_cast<std::uint32_t>(w.dims.size());
        a.slice_dim = -1;
        a.parts = static_cast<std::uint32_t>(w.parts.size());
        list.push_back(a);
    }
    sdk::check(table().weights_announce(session_, list.data(), static_cast<std::uint32_t>(list.size())));
    for (std::uint32_t i = 0; i < weights.size(); ++i)
        for (std::uint32_t part = 0; part < weights[i].parts.size(); ++part) {
            const auto& [data, scale] = weights[i].parts[part];
            const char* at = reinterpret_cast<const char*>(data.data());
            const char* scale_at = reinterpret_cast<const char*>(scale.data());
            if (staged) {
                void* memory = nullptr;
                sdk::check(table().stage(session_, data.size() + scale.size(), &memory));
                std::memcpy(memory, data.data(), data.size());
                if (!scale.empty()) std::memcpy(static_cast<char*>(memory) + data.size(), scale.data(), scale.size());
                at = static_cast<const char*>(memory);
                scale_at = at + data.size();
            }
            sdk::check(table().weight(session_, i, part, {at, data.size()}, {scale_at, scale.size()}));
        }
    sdk::check(table().weights_done(session_));
}

void Client::allocate(const program::Program& program, std::uint32_t slots, std::int64_t positions) {
    const std::string bytes = program::encode(program);
    dsv4_state_layout layouts[DSV4_STATE_KIND_COUNT];
    std::uint32_t count = 0;
    sdk::check(table().state_layouts(plugin_.self(), sdk::str(bytes), layouts, DSV4_STATE_KIND_COUNT, &count));
    std::vector<dsv4_state_pool> pools;
    pages_.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
        const dsv4_state_layout& l = layouts[i];
        if (l.positions_per_page == 0) continue;
        const auto per_slot = static_cast<std::uint32_t>((positions + l.positions_per_page - 1) / l.positions_per_page);
        pools.push_back({l.kind, per_slot * slots});
        per_page_[l.kind] = l.positions_per_page;
        auto& of_kind = pages_[l.kind];
        of_kind.resize(slots);
        const std::uint32_t total = per_slot * slots;
        for (std::uint32_t n = 0; n < total; ++n)
            of_kind[n % slots].push_back(static_cast<std::int32_t>(total - 1 - n));
    }
    sdk::check(
        table().state_alloc(session_, sdk::str(bytes), pools.data(), static_cast<std::uint32_t>(pools.size()), slots));
}

dsv4_executable* Client::compile(const program::Program& program, std::uint32_t rows, std::uint32_t slots) {
    const std::string bytes = program::encode(program);
    const dsv4_compile_options options{sizeof(dsv4_compile_options), rows, slots};
    dsv4_executable* out = nullptr;
    sdk::check(table().compile(session_, sdk::str(bytes), &options, &out));
    return out;
}

dsv4_ticket Client::submit(const std::vector<Item>& items) {
    std::vector<dsv4_batch> batches(items.size());
    std::vector<dsv4_work> works;
    std::vector<std::vector<dsv4_batch_slot>> slots(items.size());
    std::vector<std::vector<dsv4_tensor>> inputs(items.size()), outputs(items.size());
    std::vector<std::unique_ptr<std::vector<dsv4_page_table>>> tables;
    std::vector<std::unique_ptr<std::vector<std::int32_t>>> ids;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const Item& item = items[i];
        for (const SlotPlan& plan : item.slots) {
            dsv4_batch_slot s{};
            s.slot = plan.slot;
            s.flags = plan.reset ? DSV4_SLOT_RESET : 0;
            s.committed = plan.committed;
            s.sampling = plan.sampling;
            s.prompt_ids = plan.prompt.data();
            s.prompt_count = plan.prompt.size();
            s.generated_ids = plan.generated.data();
            s.generated_count = plan.generated.size();
            auto& list = *tables.emplace_back(std::make_unique<std::vector<dsv4_page_table>>());
            for (const auto& [kind, of_kind] : pages_) {
                if (plan.slot < 0 || static_cast<std::size_t>(plan.slot) >= of_kind.size()) continue;
                auto copy = of_kind[static_cast<std::size_t>(plan.slot)];
                const auto hidden = item.hidden_below.find(kind);
                std::int64_t first = 0;
                if (hidden != item.hidden_below.end()) {
                    first = std::min<std::int64_t>(hidden->second / per_page_.at(kind),
                                                   static_cast<std::int64_t>(copy.size()));
                    copy.erase(copy.begin(), copy.begin() + first);
                }
                auto& kept = *ids.emplace_back(std::make_unique<std::vector<std::int32_t>>(std::move(copy)));
                list.push_back({kind, static_cast<std::uint32_t>(kept.size()), first, kept.data()});
            }
            s.tables = list.data();
            s.table_count = static_cast<std::uint32_t>(list.size());
            slots[i].push_back(s);
        }
        for (const auto& [name, bytes] : item.inputs)
            inputs[i].push_back({sdk::str(name), const_cast<std::uint8_t*>(bytes.data()), bytes.size()});
        if (item.outputs)
            for (auto& [name, bytes] : *item.outputs)
                outputs[i].push_back({sdk::str(name), bytes.data(), bytes.size()});
        dsv4_batch& b = batches[i];
        b.struct_size = sizeof b;
        b.row_bytes = sizeof(dsv4_row);
        b.slot_bytes = sizeof(dsv4_batch_slot);
        b.row_count = static_cast<std::uint32_t>(item.rows.size());
        b.slot_count = static_cast<std::uint32_t>(slots[i].size());
        b.rows = item.rows.data();
        b.slots = slots[i].data();
        b.inputs = inputs[i].data();
        b.input_count = static_cast<std::uint32_t>(inputs[i].size());
        b.outputs = outputs[i].data();
        b.output_count = static_cast<std::uint32_t>(outputs[i].size());
        works.push_back({item.executable, &b});
    }
    dsv4_ticket ticket = 0;
    sdk::check(table().submit(session_, works.data(), static_cast<std::uint32_t>(works.size()), &ticket));
    return ticket;
}

TicketOutput Client::wait(dsv4_ticket ticket) {
    const dsv4_ticket_result* result = nullptr;
    dsv4_error* error = table().wait(session_, ticket, 120'000'000, &result);
    if (error) {
        const Error e = sdk::take_error(error);
        table().ticket_release(session_, ticket);
        throw Failure(e);
    }
    TicketOutput out;
    for (std::uint32_t i = 0; i < result->result_count; ++i) {
        const dsv4_result& r = result->results[i];
        out.tokens.push_back(
            {r.slot, r.token, r.position, r.flags, r.accepted, r.logprob, {r.top, r.top + r.top_count}});
    }
    for (std::uint32_t i = 0; i < result->error_count; ++i) {
        const dsv4_row_error& e = result->errors[i];
        out.errors.push_back({e.slot, e.row, std::string(sdk::view(e.op)), std::string(sdk::view(e.message))});
    }
    table().ticket_release(session_, ticket);
    return out;
}

std::vector<std::uint8_t> bf16_bytes(const std::vector<float>& values) {
    std::vector<std::uint16_t> bits;
    for (const float v : values) bits.push_back(cpu::bf16_encode(v));
    return bytes_of(bits);
}

std::vector<float> from_bf16(const std::vector<std::uint8_t>& bytes) {
    std::vector<float> out;
    for (const std::uint16_t bits : values_of<std::uint16_t>(bytes)) out.push_back(cpu::bf16_decode(bits));
    return out;
}

} // namespace dsv4::test
