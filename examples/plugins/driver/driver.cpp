// Drives each example plugin through its whole life, errors included, with a minimal host of its own.
//
//   driver DIRECTORY [bench]
#include <dsv4/api.h>
#include <dsv4/host.h>
#include <dsv4/parser.h>
#include <dsv4/plugin.h>
#include <dsv4/sdk/error.hpp>
#include <dsv4/sdk/program.hpp>

#include <dsv4/backend.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

namespace program = dsv4::program;
using dsv4::sdk::str;
using dsv4::sdk::view;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                             \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

void must(dsv4_error* e, int line) {
    if (!e) return;
    std::fprintf(stderr, "line %d: failed: %s\n", line, dsv4::sdk::take_error(e).message.c_str());
    std::exit(1);
}
void must_fail(dsv4_error* e, std::int32_t code, std::string_view part, int line) {
    if (!e) {
        std::fprintf(stderr, "line %d: no error where one was due\n", line);
        std::exit(1);
    }
    const auto got = dsv4::sdk::take_error(e);
    if (std::int32_t(got.code) == code && got.message.find(part) != std::string::npos) return;
    std::fprintf(stderr, "line %d: wrong error %d: %s\n", line, int(got.code), got.message.c_str());
    std::exit(1);
}
#define OK(call) must(call, __LINE__)
#define FAILS(call, code, part) must_fail(call, code, part, __LINE__)

} // namespace

// ---------------------------------------------------------------- the host

struct dsv4_options {
    std::map<std::string, std::string> texts;
    std::map<std::string, std::int64_t> numbers;
};

struct dsv4_request_handle {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<dsv4_event> events;
    std::deque<std::string> bytes; // what events point to
    std::deque<dsv4_token> tokens;
    bool over = false;
};

