// Ops that multiply by weight matrices: linear, group_linear, head, route, experts.
#include "../kernels/experts.hpp"
#include "../kernels/head.hpp"
#include "../kernels/route.hpp"
#include "ops.hpp"
#include "run.hpp"

namespace dsv4::cpu::ops {

Runner linear(Builder& b) {
    b.arity(1, 1, 0, 1);
    b.attributes({"quant", "scale"});
    const ValueRef x = b.input(0, Element::act), y = b.output(0, Element::act_or_f32);
    if (x.logits_rows != y.logits_rows) b.refuse("its input and output have different rows");
    const Matrix weight = b.matrix(0, y.width, x.width);
    const LinearOptions options{b.quantiser(), b.output_rounds(0)};
    const float scale = b.number("scale");
    return [=](Run& run) {
        const RowsOut out = run.out(y);
        cpu::linear(run.in(x), weight, out, options, run.numerics(), run.parallel());
        if (scale == 1.0f) return;
        for (float& v : out.all()) v = options.round_output ? run.numerics().round(v * scale) : v * scale;
    };
}

Runner group_linear(Builder& b) {
    b.arity(1, 1, 0, 1);
    b.attributes({"groups"});
    const ValueRef x = b.input(0, Element::act), y = b.output(0, Element::act);
    const std::size_t groups = b.count("groups", 1, 4096);
    if (x.width % groups != 0 || y.width % groups != 0)
        b.refuse("its rows do not divide into " + std::to_string(groups) + " groups");
    const Matrix weight = b.matrix(0, y.width, x.width / groups);
    return
        [=](Run& run) { cpu::group_linear(run.in(x), weight, groups, run.out(y), {}, run.numerics(), run.parallel()); };
}

Runner head(Builder& b) {
    b.arity(1, 1, 0, 1);
    b.attributes({});
    const ValueRef x = b.input(0, Element::act), logits = b.output(0, Element::f32);
    if (x.logits_rows || !logits.logits_rows) b.refuse("it must go from N rows to M rows");
    const Matrix weight = b.matrix(0, logits.width, x.width);
    return [=](Run& run) {
        cpu::head(run.in(x), run.logits_rows(), weight, run.out(logits), run.numerics(), run.parallel());
    };
}

Runner route(Builder& b) {
    b.arity(1, 2, 0, 2);
    b.attributes({"hash", "scale"});
    const ValueRef x = b.input(0, Element::act), ids = b.output(0, Element::i32),
                   w = b.output(1, Element::f32, ids.width);
    Router router;
    router.gate = b.matrix(0, Builder::any, x.width);
    router.picks = ids.width;
    router.scaling = b.number("scale");
    if (router.picks > router.gate.rows) b.refuse("it picks more experts than there are");
    if (b.flag("hash")) {
        if (b.weight_dim(1, 1) != router.picks) b.refuse("its table has another width than its picks");
        router.table = b.table(1, static_cast<std::int64_t>(router.gate.rows));
        b.limit_tokens(b.weight_dim(1, 0));
    } else {
        router.bias = b.vector(1, router.gate.rows);
    }
    return [=](Run& run) {
        cpu::route(run.in(x), run.tokens(), router, run.integers_out(ids), run.out(w), run.numerics(), run.parallel());
    };
}

Runner experts(Builder& b) {
    b.arity(3, {3, 6}, 0, 1);
    b.attributes({"limit", "quant"});
    if (b.weights() != 3 && b.weights() != 6) b.refuse("it takes 3 weights, or 6 with a shared expert");
    const ValueRef x = b.input(0, Element::act), ids = b.input(1, Element::i32),
                   w = b.input(2, Element::f32, ids.width), y = b.output(0, Element::act, x.width);
    const std::size_t count = b.weight_dim(0, 0), inner = b.weight_dim(0, 1);
    const auto w1 = b.stack(0, count, inner, x.width), w2 = b.stack(1, count, x.width, inner),
               w3 = b.stack(2, count, inner, x.width);
    std::vector<Expert> routed;
    for (std::size_t e = 0; e < count; ++e) routed.push_back({w1[e], w2[e], w3[e]});
    std::optional<Expert> shared;
    if (b.weights() == 6) {
        const Matrix s1 = b.matrix(3, Builder::any, x.width);
        shared = Expert{s1, b.matrix(4, x.width, s1.rows), b.matrix(5, s1.rows, x.width)};
    }
    const ExpertsOptions options{b.number("limit"), b.quantiser()};
    return [=](Run& run) {
        const auto chosen = run.integers_in(ids);
        for (const std::int32_t id : chosen)
            if (id < 0 || static_cast<std::size_t>(id) >= routed.size())
                throw Failure(Code::invalid, "op experts/1: expert " + std::to_string(id) +
                                                 " does not exist; there are " + std::to_string(routed.size()));
        cpu::experts(run.in(x), chosen, run.in(w), routed, shared, run.out(y), options, run.numerics(), run.parallel());
    };
}

} // namespace dsv4::cpu::ops
