// From a Program to an executable: buffers by lifetime, steps by op.
#include <algorithm>
#include <limits>

#include "builder.hpp"
#include "ops.hpp"

namespace dsv4::cpu {
namespace {

constexpr OpEntry table[] = {
    {"embed", 1, ops::embed},
    {"hc_pre", 1, ops::hc_pre},
    {"hc_post", 1, ops::hc_post},
    {"hc_head", 1, ops::hc_head},
    {"norm", 1, ops::norm},
    {"linear", 1, ops::linear},
    {"head_norm_rope", 1, ops::head_norm_rope},
    {"index_query", 1, ops::index_query},
    {"kv_store", 1, ops::kv_store},
    {"kv_rows", 1, ops::kv_rows},
    {"compress", 1, ops::compress},
    {"index_select", 1, ops::index_select},
    {"attend", 1, ops::attend},
    {"group_linear", 1, ops::group_linear},
    {"route", 1, ops::route},
    {"experts", 1, ops::experts},
    {"tap", 1, ops::tap},
    {"head", 1, ops::head},
    {"mask", 1, ops::mask},
    {"sample", 1, ops::sample},
    {"verify", 1, ops::verify},
    {"markov_step", 1, ops::markov_step},
    {"all_reduce", 1, ops::copy_rows},
    {"all_gather", 1, ops::copy_rows},
    {"reduce_scatter", 1, ops::copy_rows},
    {"dispatch", 1, ops::dispatch},
    {"combine", 1, ops::copy_rows},
};

const OpEntry& find(const program::Op& op) {
    bool known = false;
    for (const OpEntry& e : table) {
        if (e.name != op.name) continue;
        if (e.version == op.version) return e;
        known = true;
    }
    throw Failure(Code::unsupported, "op " + op.label() + " is not known to the CPU backend" +
                                         (known ? " in this version; it knows " + op.name + "/1" : std::string()));
}

// A buffer for every value, shared by values whose lifetimes do not meet. Floats and integers never share: each number
// stands for one buffer of either sort.
std::vector<std::size_t> assign_buffers(const program::Program& p, std::size_t& count) {
    constexpr std::size_t forever = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> last_use(p.values.size(), 0);
    for (std::size_t i = 0; i < p.ops.size(); ++i) {
        for (const auto id : p.ops[i].inputs) last_use[id] = i;
        for (const auto id : p.ops[i].outputs) last_use[id] = std::max(last_use[id], i);
    }
    for (const auto id : p.outputs) last_use[id] = forever;
    // Log-probabilities are of the logits that enter a mask, so those live as long as the masked ones.
    for (const program::Op& op : p.ops)
        if (op.name == "mask" && op.inputs.size() == 1 && op.outputs.size() == 1)
            last_use[op.inputs[0]] = std::max(last_use[op.inputs[0]], last_use[op.outputs[0]]);

    std::vector<std::size_t> buffer(p.values.size(), 0), free;
    count = 0;
    const auto take = [&](program::ValueId id) {
        if (free.empty()) {
            buffer[id] = count++;
        } else {
            buffer[id] = free.back();
            free.pop_back();
        }
    };
    for (const auto id : p.inputs) take(id);
    for (std::size_t i = 0; i < p.ops.size(); ++i) {
        for (const auto id : p.ops[i].outputs) take(id); // before the inputs end: an op never writes what it reads
        std::vector<program::ValueId> touched = p.ops[i].inputs;
        touched.insert(touched.end(), p.ops[i].outputs.begin(), p.ops[i].outputs.end());
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        for (const auto id : touched)
            if (last_use[id] == i) free.push_back(buffer[id]);
    }
    return buffer;
}

std::vector<EdgeValue> edges(const program::Program& p, const std::vector<program::ValueId>& ids,
                             std::span<const std::size_t> buffers, const char* what) {
    std::vector<EdgeValue> out;
    for (const auto id : ids) {
        const program::Value& v = p.values[id];
        const std::string label = std::string(what) + " '" + v.name + "' of the Program";
        if (v.element != DSV4_F32 && v.element != DSV4_BF16 && v.element != DSV4_I32)
            throw Failure(Code::unsupported, label + " must be f32, bf16 or i32");
        if (v.dims.empty() || v.dims[0] > 0)
            throw Failure(Code::unsupported, label + " must begin with N, M or R rows");
        std::size_t width = 1;
        for (std::size_t i = 1; i < v.dims.size(); ++i) {
            if (v.dims[i] < 0 || width > (std::size_t{1} << 32))
                throw Failure(Code::unsupported, label + " has a dimension that is not constant, or too large");
            width *= static_cast<std::size_t>(v.dims[i]);
        }
        out.push_back(
            {v.name, {buffers[id], width, v.dims[0] == program::logit_rows}, v.element, v.element == DSV4_I32});
    }
    return out;
}

} // namespace

std::span<const OpEntry> op_table() { return table; }

std::uint64_t Executable::buffer_bytes() const {
    std::uint64_t n = 0;
    for (const auto& b : float_buffers) n += b.capacity() * sizeof(float);
    for (const auto& b : integer_buffers) n += b.capacity() * sizeof(std::int32_t);
    return n;
}

std::unique_ptr<Executable> compile_program(const program::Program& p, const dsv4_compile_options& options, Accum accum,
                                            WeightStore* weights, const StateStore* state) {
    auto e = std::make_unique<Executable>();
    e->name = p.name;
    e->numerics = {p.precision == DSV4_SCORE ? Precision::score : Precision::serve, accum};
    e->max_rows = options.max_rows;
    e->max_slots = options.max_slots;
    const auto layouts = layouts_of(p);
    for (const KindLayout& l : layouts)
        if (l.paged()) e->kinds.push_back(l.kind);
    const auto buffers = assign_buffers(p, e->buffers);
    e->float_buffers.resize(e->buffers);
    e->integer_buffers.resize(e->buffers);
    for (const program::Op& op : p.ops) {
        const OpEntry& entry = find(op);
        Builder builder(p, op, *e, weights, state, buffers, layouts);
        e->steps.push_back({op.label(), entry.compile(builder)});
    }
    e->inputs = edges(p, p.inputs, buffers, "input");
    e->outputs = edges(p, p.outputs, buffers, "output");
    return e;
}

} // namespace dsv4::cpu
