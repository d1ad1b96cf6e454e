// Ops of attention: queries, cache rows, compression, selection, attention.
#include <algorithm>
#include <cstring>

#include "../kernels/attend.hpp"
#include "../kernels/compress.hpp"
#include "../kernels/index_select.hpp"
#include "../kernels/query_key.hpp"
#include "ops.hpp"
#include "run.hpp"

namespace dsv4::cpu::ops {
namespace {

constexpr std::int64_t max_window = 1 << 20;

bool power_of_two(std::size_t n) { return n > 0 && (n & (n - 1)) == 0; }

std::span<const float> as_floats(const std::byte* row, std::size_t count) {
    return {reinterpret_cast<const float*>(row),
            count}; // rows of f32 kinds are aligned: pages are, and rows are whole floats
}

} // namespace

Runner head_norm_rope(Builder& b) {
    b.arity(1, 0, 0, 1);
    b.attributes({"eps", DSV4_CPU_ROTATION});
    const std::size_t heads = b.output_dim(0, 1), d = b.output_dim(0, 2);
    const ValueRef in = b.input(0, Element::act, heads * d), out = b.output(0, Element::act, heads * d);
    const auto rope = b.rope(d);
    const float eps = b.number("eps");
    if (eps < 0) b.refuse("attribute 'eps' is negative");
    return [=](Run& run) {
        const RowsIn from = run.in(in);
        const RowsOut q = run.out(out);
        std::copy_n(from.data, from.count * from.width, q.data);
        cpu::head_norm_rope(q, heads, eps, *rope, run.positions(), run.numerics(), run.parallel());
    };
}

Runner index_query(Builder& b) {
    b.arity(1, 0, 0, 1);
    b.attributes({DSV4_CPU_ROTATION});
    const std::size_t heads = b.output_dim(0, 1), d = b.output_dim(0, 2);
    if (!power_of_two(d)) b.refuse("its head width " + std::to_string(d) + " is not a power of two");
    const ValueRef in = b.input(0, Element::act, heads * d), out = b.output(0, Element::act, heads * d);
    const auto rope = b.rope(d);
    return [=](Run& run) {
        const RowsIn from = run.in(in);
        const RowsOut q = run.out(out);
        std::copy_n(from.data, from.count * from.width, q.data);
        cpu::head_norm_rope(q, heads, -1.0f, *rope, run.positions(), run.numerics(), run.parallel());
        for_pieces(run.parallel(), q.count, 4, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin * heads; i < end * heads; ++i) index_round({q.data + i * d, d}, run.numerics());
        });
    };
}

Runner kv_store(Builder& b) {
    b.arity(1, 1, 1, 0);
    b.attributes({"eps", DSV4_CPU_ROTATION});
    const ValueRef kv = b.input(0, Element::act);
    const auto weight = b.vector(0, kv.width);
    const StateRef window = b.state(0, {DSV4_STATE_WINDOW, DSV4_STATE_DRAFT_WINDOW}, kv.width);
    b.need(window, Need::Span::own);
    const auto rope = b.rope(kv.width);
    const float eps = b.number("eps");
    return [=](Run& run) {
        const RowsIn in = run.in(kv);
        std::vector<float> rows(in.count * in.width);
        const RowsOut out{rows.data(), in.count, in.width};
        cpu::kv_rows(in, weight, eps, *rope, run.positions(), out, run.numerics(), run.parallel());
        for (std::size_t i = 0; i < in.count; ++i) {
            const ActiveRow& row = run.rows()[i];
            if (run.writes(row, window)) store_row(run.state_row(window, row.slot, row.position), window.half, out[i]);
        }
    };
}

Runner kv_rows(Builder& b) {
    b.arity(1, 1, 0, 1);
    b.attributes({"eps", DSV4_CPU_ROTATION});
    const ValueRef kv = b.input(0, Element::act), rows = b.output(0, Element::act, kv.width);
    const auto weight = b.vector(0, kv.width);
    const auto rope = b.rope(kv.width);
    const float eps = b.number("eps");
    return [=](Run& run) {
        cpu::kv_rows(run.in(kv), weight, eps, *rope, run.positions(), run.out(rows), run.numerics(), run.parallel());
    };
}

