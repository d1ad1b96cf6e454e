// The fields that chat and text completions share.
#pragma once

#include "call.hpp"
#include "fields.hpp"

namespace dsv4::openai {

// Model name, streaming, n, limits, sampling, stops, cache salt and priority into `request` and `call`.
void read_common(const Fields& fields, const TranslateContext& context, Call& call, dsv4_generate_request& request);

// The model name alone; Refusal 404 for one that is not served.
void read_model(const Fields& fields, const TranslateContext& context, Call& call);

// Notes, or with strict_params refuses, the members of the body that nobody reads.
void read_unknown(const Fields& fields, const TranslateContext& context, Call& call);

// What a body says about the shape of the text: at most one of these in a request.
struct Constraint {
    enum class Kind : std::uint8_t { none, any_object, schema, grammar };
    Kind kind = Kind::none;
    std::string field; // who asked: "response_format", "guided_json", ...
    std::string text;  // a JSON schema, or EBNF
};
Constraint read_constraint(const Fields& fields);

} // namespace dsv4::openai
