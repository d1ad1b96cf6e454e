// Ops on residual streams: embedding, hyper-connections, norm, tap.
#include "../kernels/embed.hpp"
#include "../kernels/head.hpp"
#include "../kernels/hyper_connection.hpp"
#include "../kernels/norm.hpp"
#include "ops.hpp"
#include "run.hpp"

namespace dsv4::cpu::ops {
namespace {

// Streams [N, n, D] of input 0: n and D from its declared dimensions.
HyperConnection site_of(Builder& b, std::size_t n, std::size_t width, std::size_t mixes) {
    HyperConnection site;
    site.streams = n;
    site.fn = b.vector(0, mixes * width);
    site.base = b.vector(1, mixes);
    site.norm_eps = b.number("eps");
    site.hc_eps = b.number("hc_eps");
    return site;
}

} // namespace

Runner embed(Builder& b) {
    b.arity(0, 1, 0, 1);
    b.attributes({});
    const std::size_t n = b.output_dim(0, 1), d = b.output_dim(0, 2);
    const ValueRef streams = b.output(0, Element::act, n * d);
    const Matrix table = b.matrix(0, Builder::any, d);
    b.limit_tokens(table.rows);
    return [=](Run& run) { cpu::embed(run.tokens(), table, n, run.out(streams)); };
}

Runner hc_pre(Builder& b) {
    b.arity(1, 4, 0, 3);
    b.attributes({"eps", "hc_eps", "sinkhorn_iterations"});
    const std::size_t n = b.input_dim(0, 1), d = b.input_dim(0, 2);
    const ValueRef streams = b.input(0, Element::act, n * d), x = b.output(0, Element::act, d),
                   post = b.output(1, Element::f32, n), comb = b.output(2, Element::f32, n * n);
    HyperConnection site = site_of(b, n, n * d, n * n + 2 * n);
    site.scale = b.vector(2, 3);
    site.sinkhorn_rounds = b.count("sinkhorn_iterations", 1, 1000);
    const auto norm_weight = b.vector(3, d);
    return [=](Run& run) {
        cpu::hc_pre(run.in(streams), site, norm_weight, run.out(x), run.out(post), run.out(comb), run.numerics(),
                    run.parallel());
    };
}

Runner hc_post(Builder& b) {
    b.arity(4, 0, 0, 1);
    b.attributes({});
    const std::size_t n = b.input_dim(1, 1), d = b.input_dim(1, 2);
    const ValueRef y = b.input(0, Element::act, d), streams = b.input(1, Element::act, n * d),
                   post = b.input(2, Element::f32, n), comb = b.input(3, Element::f32, n * n),
                   out = b.output(0, Element::act, n * d);
    return [=](Run& run) {
        cpu::hc_post(run.in(y), run.in(streams), run.in(post), run.in(comb), run.out(out), run.numerics(),
                     run.parallel());
    };
}

Runner hc_head(Builder& b) {
    b.arity(1, 3, 0, 1);
    b.attributes({"eps", "hc_eps"});
    const std::size_t n = b.input_dim(0, 1), d = b.input_dim(0, 2);
    const ValueRef streams = b.input(0, Element::act, n * d), x = b.output(0, Element::act, d);
    HyperConnection site = site_of(b, n, n * d, n);
    site.scale = b.vector(2, 1);
    return [=](Run& run) { cpu::hc_head(run.in(streams), site, run.out(x), run.numerics(), run.parallel()); };
}

Runner norm(Builder& b) {
    b.arity(1, 1, 0, 1);
    b.attributes({"eps"});
    const ValueRef x = b.input(0, Element::act), y = b.output(0, Element::act, x.width);
    if (x.logits_rows != y.logits_rows) b.refuse("its input and output have different rows");
    const auto weight = b.vector(0, x.width);
    const float eps = b.number("eps");
    return [=](Run& run) { cpu::norm(run.in(x), weight, eps, run.out(y), run.numerics(), run.parallel()); };
}

Runner tap(Builder& b) {
    b.arity({1, 64}, 0, 0, 1);
    b.attributes({});
    const std::size_t n = b.input_dim(0, 1), d = b.input_dim(0, 2);
    std::vector<ValueRef> streams;
    for (std::size_t i = 0; i < b.inputs(); ++i) streams.push_back(b.input(i, Element::act, n * d));
    const ValueRef out = b.output(0, Element::act, b.inputs() * d);
    return [=](Run& run) {
        std::vector<RowsIn> in;
        for (const ValueRef& s : streams) in.push_back(run.in(s));
        cpu::tap(in, n, run.out(out), run.numerics());
    };
}

} // namespace dsv4::cpu::ops
