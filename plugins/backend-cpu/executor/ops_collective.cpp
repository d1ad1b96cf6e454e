// Collectives of a group of one: every one is a copy.
#include <algorithm>

#include "ops.hpp"
#include "run.hpp"

namespace dsv4::cpu::ops {
namespace {

void copy(Run& run, const ValueRef& from, const ValueRef& to) {
    const RowsIn in = run.in(from);
    std::copy_n(in.data, in.count * in.width, run.out(to).data);
}

} // namespace

Runner copy_rows(Builder& b) {
    b.arity(1, 0, 0, 1);
    b.attributes({});
    const ValueRef x = b.input(0, Element::act_or_f32), y = b.output(0, Element::act_or_f32, x.width);
    if (x.logits_rows != y.logits_rows) b.refuse("its input and output have different rows");
    return [=](Run& run) { copy(run, x, y); };
}

Runner dispatch(Builder& b) {
    b.arity(3, 0, 0, 3);
    b.attributes({"capacity"});
    const ValueRef x = b.input(0, Element::act), ids = b.input(1, Element::i32),
                   w = b.input(2, Element::f32, ids.width), to_x = b.output(0, Element::act, x.width),
                   to_ids = b.output(1, Element::i32, ids.width), to_w = b.output(2, Element::f32, ids.width);
    const std::size_t capacity = b.count("capacity", 1, std::int64_t{1} << 31);
    return [=](Run& run) {
        if (run.count(x) > capacity)
            throw Failure(Code::exhausted, "op dispatch/1: " + std::to_string(run.count(x)) +
                                               " rows arrived for a capacity of " + std::to_string(capacity));
        copy(run, x, to_x);
        copy(run, w, to_w);
        const auto in = run.integers_in(ids);
        std::copy(in.begin(), in.end(), run.integers_out(to_ids).begin());
    };
}

} // namespace dsv4::cpu::ops