namespace {

dsv4_error* failure(dsv4::Code code, std::string message) {
    return dsv4::sdk::make_error({code, std::move(message), {}});
}

// Echoes the prompt byte by byte; a prompt that starts with "slow" never ends by itself, "full" is refused.
struct Generator {
    std::atomic<int> open{0}, calls{0}, cancelled{0};
};

void finish(dsv4_request_handle& r, std::int32_t reason) {
    if (r.over) return;
    dsv4_event e{};
    e.struct_size = sizeof e;
    e.kind = DSV4_EVENT_FINISHED;
    e.reason = reason;
    r.events.push_back(e);
    r.over = true;
}

dsv4_error* generate_submit(void* ctx, const dsv4_generate_request* request, dsv4_request_handle** out) {
    auto& g = *static_cast<Generator*>(ctx);
    ++g.calls;
    CHECK(DSV4_HAS(request, n) && request->n == 1 && !request->chat && !request->prompt_ids);
    const auto prompt = std::string(view(request->prompt_text));
    if (prompt == "full") return failure(dsv4::Code::exhausted, "the queue is full");
    ++g.open;
    auto* r = new dsv4_request_handle;
    dsv4_event e{};
    e.struct_size = sizeof e;
    e.kind = DSV4_EVENT_ACCEPTED;
    r->events.push_back(e);
    for (char c : prompt) {
        r->bytes.emplace_back(1, c);
        dsv4_token t{};
        t.id = c;
        t.bytes = str(r->bytes.back());
        t.logprob = NAN;
        r->tokens.push_back(t);
        e = {};
        e.struct_size = sizeof e;
        e.kind = DSV4_EVENT_TOKENS;
        e.tokens = &r->tokens.back();
        e.token_count = 1;
        r->events.push_back(e);
    }
    if (prompt.rfind("slow", 0) != 0) finish(*r, DSV4_REASON_STOP);
    *out = r;
    return nullptr;
}
dsv4_error* generate_next(void* ctx, dsv4_request_handle* r, std::uint64_t timeout_us, const dsv4_event** out) {
    ++static_cast<Generator*>(ctx)->calls;
    std::unique_lock lock(r->mutex);
    static thread_local dsv4_event current;
    *out = nullptr;
    if (!r->changed.wait_for(lock, std::chrono::microseconds(timeout_us), [&] { return !r->events.empty(); }))
        return nullptr;
    current = r->events.front();
    r->events.pop_front();
    *out = &current;
    return nullptr;
}
void generate_cancel(void* ctx, dsv4_request_handle* r) {
    auto& g = *static_cast<Generator*>(ctx);
    ++g.calls;
    ++g.cancelled;
    const std::lock_guard lock(r->mutex);
    finish(*r, DSV4_REASON_CANCELLED);
    r->changed.notify_all();
}
void generate_release(void* ctx, dsv4_request_handle* r) {
    auto& g = *static_cast<Generator*>(ctx);
    ++g.calls;
    --g.open;
    delete r;
}

std::uint64_t now_us(void*) {
    using namespace std::chrono;
    return std::uint64_t(duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count());
}

struct FakeHost {
    Generator generator;
    dsv4_generate_service service{};
    dsv4_host table{};
    FakeHost() {
        service.struct_size = sizeof service;
        service.submit = generate_submit;
        service.next = generate_next;
        service.cancel = generate_cancel;
        service.release = generate_release;
        table.struct_size = sizeof table;
        table.abi_major = DSV4_ABI_MAJOR;
        table.abi_minor = DSV4_ABI_MINOR;
        table.ctx = &generator;
        table.option_string = [](const dsv4_options* o, dsv4_str name, dsv4_str* out) -> dsv4_error* {
            auto it = o->texts.find(std::string(view(name)));
            if (it == o->texts.end()) return failure(dsv4::Code::not_found, "no option " + std::string(view(name)));
            *out = str(it->second);
            return nullptr;
        };
        table.option_int = [](const dsv4_options* o, dsv4_str name, std::int64_t* out) -> dsv4_error* {
            auto it = o->numbers.find(std::string(view(name)));
            if (it == o->numbers.end()) return failure(dsv4::Code::not_found, "no option " + std::string(view(name)));
            *out = it->second;
            return nullptr;
        };
        table.option_float = [](const dsv4_options*, dsv4_str, double*) {
            return failure(dsv4::Code::not_found, "none");
        };
        table.option_bool = [](const dsv4_options*, dsv4_str, std::int32_t*) {
            return failure(dsv4::Code::not_found, "none");
        };
        table.log = [](void*, std::int32_t, dsv4_str) {};
        table.monotonic_us = table.unix_us = now_us;
        table.thread_count = [](void*) { return 1u; };
        table.parallel_for = [](void*, std::uint32_t n, void (*body)(void*, std::uint32_t), void* arg) {
            for (std::uint32_t i = 0; i < n; ++i) body(arg, i);
        };
        table.generate = &service;
    }
};

const dsv4_plugin& load(const std::string& directory, const std::string& name) {
    void* library = dlopen((directory + "/" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) std::fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    auto entry = reinterpret_cast<dsv4_plugin_entry_fn>(dlsym(library, DSV4_PLUGIN_ENTRY_SYMBOL));
    CHECK(entry);
    const auto* p = entry(DSV4_ABI_MAJOR, DSV4_ABI_MINOR);
    CHECK(p && p == entry(DSV4_ABI_MAJOR, DSV4_ABI_MINOR));
    CHECK(p->struct_size == sizeof *p && p->abi_major == DSV4_ABI_MAJOR && p->abi_minor <= DSV4_ABI_MINOR);
    CHECK(p->name == name && std::string_view(p->manifest_sha256).size() == 64 && p->create);
    return *p;
}

dsv4_instance instance(const dsv4_plugin& p, const FakeHost& host, std::int32_t kind, const dsv4_options& options) {
    dsv4_instance i{};
    i.struct_size = sizeof i;
    FAILS(p.create(&host.table, kind == DSV4_KIND_SPEC ? DSV4_KIND_ENGINE : DSV4_KIND_SPEC, &options, &i),
          DSV4_UNSUPPORTED, "");
    CHECK(!i.self && !i.table && !i.destroy);
    OK(p.create(&host.table, kind, &options, &i));
    CHECK(i.self && i.table && i.destroy);
    return i;
}

// ---------------------------------------------------------------- parsers

void run_parser(const std::string& directory, const std::string& name) {
    FakeHost host;
    const auto& plugin = load(directory, name);
    {
        dsv4_instance none{};
        none.struct_size = sizeof none;
        const dsv4_options empty;
        FAILS(plugin.create(&host.table, DSV4_KIND_PARSER, &empty, &none), DSV4_NOT_FOUND, "stop_token");
        CHECK(!none.self);
    }
    for (const std::string stop : {"", "<eos>"}) {
        const dsv4_options options{{{"stop_token", stop}}, {}};
        const auto i = instance(plugin, host, DSV4_KIND_PARSER, options);
        const auto& t = *static_cast<const dsv4_parser_table*>(i.table);
        const dsv4_str* names = nullptr;
        std::uint32_t count = 9;
        OK(t.control_names(i.self, &names, &count));
        CHECK(count == (stop.empty() ? 0u : 1u) && (count == 0 || view(names[0]) == stop));

        dsv4_chat_request request{};
        request.struct_size = sizeof request;
        request.thinking = request.continue_final_message = request.default_thinking = DSV4_UNSAID;
        const dsv4_prompt* prompt = nullptr;
        request.messages = str(
            R"( [{"role":"system","content":"no"}, {"content":"h\u00e9\ud83d\ude00\n","role":"user","x":[1,{"y":null}]},
            {"role":"assistant","content":null},{"role":"user","content":[{"type":"text","text":"a"},{},{"type":"text","text":"b"}]}] )");
        OK(t.encode(i.self, &request, &prompt));
        CHECK(prompt->segment_count == 3 && prompt->stop_count == count);
        CHECK(view(prompt->segments[0].text) == "h\xc3\xa9\xf0\x9f\x98\x80\n" &&
              prompt->segments[0].kind == DSV4_SEGMENT_TEXT);
        CHECK(view(prompt->segments[1].text) == "a" && view(prompt->segments[2].text) == "b");
        t.prompt_release(i.self, prompt);
        prompt = nullptr;
        std::string deep = R"([{"role":"user","content":"a","x":)" + std::string(100000, '[');
        for (std::string bad :
             {"", "[]", "{}", "[", R"([{"role":"user","content":"a"})", R"([{"content":"a"}])",
              R"([{"role":"user","content":"\ud800"}])", R"([{"role":"user","content":"a"}] x)", deep.c_str()}) {
            request.messages = str(bad);
            FAILS(t.encode(i.self, &request, &prompt), DSV4_INVALID, "messages");
            CHECK(!prompt);
        }
        if (DSV4_HAS(&t, encode_messages)) FAILS(t.encode_messages(i.self, str("{}"), &prompt), DSV4_UNSUPPORTED, "");

        const std::string bytes = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff\xc3(\xe2\x82z\xed\xa0\x80\xf0\x9f\x98";
        std::string whole;
        for (std::size_t step = 1; step <= bytes.size(); ++step) {
            dsv4_completion_options o{};
            o.struct_size = sizeof o;
            dsv4_completion_stream* stream = nullptr;
            OK(t.stream_open(i.self, &o, &stream));
            std::string text;
            auto sink = [](void* arg, const dsv4_delta* d) {
                CHECK(d->kind == DSV4_DELTA_CONTENT && d->text.size);
                static_cast<std::string*>(arg)->append(d->text.data, d->text.size);
            };
            for (std::size_t at = 0; at < bytes.size(); at += step) {
                const dsv4_piece pieces[] = {{str(std::string_view(bytes).substr(at, step)), at % 3 == 0},
                                             {{nullptr, 0}, 0}};
                OK(t.stream_feed(stream, pieces, 2, sink, &text));
            }
            CHECK(text.size() < bytes.size() * 3 && text.substr(0, 10) == bytes.substr(0, 10));
            dsv4_completion_end end{};
            end.struct_size = sizeof end;
            OK(t.stream_finish(stream, step % 2 ? DSV4_STOPPED_LENGTH : DSV4_STOPPED_EOS, sink, &text, &end));
            CHECK(end.finish == (step % 2 ? DSV4_FINISH_LENGTH : DSV4_FINISH_STOP) && end.complete_calls == 0);
            t.stream_close(stream);
            if (step == 1) whole = text;
            CHECK(text == whole);
        }
        const std::string r = "\xef\xbf\xbd";
        CHECK(whole == "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" + r + r + "(" + r + "z" + r + r + r + r);
        dsv4_completion_stream* unused = nullptr; // closed without a finish
        dsv4_completion_options o{};
        o.struct_size = sizeof o;
        OK(t.stream_open(i.self, &o, &unused));
        t.stream_close(unused);
        i.destroy(i.self);
    }
}

// ---------------------------------------------------------------- backend

constexpr std::int64_t vocab = 100;

std::string serving(bool with_mask) {
    program::Program p;
    p.name = "tiny";
    const auto table = p.weight("embed", program::formats::bf16, {vocab, 8});
    const auto w = p.weight("layers.0.w", program::formats::fp8_block128, {130, 8});
    const auto kv = p.weight("layers.0.norm", program::formats::f32, {8});
    const auto s0 = p.state(DSV4_STATE_WINDOW, 0, {8}, DSV4_BF16);
    const auto x = p.value("x", DSV4_BF16, {program::rows, 8});
    const auto y = p.value("y", DSV4_BF16, {program::rows, 130});
    const auto logits = p.value("logits", DSV4_F32, {program::logit_rows, vocab});
    auto& e = p.op("embed");
    e.weights = {table}, e.outputs = {x};
    auto& k = p.op("kv_store");
    k.inputs = {x}, k.weights = {kv}, k.states = {s0};
    k.attributes["eps"] = 1e-6;
    k.attributes["rope_dim"] = std::int64_t(4);
    auto& l = p.op("linear");
    l.inputs = {x}, l.weights = {w}, l.outputs = {y};
    l.attributes["quant"] = std::string("none");
    auto& h = p.op("head");
    h.inputs = {x}, h.weights = {table}, h.outputs = {logits};
    auto last = logits;
    if (with_mask) {
        const auto masked = p.value("masked", DSV4_F32, {program::logit_rows, vocab});
        auto& m = p.op("mask");
        m.inputs = {logits}, m.outputs = {masked};
        last = masked;
    }
    for (const char* op : {"sample", "verify"}) {
        const auto a = p.value(std::string(op) + ".a", DSV4_I32, {program::logit_rows});
        const auto b = p.value(std::string(op) + ".b", op[0] == 's' ? DSV4_F32 : DSV4_I32, {program::logit_rows});
        auto& o = p.op(op);
        o.inputs = {last}, o.outputs = {a, b};
    }
    p.outputs = {logits, y};
    return program::encode(p);
}

std::string drafting() {
    program::Program p;
    p.name = "draft";
    const auto logits = p.value("logits", DSV4_F32, {program::logit_rows, vocab});
    const auto x = p.value("x", DSV4_F32, {program::logit_rows, 4});
    const auto d = p.value("d", DSV4_I32, {program::logit_rows});
    const auto c = p.value("c", DSV4_F32, {program::logit_rows});
    auto& o = p.op("markov_step");
    o.inputs = {logits, x}, o.outputs = {d, c};
    o.attributes["greedy"] = std::int64_t(1);
    p.inputs = {logits, x};
    return program::encode(p);
}

struct Step {
    std::vector<dsv4_row> rows;
    std::vector<dsv4_batch_slot> slots;
    std::vector<dsv4_tensor> inputs, outputs;
    dsv4_batch batch() const {
        dsv4_batch b{};
        b.struct_size = sizeof b;
        b.row_bytes = sizeof(dsv4_row);
        b.slot_bytes = sizeof(dsv4_batch_slot);
        b.rows = rows.data(), b.row_count = std::uint32_t(rows.size());
        b.slots = slots.data(), b.slot_count = std::uint32_t(slots.size());
        b.inputs = inputs.data(), b.input_count = std::uint32_t(inputs.size());
        b.outputs = outputs.data(), b.output_count = std::uint32_t(outputs.size());
        return b;
    }
    void slot(std::int32_t id, std::uint32_t flags = 0, const dsv4_sampling* sampling = nullptr,
              std::int64_t committed = 0) {
        dsv4_batch_slot s{};
        s.slot = id, s.flags = flags, s.sampling = sampling, s.committed = committed;
        slots.push_back(s);
    }
    void row(std::int32_t input, std::int32_t token, std::uint32_t flags, std::int64_t position) {
        rows.push_back({std::int32_t(slots.size()) - 1, input, token, flags, position});
    }
};

dsv4_sampling sampling() {
    dsv4_sampling s{};
    s.struct_size = sizeof s;
    s.top_p = s.repetition_penalty = 1;
    s.logprobs = -1;
    s.max_length = INT64_MAX;
    return s;
}

void run_backend(const std::string& directory, bool bench) {
    FakeHost host;
    const auto& plugin = load(directory, "backend-null");
    dsv4_options options{{}, {{"memory_gib", 0}}};
    dsv4_instance none{};
    none.struct_size = sizeof none;
    FAILS(plugin.create(&host.table, DSV4_KIND_BACKEND, &options, &none), DSV4_INVALID, "memory_gib");
    options.numbers["memory_gib"] = 1;
    const auto i = instance(plugin, host, DSV4_KIND_BACKEND, options);
    const auto& t = *static_cast<const dsv4_backend_table*>(i.table);

    const dsv4_device_info* devices = nullptr;
    std::uint32_t count = 0;
    OK(t.devices(i.self, &devices, &count));
    CHECK(count == 1 && devices[0].memory_bytes == std::uint64_t(1) << 30 && devices[0].unusable.size == 0);

    const auto target = serving(false), masking = serving(true), draft = drafting();
    OK(t.supports(i.self, str(target)));
    OK(t.supports(i.self, str(draft)));
    FAILS(t.supports(i.self, str("garbage")), DSV4_CORRUPT, "DSV4PROG");
    for (auto [name, version, key] : {std::tuple{"teleport", 1, ""}, {"norm", 2, ""}, {"norm", 1, "colour"}}) {
        program::Program p;
        auto& op = p.op(name, std::uint32_t(version));
        if (*key) op.attributes[key] = 1.0;
        FAILS(t.supports(i.self, str(program::encode(p))), DSV4_UNSUPPORTED, *key ? key : name);
    }
    dsv4_state_layout layout[2] = {};
    OK(t.state_layouts(i.self, str(target), layout, 0, &count));
    CHECK(count == 1);
    OK(t.state_layouts(i.self, str(target), layout, 2, &count));
    CHECK(count == 1 && layout[0].kind == DSV4_STATE_WINDOW && layout[0].page_bytes == 64 * 8 * 2);

    dsv4_session_config config{};
    config.struct_size = sizeof config;
    config.group.world = 1;
    dsv4_session* s = nullptr;
    config.device = 3;
    FAILS(t.open(i.self, &config, &s), DSV4_INVALID, "3");
    config.device = 0;
    config.group.world = 2;
    FAILS(t.open(i.self, &config, &s), DSV4_UNSUPPORTED, "rank");
    config.group.world = 1;
    OK(t.open(i.self, &config, &s));

    // weights
    auto weight = [](const char* name, dsv4_format format, std::vector<std::int64_t> dims, std::uint32_t parts) {
        dsv4_weight w{};
        w.struct_size = sizeof w;
        w.name = str(name);
        w.format = format;
        std::copy(dims.begin(), dims.end(), w.dims);
        w.dim_count = std::uint32_t(dims.size());
        w.parts = parts;
        return w;
    };
    dsv4_weight weights[] = {weight("embed", program::formats::bf16, {vocab, 8}, 1),
                             weight("layers.0.w", program::formats::fp8_block128, {130, 8}, 1),
                             weight("layers.0.norm", program::formats::f32, {8}, 1),
                             weight("experts", program::formats::nvfp4_block16, {3, 5, 40}, 3)};
    weights[3].parts = 2;
    FAILS(t.weights_announce(s, weights, 4), DSV4_INVALID, "experts");
    weights[3].parts = 3;
    FAILS(t.weights_done(s), DSV4_INVALID, "announced");
    OK(t.weights_announce(s, weights, 4));
    FAILS(t.weights_announce(s, weights, 4), DSV4_INVALID, "before");
    auto deliver = [&](std::uint32_t index, std::uint32_t part, std::uint64_t data, std::uint64_t scale) {
        void* memory = nullptr;
        OK(t.stage(s, data + scale, &memory));
        std::memset(memory, 1, data + scale);
        const auto* bytes = static_cast<const char*>(memory);
        return t.weight(s, index, part, {bytes, data}, {bytes + data, scale});
    };
    FAILS(deliver(0, 0, vocab * 8, 0), DSV4_INVALID, "embed");
    FAILS(deliver(9, 0, 1, 0), DSV4_INVALID, "9");
    FAILS(deliver(0, 1, vocab * 16, 0), DSV4_INVALID, "part 1");
    OK(deliver(0, 0, vocab * 16, 0));
    FAILS(deliver(0, 0, vocab * 16, 0), DSV4_INVALID, "twice");
    FAILS(deliver(1, 0, 130 * 8, 1), DSV4_INVALID, "scales");
    OK(deliver(1, 0, 130 * 8, 2));
    OK(deliver(2, 0, 32, 0));
    OK(deliver(3, 2, 100, 5 * 3 + 4));
    OK(deliver(3, 0, 100, 5 * 3 + 4));
    FAILS(t.weights_done(s), DSV4_INVALID, "part 1 of weight 'experts'");
    OK(deliver(3, 1, 100, 5 * 3 + 4));
    const dsv4_compile_options compile_options{sizeof(dsv4_compile_options), 256, 64};
    dsv4_executable *run = nullptr, *run_masked = nullptr, *run_draft = nullptr;
    const dsv4_state_pool pool{DSV4_STATE_WINDOW, 4};
    FAILS(t.compile(s, str(target), &compile_options, &run), DSV4_INVALID, "state_alloc");
    OK(t.state_alloc(s, str(target), &pool, 1, 64));
    FAILS(t.compile(s, str(target), &compile_options, &run), DSV4_INVALID, "weights_done");
    OK(t.weights_done(s));
    OK(t.compile(s, str(target), &compile_options, &run));
    OK(t.compile(s, str(masking), &compile_options, &run_masked));
    OK(t.compile(s, str(draft), &compile_options, &run_draft));
    for (auto [name, rows] : {std::pair{"nobody", 8}, {"embed", 9}}) {
        program::Program p;
        p.weight(name, program::formats::bf16, {vocab, rows});
        dsv4_executable* no = nullptr;
        FAILS(t.compile(s, str(program::encode(p)), &compile_options, &no), DSV4_INVALID, name);
    }

    auto submit = [&](dsv4_executable* e, const Step& step) {
        const auto b = step.batch();
        const dsv4_work work{e, &b};
        dsv4_ticket ticket = 0;
        OK(t.submit(s, &work, 1, &ticket));
        CHECK(ticket);
        return ticket;
    };
    auto refused = [&](const Step& step, std::string_view part, int line) {
        const auto b = step.batch();
        const dsv4_work work{run, &b};
        dsv4_ticket ticket = 0;
        must_fail(t.submit(s, &work, 1, &ticket), DSV4_INVALID, part, line);
        CHECK(!ticket);
    };
    auto wait = [&](dsv4_ticket ticket) -> const dsv4_ticket_result& {
        const dsv4_ticket_result* r = nullptr;
        OK(t.wait(s, ticket, UINT64_MAX, &r));
        CHECK(t.poll(s, ticket) == 1 && r->result_bytes == sizeof(dsv4_result));
        return *r;
    };

    // prefill, then two decode tickets in flight with relative positions
    auto params = sampling();
    const std::int32_t stop = 14;
    params.stop_ids = &stop, params.stop_count = 1;
    params.logprobs = 2;
    Step prefill;
    prefill.slot(3, DSV4_SLOT_RESET, &params);
    for (int k = 0; k < 3; ++k) prefill.row(DSV4_INPUT_GIVEN, 8 + k, k == 2 ? DSV4_ROW_LOGITS : 0, k);
    std::vector<float> logits(vocab, 7.f);
    std::vector<std::uint16_t> ys(3 * 130, 7);
    prefill.outputs = {{str("logits"), logits.data(), vocab * 4}, {str("y"), ys.data(), 3 * 130 * 2}};
    const auto first = submit(run, prefill);
    CHECK(first == 1 && logits[0] == 0 && logits.back() == 0 && ys.back() == 0);
    Step decode;
    decode.slot(3);
    decode.row(DSV4_INPUT_LAST, 0, DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, 0);
    const auto second = submit(run, decode), third = submit(run, decode);
    const auto& r1 = wait(first);
    CHECK(r1.result_count == 1 && r1.error_count == 0 && r1.results[0].slot == 3 && r1.results[0].token == 11);
    CHECK(r1.results[0].position == 3 && r1.results[0].flags == 0 && r1.results[0].logprob == 0);
    CHECK(r1.results[0].top_count == 2 && r1.results[0].top[0].token == 11 && r1.results[0].top[1].token == 0);
    const auto& r2 = wait(second);
    CHECK(r2.results[0].token == 12 && r2.results[0].position == 4);
    const auto& r3 = wait(third);
    CHECK(r3.results[0].token == 13 && r3.results[0].position == 5);
    CHECK(r1.results[0].token == 11); // still there
    t.ticket_release(s, second);
    t.ticket_release(s, first);
    t.ticket_release(s, third);
    const dsv4_ticket_result* gone = nullptr;
    FAILS(t.wait(s, first, 0, &gone), DSV4_NOT_FOUND, "1");
    FAILS(t.wait(s, 99, 0, &gone), DSV4_NOT_FOUND, "99");
    const auto ends = submit(run, decode), after = submit(run, decode);
    CHECK(wait(ends).results[0].token == 14 && wait(ends).results[0].flags == DSV4_RESULT_FINISHED);
    CHECK(wait(after).result_count == 0 && wait(after).error_count == 0); // a finished record's rows are idle
    t.ticket_release(s, ends);
    t.ticket_release(s, after);

    // max_length: 4 prompt tokens of which one is new, finished when the sequence has 5
    auto limited = sampling();
    limited.max_length = 5;
    Step short_one;
    short_one.slot(0, DSV4_SLOT_RESET, &limited, 2);
    short_one.row(DSV4_INPUT_GIVEN, 1, DSV4_ROW_RELATIVE, 0);
    short_one.row(DSV4_INPUT_GIVEN, vocab - 1, DSV4_ROW_RELATIVE | DSV4_ROW_LOGITS, 1);
    short_one.slot(7, DSV4_SLOT_RESET, &limited, 0); // not finished; a bad id in the slot after it harms it not
    short_one.row(DSV4_INPUT_GIVEN, 5, DSV4_ROW_LOGITS, 0);
    short_one.slot(9, DSV4_SLOT_RESET, &limited, 0);
    short_one.row(DSV4_INPUT_GIVEN, 5000, DSV4_ROW_LOGITS, 0);
    const auto shorts = submit(run, short_one);
    const auto& rs = wait(shorts);
    CHECK(rs.result_count == 2 && rs.results[0].token == 0 && rs.results[0].flags == DSV4_RESULT_FINISHED);
    CHECK(rs.results[0].position == 4 && rs.results[1].slot == 7 && rs.results[1].token == 6 && !rs.results[1].flags);
    CHECK(std::isnan(rs.results[0].logprob) && !rs.results[0].top_count);
    CHECK(rs.error_count == 1 && rs.errors[0].slot == 9 && rs.errors[0].row == 3 && rs.errors[0].message.size);
    t.ticket_release(s, shorts);

    // draft and verify in one ticket; then drafts given by the host of which one is wrong
    auto plain = sampling();
    Step begin;
    begin.slot(1, DSV4_SLOT_RESET, &plain);
    begin.row(DSV4_INPUT_GIVEN, 20, DSV4_ROW_LOGITS, 0);
    const auto begun = submit(run, begin);
    Step guess, judge;
    guess.slot(1);
    for (int k = 0; k < 3; ++k) guess.row(DSV4_INPUT_NOISE, 0, DSV4_ROW_DRAFT | DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, k);
    std::vector<float> in(3 * vocab), xs(3 * 4);
    guess.inputs = {{str("logits"), in.data(), in.size() * 4}, {str("x"), xs.data(), xs.size() * 4}};
    const auto verify = DSV4_ROW_VERIFY | DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE;
    judge.slot(1);
    judge.row(DSV4_INPUT_LAST, 0, verify, 0);
    for (int k = 0; k < 3; ++k) judge.row(DSV4_INPUT_DRAFT, k, verify, k + 1);
    const auto gb = guess.batch(), jb = judge.batch();
    const dsv4_work both[] = {{run_draft, &gb}, {run, &jb}};
    dsv4_ticket pair = 0;
    OK(t.submit(s, both, 2, &pair));
    const auto& rp = wait(pair);
    CHECK(rp.result_count == 4);
    for (std::uint32_t k = 0; k < 4; ++k)
        CHECK(rp.results[k].token == std::int32_t(22 + k) && rp.results[k].position == 2 + k &&
              rp.results[k].accepted == 3);
    Step wrong;
    wrong.slot(1);
    wrong.row(DSV4_INPUT_LAST, 0, verify, 0);
    wrong.row(DSV4_INPUT_GIVEN, 26, verify, 1);
    wrong.row(DSV4_INPUT_GIVEN, 99, verify, 2);
    const auto judged = submit(run, wrong);
    CHECK(wait(judged).result_count == 2 && wait(judged).results[1].token == 27 &&
          wait(judged).results[0].accepted == 1);
    decode.slots[0].slot = 1;
    const auto next = submit(run, decode);
    CHECK(wait(next).results[0].token == 28 && wait(next).results[0].position == 8);
    for (auto ticket : {begun, pair, judged, next}) t.ticket_release(s, ticket);

    // late masks: the ticket and the one behind it wait
    auto masked = sampling();
    masked.masked = 1;
    Step with_mask;
    with_mask.slot(2, DSV4_SLOT_RESET, &masked);
    with_mask.row(DSV4_INPUT_GIVEN, 40, DSV4_ROW_LOGITS, 0);
    with_mask.slot(1);
    with_mask.row(DSV4_INPUT_LAST, 0, DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE, 0);
    const auto late = submit(run_masked, with_mask), behind = submit(run, decode);
    CHECK(t.poll(s, late) == 0 && t.poll(s, behind) == 0);
    FAILS(t.wait(s, late, 1000, &gone), DSV4_DEADLINE, "in time");
    FAILS(t.state_alloc(s, str(target), &pool, 1, 64), DSV4_INVALID, "flight");
    std::uint32_t words[4] = {};
    words[50 / 32] = 1u << 50 % 32;
    FAILS(t.supply(s, late, 0, words, 3), DSV4_INVALID, "words");
    FAILS(t.supply(s, behind, 0, words, 4), DSV4_INVALID, "mask");
    std::thread supplier([&] { OK(t.supply(s, late, 0, words, 4)); });
    CHECK(wait(late).result_count == 2 && wait(late).results[0].token == 50 && wait(late).results[1].token == 29);
    CHECK(wait(behind).results[0].token == 30);
    supplier.join();
    t.ticket_release(s, late);
    t.ticket_release(s, behind);

    // N = 0 is legal; what is wrong is refused whole
    const auto empty = submit(run, Step{});
    CHECK(wait(empty).result_count == 0);
    t.ticket_release(s, empty);
    Step bad = decode;
    bad.slots[0].slot = 64;
    refused(bad, "64", __LINE__);
    bad = decode;
    bad.rows[0].slot = 1;
    refused(bad, "order", __LINE__);
    bad = decode;
    bad.row(DSV4_INPUT_LAST, 0, DSV4_ROW_RELATIVE, 0);
    refused(bad, "row 1", __LINE__);
    bad = decode;
    bad.outputs = {{str("nobody"), logits.data(), 4}};
    refused(bad, "nobody", __LINE__);
    bad.outputs = {{str("logits"), logits.data(), 4}};
    refused(bad, "logits", __LINE__);
    bad = decode;
    bad.slot(5);
    refused(bad, "no rows", __LINE__);
    const auto still = submit(run, decode);
    CHECK(wait(still).results[0].token == 31); // nothing of the refused ones was queued
    t.ticket_release(s, still);

    if (DSV4_HAS(&t, memory)) {
        dsv4_memory_report m{};
        m.struct_size = sizeof m;
        OK(t.memory(s, &m));
    }
    if (DSV4_HAS(&t, state_export)) {
        dsv4_transfer transfer{};
        transfer.struct_size = sizeof transfer;
        dsv4_ticket ticket = 0;
        FAILS(t.state_export(s, &transfer, nullptr, &ticket), DSV4_UNSUPPORTED, "");
    }

    if (bench) {
        for (std::int32_t slots : {1, 8, 64}) {
            Step step;
            for (std::int32_t k = 0; k < slots; ++k) {
                step.slot(k, DSV4_SLOT_RESET, &plain);
                step.row(DSV4_INPUT_GIVEN, k, DSV4_ROW_LOGITS, 0);
            }
            t.ticket_release(s, submit(run, step));
            for (auto& slot : step.slots) slot.flags = 0, slot.sampling = nullptr;
            for (auto& r : step.rows) r.input = DSV4_INPUT_LAST, r.flags = DSV4_ROW_LOGITS | DSV4_ROW_RELATIVE;
            const auto b = step.batch();
            const dsv4_work work{run, &b};
            const auto begin_us = now_us(nullptr);
            const int rounds = 2'000'000 / slots;
            dsv4_ticket before = 0, ticket = 0;
            const dsv4_ticket_result* r = nullptr;
            for (int k = 0; k < rounds; ++k) {
                OK(t.submit(s, &work, 1, &ticket));
                if (before) {
                    OK(t.wait(s, before, UINT64_MAX, &r));
                    t.ticket_release(s, before);
                }
                before = ticket;
            }
            t.ticket_release(s, before);
            const auto us = double(now_us(nullptr) - begin_us);
            std::printf("%2d slots: %.1f M tokens/s, %.0f ns a step\n", slots, double(rounds) * slots / us,
                        us * 1000 / rounds);
        }
    }

    // close with a ticket that still waits for its mask, whose executable is gone already
    const auto never = submit(run_masked, with_mask);
    t.executable_release(s, run_masked);
    CHECK(t.poll(s, never) == 0);
    t.close(s);
    OK(t.open(i.self, &config, &s));
    t.close(s);
    i.destroy(i.self);
}

// ---------------------------------------------------------------- api

int dial(std::string_view endpoint) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(std::uint16_t(std::stoi(std::string(endpoint.substr(endpoint.rfind(':') + 1)))));
    CHECK(connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
    return fd;
}
void say(int fd, std::string_view text) {
    CHECK(send(fd, text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size()));
}
std::string hear(int fd) {
    std::string out;
    char b[512];
    for (ssize_t n; (n = recv(fd, b, sizeof b, 0)) > 0;) out.append(b, std::size_t(n));
    close(fd);
    return out;
}
std::string ask(std::string_view endpoint, std::string_view text) {
    const int fd = dial(endpoint);
    say(fd, text);
    return hear(fd);
}

void run_api(const std::string& directory) {
    FakeHost host;
    const auto& plugin = load(directory, "api-toy");
    dsv4_options options{{{"host", "127.0.0.1"}}, {{"port", 70000}, {"max_tokens", 16}}};
    dsv4_instance none{};
    none.struct_size = sizeof none;
    FAILS(plugin.create(&host.table, DSV4_KIND_API, &options, &none), DSV4_INVALID, "port");
    options.numbers["port"] = 0;

    options.texts["host"] = "no.such.host";
    auto i = instance(plugin, host, DSV4_KIND_API, options);
    FAILS(static_cast<const dsv4_api_table*>(i.table)->start(i.self), DSV4_INVALID, "no.such.host");
    i.destroy(i.self);
    options.texts["host"] = "127.0.0.1";

    i = instance(plugin, host, DSV4_KIND_API, options);
    const auto& t = *static_cast<const dsv4_api_table*>(i.table);
    CHECK(t.endpoint(i.self).size == 0);
    const dsv4_translation* meant = nullptr;
    OK(t.translate(i.self, str("/toy/line"), str("hello\n"), &meant));
    CHECK(meant->http_status == 200 && view(meant->request->prompt_text) == "hello" && meant->request->n == 1);
    CHECK(meant->request->limits.max_tokens == 16);
    t.translation_release(i.self, meant);
    for (auto [route, body, code] : {std::tuple{"/v1/x", "a", 404}, {"/toy/line", "\n", 400}, {"/toy/line", "", 400}}) {
        OK(t.translate(i.self, str(route), str(body), &meant));
        CHECK(meant->http_status == code && !meant->request && meant->error_json.size);
        t.translation_release(i.self, meant);
    }
    OK(t.translate(i.self, str("/toy/line"), str(std::string(70000, 'a')), &meant));
    CHECK(meant->http_status == 413);
    t.translation_release(i.self, meant);

    OK(t.start(i.self));
    FAILS(t.start(i.self), DSV4_INVALID, "before");
    const auto endpoint = std::string(view(t.endpoint(i.self)));
    CHECK(endpoint.rfind("tcp://127.0.0.1:", 0) == 0);
    {
        dsv4_options taken = options;
        taken.numbers["port"] = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
        const auto other = instance(plugin, host, DSV4_KIND_API, taken);
        FAILS(static_cast<const dsv4_api_table*>(other.table)->start(other.self), DSV4_ENVIRONMENT, "bind");
        other.destroy(other.self);
    }
    CHECK(ask(endpoint, "hello world\n") == "hello world");
    CHECK(ask(endpoint, "full\n").rfind("429 ", 0) == 0);
    CHECK(ask(endpoint, "\n").rfind("400 ", 0) == 0);
    CHECK(ask(endpoint, std::string(66000, 'a')).rfind("413 ", 0) == 0 || true); // the peer may reset before it is read
    int fd = dial(endpoint);                                                     // leaves without a word
    close(fd);
    fd = dial(endpoint); // leaves in the middle
    say(fd, "slow\n");
    linger hard{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    close(fd);
    CHECK(ask(endpoint, "again\n") == "again");
    CHECK(host.generator.cancelled >= 1);

    // drain cancels what runs beyond the deadline; new requests are turned away; stop ends all calls
    fd = dial(endpoint);
    say(fd, "slow one\n");
    while (host.generator.open == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    OK(t.drain(i.self, now_us(nullptr) + 100'000));
    CHECK(hear(fd) == "slow one");
    CHECK(ask(endpoint, "late\n").rfind("503 ", 0) == 0);
    OK(t.drain(i.self, 0));
    fd = dial(endpoint); // says nothing; stop does not wait for it
    t.stop(i.self);
    const int calls = host.generator.calls;
    close(fd);
    t.stop(i.self);
    CHECK(host.generator.open == 0 && host.generator.calls == calls);
    CHECK(view(t.endpoint(i.self)) == endpoint);
    i.destroy(i.self);

    // stop without drain, in the middle of a request; then destroy without stop
    i = instance(plugin, host, DSV4_KIND_API, options);
    OK(t.start(i.self));
    fd = dial(view(t.endpoint(i.self)));
    say(fd, "slow two\n");
    while (host.generator.open == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    t.stop(i.self);
    CHECK(host.generator.open == 0 && hear(fd) == "slow two");
    i.destroy(i.self);
    i = instance(plugin, host, DSV4_KIND_API, options);
    OK(t.start(i.self));
    i.destroy(i.self);
    host.table.generate = nullptr;
    i = instance(plugin, host, DSV4_KIND_API, options);
    FAILS(t.start(i.self), DSV4_UNSUPPORTED, "generate");
    i.destroy(i.self);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: driver DIRECTORY [bench]\n");
        return 2;
    }
    const std::string directory = argv[1];
    run_parser(directory, "parser-echo");
    run_parser(directory, "parser-echo-c");
    run_backend(directory, argc > 2);
    run_api(directory);
    std::puts("ok");
}
