// Reads a text-completions body: raw prompts as text or ids, fill in the middle, legacy logprobs.
#include "request_fields.hpp"

#include "api_error.hpp"
#include "json_text.hpp"

#include "dsv4/sdk/generate.hpp"

#include <optional>

namespace dsv4::openai {
namespace {

constexpr std::size_t max_choices = 256; // prompts x n

struct Prompts {
    std::vector<std::string> texts;             // either these
    std::vector<std::vector<std::int32_t>> ids; // or these
};

std::vector<std::int32_t> ids_of(std::string_view array, const std::string& path, std::uint32_t vocab_size) {
    std::vector<std::int32_t> ids;
    for (const std::string_view item : array_elements(array))
        ids.push_back(read_token_id(item, path + "[" + std::to_string(ids.size()) + "]", vocab_size));
    if (ids.empty()) refuse(path, "must hold at least one token");
    return ids;
}

// A string, strings, token ids, or lists of token ids.
Prompts read_prompts(std::string_view prompt, std::uint32_t vocab_size) {
    Prompts out;
    if (prompt.empty()) refuse("prompt", "is required");
    if (prompt.front() == '"') {
        out.texts.push_back(read_text(prompt, "prompt"));
        return out;
    }
    if (prompt.front() != '[') refuse("prompt", "must be a string, an array of strings or arrays of token ids");
    const auto elements = array_elements(prompt);
    if (elements.empty()) refuse("prompt", "must not be an empty array");
    const char kind = elements.front().front();
    if (kind != '"' && kind != '[') {
        out.ids.push_back(ids_of(prompt, "prompt", vocab_size));
        return out;
    }
    if (elements.size() > max_choices) refuse("prompt", "may hold at most " + std::to_string(max_choices) + " prompts");
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const std::string path = "prompt[" + std::to_string(i) + "]";
        if (elements[i].front() != kind) refuse(path, "is of another kind than prompt[0]");
        if (kind == '"')
            out.texts.push_back(read_text(elements[i], path));
        else
            out.ids.push_back(ids_of(elements[i], path, vocab_size));
    }
    return out;
}

struct RawPrompt {
    bool parse_special, add_special_tokens;
    std::optional<std::string> suffix;
};

void set_text_prompt(std::string text, const RawPrompt& how, const Settings& settings, Call& call,
                     dsv4_generate_request& request) {
    if (how.suffix) text = settings.fim_begin + text + settings.fim_hole + *how.suffix + settings.fim_end;
    request.prompt_text = call.keep(std::move(text));
    request.parse_special = how.parse_special;
    request.add_bos = how.add_special_tokens;
}

void read_constraint_part(const Fields& fields, Call& call, dsv4_generate_request& request) {
    Constraint constraint = read_constraint(fields);
    if (constraint.kind == Constraint::Kind::none) return;
    call.needs_grammar = true;
    call.grammar_field = constraint.field;
    request.grammar = call.keep(std::move(constraint.text));
    request.grammar_syntax =
        constraint.kind == Constraint::Kind::grammar ? DSV4_GRAMMAR_EBNF : DSV4_GRAMMAR_JSON_SCHEMA;
}

} // namespace

std::unique_ptr<Call> read_completion(std::string body, const TranslateContext& context) {
    auto call = std::make_unique<Call>();
    call->kind = CallKind::completion;
    call->body = std::move(body);
    repair_surrogates(call->body);
    const Fields fields(call->body);
    dsv4_generate_request shared = sdk::default_request();
    read_common(fields, context, *call, shared);
    read_constraint_part(fields, *call, shared);
    if (call->needs_grammar && !context.can_constrain)
        refuse_unsupported(call->grammar_field, "cannot be enforced here: this server has no grammar service");
    if (const auto top = fields.integer("logprobs", 0, 20)) {
        call->logprobs = true;
        shared.sampling.logprobs = std::int32_t(*top);
    }
    call->echo = fields.flag("echo", false);
    shared.echo = call->echo;

    Prompts prompts = read_prompts(fields.raw("prompt"), context.vocab_size());
    RawPrompt how{fields.flag("parse_special", true), fields.flag("add_special_tokens", true), fields.text("suffix")};
    if (how.suffix && how.suffix->empty()) how.suffix.reset();
    if (how.suffix && prompts.texts.size() != 1) refuse("suffix", "needs a prompt that is one string");
    if (how.suffix && !how.parse_special) refuse("suffix", "needs parse_special, which marks where the gap is");
    if (how.suffix && call->echo) refuse("suffix", "cannot be combined with echo");
    if ((prompts.texts.size() + prompts.ids.size()) * shared.n > max_choices)
        refuse("n", "times the number of prompts may be at most " + std::to_string(max_choices));
    for (std::string& text : prompts.texts) {
        dsv4_generate_request request = shared;
        set_text_prompt(std::move(text), how, context.settings, *call, request);
        call->requests.push_back(request);
    }
    for (std::vector<std::int32_t>& list : prompts.ids) {
        dsv4_generate_request request = shared;
        const auto& ids = call->id_lists.emplace_back(std::move(list));
        request.prompt_ids = ids.data();
        request.prompt_id_count = ids.size();
        call->requests.push_back(request);
    }
    call->set_context({}, {}, {});
    return call;
}

} // namespace dsv4::openai
