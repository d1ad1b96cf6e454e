// Reads a chat-completions body. What the messages and tools mean to the model is the parser's business.
#include "request_fields.hpp"

#include "api_error.hpp"
#include "json_text.hpp"

#include "dsv4/sdk/generate.hpp"

#include <algorithm>
#include <unordered_set>

namespace dsv4::openai {
namespace {

constexpr std::size_t max_tools = 512;

void check_name(std::string_view name, const std::string& path) {
    const auto legal = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    };
    if (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), legal))
        refuse(path, "must be 1 to 64 letters, digits, dots, dashes and underscores");
}

std::string joined_array(const std::vector<std::string_view>& elements) {
    std::string out = "[";
    for (std::size_t i = 0; i < elements.size(); ++i) {
        if (i > 0) out += ", ";
        out += elements[i];
    }
    return out + ']';
}

// Checks the tools and returns them as the client wrote them, without those that are to be dropped.
std::string checked_tools(std::string_view array, const TranslateContext& context) {
    if (array.front() != '[') refuse("tools", "must be an array");
    const std::vector<std::string_view> elements = array_elements(array);
    if (elements.size() > max_tools) refuse("tools", "may hold at most " + std::to_string(max_tools) + " tools");
    std::vector<std::string_view> kept;
    std::unordered_set<std::string> names;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const std::string path = "tools[" + std::to_string(i) + "]";
        if (elements[i].front() != '{') refuse(path, "must be an object");
        const Fields tool(elements[i], path + '.', path);
        const auto type = tool.text("type");
        if (type && *type != "function") {
            if (context.settings.drop_unknown_tools) continue;
            refuse(path + ".type", "must be \"function\"");
        }
        const auto function = tool.object("function");
        if (!function) refuse(path + ".function", "must be an object");
        const auto name = function->text("name");
        if (!name) refuse(path + ".function.name", "must be a string");
        check_name(*name, path + ".function.name");
        if (!names.insert(*name).second) refuse(path + ".function.name", "repeats the name '" + *name + "'");
        kept.push_back(elements[i]);
    }
    return kept.size() == elements.size() ? std::string(array) : joined_array(kept);
}

// The older way to name tools: bare functions.
std::string tools_of_functions(std::string_view array) {
    if (array.front() != '[') refuse("functions", "must be an array");
    std::string out = "[";
    for (const std::string_view function : array_elements(array)) {
        if (out.size() > 1) out += ", ";
        out += R"({"type": "function", "function": )";
        out += function;
        out += '}';
    }
    return out + ']';
}

std::string choice_of_function_call(std::string_view value) {
    if (value.front() != '{') return std::string(value);
    return R"({"type": "function", "function": )" + std::string(value) + '}';
}

bool forces_a_call(std::string_view choice) { return choice == "\"required\"" || choice.starts_with('{'); }

void need_grammar(Call& call, std::string field) {
    call.needs_grammar = true;
    call.grammar_field = std::move(field);
}

void read_tools(const Fields& fields, const TranslateContext& context, Call& call) {
    std::string tools, choice;
    if (fields.has("tools"))
        tools = checked_tools(fields.raw("tools"), context);
    else if (fields.has("functions"))
        tools = checked_tools(tools_of_functions(fields.raw("functions")), context);
    choice = fields.has("tool_choice")     ? std::string(fields.raw("tool_choice"))
             : fields.has("function_call") ? choice_of_function_call(fields.raw("function_call"))
                                           : std::string();
    const bool any = !array_elements(tools).empty();
    if (any && !context.settings.tools) refuse_unsupported("tools", "are switched off on this server");
    if (any && !context.settings.auto_tool_choice && (choice.empty() || choice == "\"auto\"")) choice = "\"none\"";
    if (forces_a_call(choice)) need_grammar(call, "tool_choice");
    if (!tools.empty()) call.chat.tools = call.keep(std::move(tools));
    if (!choice.empty()) call.chat.tool_choice = call.keep(std::move(choice));
    call.parallel_tool_calls = fields.flag("parallel_tool_calls", true);
}