Runner compress(Builder& b) {
    b.arity(2, 2, 2, 0);
    b.attributes({"ratio", "eps", "index", DSV4_CPU_ROTATION});
    const ValueRef u = b.input(0, Element::f32), z = b.input(1, Element::f32, u.width);
    Compressor c;
    c.ratio = b.count("ratio", 4, 128);
    if (c.ratio != 4 && c.ratio != 128) b.refuse("attribute 'ratio' must be 4 or 128");
    c.kind = b.flag("index") ? EntryKind::index : EntryKind::attention;
    c.width = c.overlaps() ? u.width / 2 : u.width;
    if (c.token_width() != u.width) b.refuse("its values do not divide into two halves");
    if (c.kind == EntryKind::index && (c.ratio != 4 || !power_of_two(c.width)))
        b.refuse("an index compressor has ratio 4 and a width that is a power of two");
    c.ape = b.vector(0, c.ratio * u.width);
    c.norm_weight = b.vector(1, c.width);
    c.eps = b.number("eps");
    const auto rope = b.rope(c.width);
    const std::int32_t partial_kind = c.kind == EntryKind::index ? DSV4_STATE_INDEX_PARTIAL
                                      : c.ratio == 4             ? DSV4_STATE_CSA_PARTIAL
                                                                 : DSV4_STATE_HCA_PARTIAL;
    const std::int32_t entry_kind = c.kind == EntryKind::index ? DSV4_STATE_INDEX
                                    : c.ratio == 4             ? DSV4_STATE_CSA
                                                               : DSV4_STATE_HCA;
    const StateRef partial = b.state(0, {partial_kind}, 2 * u.width), entry = b.state(1, {entry_kind}, c.width);
    const auto ratio = static_cast<std::int64_t>(c.ratio), reach = static_cast<std::int64_t>(c.slots());
    b.need(partial, Need::Span::closing, reach, ratio);
    b.need(entry, Need::Span::entry, 1, ratio);
    return [=](Run& run) {
        const RowsIn values = run.in(u), gates = run.in(z);
        const std::size_t width = values.width;
        std::vector<float> gate(gates.data, gates.data + gates.count * width);
        const RowsOut g{gate.data(), gates.count, width};
        add_gate_positions(g, run.positions(), c);
        std::vector<std::size_t> closing;
        for (std::size_t i = 0; i < values.count; ++i) {
            if (!run.writes(run.rows()[i], partial)) continue;
            std::byte* row = run.state_row(partial, run.rows()[i].slot, run.positions()[i]);
            std::memcpy(row, values[i].data(), width * sizeof(float));
            std::memcpy(row + width * sizeof(float), g[i].data(), width * sizeof(float));
            if ((run.positions()[i] + 1) % ratio == 0) closing.push_back(i);
        }
        run.parallel().run(closing.size(), [&](std::size_t k) {
            const std::size_t slot = run.rows()[closing[k]].slot;
            const std::int64_t p = run.positions()[closing[k]];
            std::vector<Partial> tokens(c.slots());
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                const std::int64_t at = p + 1 - reach + static_cast<std::int64_t>(i);
                if (at < 0) continue;
                const auto row = as_floats(run.state_row(partial, slot, at), 2 * width);
                tokens[i] = {row.data(), row.data() + width};
            }
            std::vector<float> out(c.width);
            close_window(tokens, p / ratio, c, *rope, out, run.numerics());
            store_row(run.state_row(entry, slot, p / ratio * ratio), entry.half, out);
        });
    };
}

Runner index_select(Builder& b) {
    b.arity(2, 0, 1, 1);
    b.attributes({"ratio"});
    const std::size_t heads = b.input_dim(0, 1), d = b.input_dim(0, 2);
    const ValueRef iq = b.input(0, Element::act, heads * d), iw = b.input(1, Element::act, heads),
                   picks = b.output(0, Element::i32);
    const auto ratio = static_cast<std::int64_t>(b.count("ratio", 4, 4));
    const StateRef keys = b.state(0, {DSV4_STATE_INDEX}, d);
    b.need(keys, Need::Span::entries, 1, ratio);
    return [=](Run& run) {
        const RowsIn q = run.in(iq), w = run.in(iw);
        const auto out = run.integers_out(picks);
        std::fill(out.begin(), out.end(), -1);
        for (std::size_t begin = 0; begin < q.count;) { // the rows of one slot share its keys
            const std::size_t end = run.slot_rows(begin).second, slot = run.rows()[begin].slot;
            const auto visible = [&](std::size_t i) {
                return static_cast<std::size_t>((run.positions()[i] + 1) / ratio);
            };
            std::vector<float> gathered(visible(end - 1) * d);
            for (std::size_t e = 0; e < visible(end - 1); ++e)
                load_row(run.state_row(keys, slot, static_cast<std::int64_t>(e) * ratio), keys.half,
                         {&gathered[e * d], d});
            const std::size_t grain = 1 + 65536 / std::max<std::size_t>(1, visible(end - 1) * heads * d);
            for_pieces(run.parallel(), end - begin, grain, [&](std::size_t from, std::size_t to) {
                for (std::size_t i = begin + from; i < begin + to; ++i) {
                    const auto best =
                        cpu::index_select(q[i], w[i], {gathered.data(), visible(i), d}, picks.width, run.numerics());
                    std::copy(best.begin(), best.end(), out.begin() + static_cast<std::ptrdiff_t>(i * picks.width));
                }
            });
            begin = end;
        }
    };
}

