// The compilers of single ops, by family; each checks its op and returns what runs it.
#pragma once

#include "builder.hpp"

namespace dsv4::cpu::ops {

using Runner = std::function<void(Run&)>;

// ops_streams.cpp
Runner embed(Builder&);
Runner hc_pre(Builder&);
Runner hc_post(Builder&);
Runner hc_head(Builder&);
Runner norm(Builder&);
Runner tap(Builder&);
// ops_linear.cpp
Runner linear(Builder&);
Runner group_linear(Builder&);
Runner head(Builder&);
Runner route(Builder&);
Runner experts(Builder&);
// ops_attention.cpp
Runner head_norm_rope(Builder&);
Runner index_query(Builder&);
Runner kv_store(Builder&);
Runner kv_rows(Builder&);
Runner compress(Builder&);
Runner index_select(Builder&);
Runner attend(Builder&);
// ops_sampling.cpp
Runner mask(Builder&);
Runner sample(Builder&);
Runner verify(Builder&);
Runner markov_step(Builder&);
// ops_collective.cpp
Runner copy_rows(Builder&); // all_reduce, all_gather, reduce_scatter, combine of one rank
Runner dispatch(Builder&);

} // namespace dsv4::cpu::ops