// Any switch that says off wins; it is what the client meant, however many clients stand between.
void read_reasoning(const Fields& fields, Call& call, dsv4_limits* limits) {
    bool on = false, off = false;
    const auto note = [&](std::optional<bool> state) {
        if (state) (*state ? on : off) = true;
    };
    std::optional<std::int64_t> budget = fields.integer("thinking_token_budget", 0);
    if (const std::string_view thinking = fields.raw("thinking"); !thinking.empty()) {
        if (thinking == "true" || thinking == "false") {
            note(thinking == "true");
        } else {
            const auto object = fields.object("thinking");
            const auto type = object->text("type");
            if (type) {
                if (*type != "enabled" && *type != "disabled" && *type != "adaptive" && *type != "auto")
                    refuse("thinking.type", "must be enabled, disabled or adaptive");
                note(*type != "disabled");
            } else {
                refuse("thinking.type", "must be enabled, disabled or adaptive");
            }
            if (!budget) budget = object->integer("budget_tokens", 0);
        }
    }
    note(fields.flag("think"));
    note(fields.flag("enable_thinking"));
    if (!budget) budget = fields.integer("reasoning_budget", -1);
    call.chat.thinking = off ? 0 : on ? 1 : DSV4_UNSAID;
    if (limits && budget) limits->max_reasoning_tokens = *budget;

    std::optional<std::string> effort = fields.text("reasoning_effort");
    for (const char* holder : {"reasoning", "output_config"})
        if (const auto object = fields.object(holder); object && !effort) effort = object->text("effort");
    if (effort) call.chat.effort = call.keep(std::move(*effort));
    call.chat.template_kwargs = call.keep(std::string(fields.raw("chat_template_kwargs")));
}

void read_conversation_part(const Fields& fields, const TranslateContext& context, Call& call, dsv4_limits* limits) {
    call.kind = CallKind::chat;
    call.chat.struct_size = sizeof call.chat;
    call.chat.default_thinking = context.settings.default_thinking;
    call.chat.default_effort = {context.settings.default_effort.data(), context.settings.default_effort.size()};
    const std::string_view messages = fields.raw("messages");
    if (messages.empty()) refuse("messages", "is required");
    call.chat.messages = {messages.data(), messages.size()}; // a slice of call.body
    if (fields.has("chat_template") && !context.settings.ignore_chat_template)
        refuse_unsupported("chat_template", "is not offered: this model's encoder is built in");
    const auto continues = fields.flag("continue_final_message");
    if (continues.value_or(false) && fields.flag("add_generation_prompt", false))
        refuse("continue_final_message", "cannot be combined with add_generation_prompt");
    call.chat.continue_final_message = continues ? std::int32_t(*continues) : DSV4_UNSAID;
    read_tools(fields, context, call);
    read_reasoning(fields, call, limits);
}

void read_constraint_part(const Fields& fields, Call& call, dsv4_generate_request& request) {
    Constraint constraint = read_constraint(fields);
    if (constraint.kind == Constraint::Kind::none) return;
    need_grammar(call, constraint.field);
    switch (constraint.kind) {
    case Constraint::Kind::grammar:
        request.grammar = call.keep(std::move(constraint.text));
        request.grammar_syntax = DSV4_GRAMMAR_EBNF;
        break;
    case Constraint::Kind::schema:
        if (constraint.field != "response_format") {
            call.chat.response_format = call.keep(
                R"({"type": "json_schema", "json_schema": {"name": "answer", "schema": )" + constraint.text + "}}");
            break;
        }
        [[fallthrough]];
    default: call.chat.response_format = call.keep(std::string(fields.raw("response_format")));
    }
}

void read_logprobs(const Fields& fields, Call& call, dsv4_generate_request& request) {
    call.logprobs = fields.flag("logprobs", false);
    const auto top = fields.integer("top_logprobs", 0, 20);
    if (top.value_or(0) > 0 && !call.logprobs) refuse("top_logprobs", "needs logprobs to be true");
    if (call.logprobs) request.sampling.logprobs = std::int32_t(top.value_or(0));
}

} // namespace

std::unique_ptr<Call> read_chat(std::string body, const TranslateContext& context) {
    auto call = std::make_unique<Call>();
    call->body = std::move(body);
    repair_surrogates(call->body);
    const Fields fields(call->body);
    dsv4_generate_request request = sdk::default_request();
    read_common(fields, context, *call, request);
    read_conversation_part(fields, context, *call, &request.limits);
    read_constraint_part(fields, *call, request);
    read_logprobs(fields, *call, request);
    if (call->needs_grammar && !context.can_constrain)
        refuse_unsupported(call->grammar_field, "cannot be enforced here: this server has no grammar service");
    call->include_reasoning = fields.flag("include_reasoning", true);
    const std::string format = fields.text("reasoning_format").value_or("");
    call->reasoning_in_content = !fields.flag("separate_reasoning", true) || format == "none";
    call->echo = fields.flag("echo", false);
    request.echo = call->echo;
    request.chat = &call->chat;
    call->requests.push_back(request);
    call->set_context({}, {}, {});
    return call;
}

std::unique_ptr<Call> read_conversation(std::string body, const TranslateContext& context) {
    auto call = std::make_unique<Call>();
    call->body = std::move(body);
    repair_surrogates(call->body);
    const Fields fields(call->body);
    read_model(fields, context, *call);
    read_conversation_part(fields, context, *call, nullptr);
    return call;
}

} // namespace dsv4::openai