namespace {

// What attend/1 was compiled to.
struct Attention {
    ValueRef q, o;
    std::optional<ValueRef> picks, block;
    StateRef window;
    std::optional<StateRef> entries;
    std::int64_t ratio = 0;
    std::span<const float> sink;
    std::shared_ptr<const RopeTable> rope;
    AttendShape shape;
    std::size_t d = 0;
};

// The rows that active row `i` attends to, window first.
struct Gathered {
    std::vector<float> kv;
    std::size_t window = 0;
};

Gathered gather(Run& run, const Attention& a, std::size_t i) {
    const ActiveRow& row = run.rows()[i];
    Gathered g;
    const auto add = [&](const StateRef& state, std::int64_t position) {
        g.kv.resize(g.kv.size() + a.d);
        load_row(run.state_row(state, row.slot, position), state.half, std::span(g.kv).last(a.d));
    };
    const auto window = static_cast<std::int64_t>(a.shape.window_slots);
    // Committed window, then the rows of the block; or the window that ends with the row itself.
    const std::int64_t end = a.block ? run.record(row).committed : row.position + 1;
    for (std::int64_t p = std::max<std::int64_t>(0, end - window); p < end; ++p) {
        add(a.window, p);
        ++g.window;
    }
    if (a.block) {
        const auto [first, last] = run.slot_rows(i);
        const RowsIn rows = run.in(*a.block);
        for (std::size_t j = first; j < last; ++j) g.kv.insert(g.kv.end(), rows[j].begin(), rows[j].end());
    }
    if (a.entries) {
        const std::int64_t visible = (row.position + 1) / a.ratio;
        if (a.picks) {
            const std::size_t k = a.picks->width;
            for (const std::int32_t w : run.integers_in(*a.picks).subspan(i * k, k)) {
                if (w == -1) break;
                if (w < 0 || w >= visible)
                    throw Failure(Code::invalid, "op attend/1: row " + std::to_string(row.batch_row) + " picks entry " +
                                                     std::to_string(w) + " of " + std::to_string(visible) +
                                                     " visible ones");
                add(*a.entries, w * a.ratio);
            }
        } else {
            for (std::int64_t w = 0; w < visible; ++w) add(*a.entries, w * a.ratio);
        }
    }
    return g;
}

void run_attention(Run& run, const Attention& a) {
    const RowsIn q = run.in(a.q);
    const RowsOut o = run.out(a.o);
    // Few rows: heads are the parallel work. Many: rows are. A head's result is the same either way.
    constexpr std::size_t few = 8, head_block = 8;
    const auto heads_of = [&](const Gathered& g, std::size_t i, std::size_t from, std::size_t count) {
        AttendShape part = a.shape;
        part.heads = count;
        cpu::attend(q[i].subspan(from * a.d, count * a.d), {g.kv.data(), g.kv.size() / a.d, a.d}, g.window,
                    a.sink.subspan(from, count), *a.rope, run.positions()[i], part,
                    o[i].subspan(from * a.d, count * a.d), run.numerics());
    };
    if (q.count > few) {
        run.parallel().run(q.count, [&](std::size_t i) { heads_of(gather(run, a, i), i, 0, a.shape.heads); });
        return;
    }
    const std::size_t blocks = (a.shape.heads + head_block - 1) / head_block;
    for (std::size_t i = 0; i < q.count; ++i) {
        const Gathered g = gather(run, a, i);
        const auto block = [&](std::size_t k) {
            heads_of(g, i, k * head_block, std::min(head_block, a.shape.heads - k * head_block));
        };
        if (blocks == 1)
            block(0);
        else
            run.parallel().run(blocks, block);
    }
}

} // namespace

Runner attend(Builder& b) {
    b.arity({1, 2}, 1, {1, 2}, 1);
    b.attributes({"window", "ratio", "block", DSV4_CPU_ROTATION});
    Attention a;
    const std::size_t heads = b.output_dim(0, 1);
    a.d = b.output_dim(0, 2);
    a.q = b.input(0, Element::act, heads * a.d);
    a.o = b.output(0, Element::act, heads * a.d);
    a.sink = b.vector(0, heads);
    a.rope = b.rope(a.d);
    a.shape.heads = heads;
    a.shape.window_slots = b.count("window", 1, max_window);
    const auto window = static_cast<std::int64_t>(a.shape.window_slots);
    a.ratio = static_cast<std::int64_t>(b.count("ratio", 0, 128));
    const bool block = b.flag("block");
    if (a.ratio != 0 && a.ratio != 4 && a.ratio != 128) b.refuse("attribute 'ratio' must be 0, 4 or 128");
    if (block && a.ratio != 0) b.refuse("a block attends to its window only, so its ratio must be 0");
    if (b.inputs() != ((a.ratio == 4 || block) ? 2u : 1u))
        b.refuse("ratio 4 takes picks, a block its rows, others q alone");
    if (b.states() != (a.ratio == 0 ? 1u : 2u))
        b.refuse("it takes the window and, unless ratio is 0, one kind of entries");
    if (a.ratio == 4) a.picks = b.input(1, Element::i32);
    if (block) a.block = b.input(1, Element::act, a.d);
    a.window = b.state(0, {block ? DSV4_STATE_DRAFT_WINDOW : DSV4_STATE_WINDOW}, a.d);
    b.need(a.window, block ? Need::Span::before : Need::Span::reach, window);
    if (a.ratio != 0) {
        a.entries = b.state(1, {a.ratio == 4 ? DSV4_STATE_CSA : DSV4_STATE_HCA}, a.d);
        b.need(*a.entries, Need::Span::entries, 1, a.ratio);
    }
    return [a](Run& run) { run_attention(run, a); };
}

} // namespace dsv4::cpu::ops
