// The plugin: this folder's encoder, request layer and completion parser behind the parser contract.
#include "completion_parser.hpp"
#include "control_tokens.hpp"
#include "encoder.hpp"
#include "encoder_input.hpp"
#include "message_reader.hpp"
#include "names.hpp"
#include "request.hpp"
#include "turns.hpp"

#include <dsv4/sdk/parser.hpp>

#include <optional>
#include <string>
#include <utility>

namespace dsv4::deepseek_v4 {
namespace {

// A counter of the host; does nothing where the host keeps none.
class Counter {
  public:
    Counter(const sdk::Host& host, std::string_view name, std::string_view help) : table_(host.table()) {
        if (DSV4_HAS(table_, metric) && DSV4_HAS(table_, metric_update))
            metric_ = table_->metric(table_->ctx, DSV4_METRIC_COUNTER, sdk::str(name), sdk::str(help), nullptr, 0);
    }
    void add(std::size_t count) const {
        if (metric_ && count > 0) table_->metric_update(table_->ctx, metric_, static_cast<double>(count));
    }

  private:
    const dsv4_host* table_;
    dsv4_metric* metric_ = nullptr;
};

// A field's JSON; its errors begin with the field's name and a colon, like all errors about requests.
JsonValue parse_field(dsv4_str text, const std::string& name) {
    return text.size == 0 ? JsonValue{} : parse_json(sdk::view(text), name + ":").value();
}

std::optional<bool> said(std::int32_t value) {
    return value == DSV4_UNSAID ? std::nullopt : std::optional<bool>(value != 0);
}

// The tools array that a completion parser reads back.
std::string tools_text(const std::vector<JsonValue>& functions) {
    std::vector<JsonValue> tools;
    for (const JsonValue& function : functions)
        tools.push_back(JsonValue::object({{"type", JsonValue::string("function")}, {"function", function}}));
    return functions.empty() ? std::string() : to_text(JsonValue::array(std::move(tools)));
}

sdk::Prompt to_prompt(std::vector<Segment> segments, const std::vector<JsonValue>& functions) {
    sdk::Prompt out;
    out.thinking = ends_in_reasoning(segments);
    for (Segment& segment : segments)
        out.segments.push_back(
            {segment.is_control ? DSV4_SEGMENT_CONTROL : DSV4_SEGMENT_TEXT, std::move(segment.text)});
    out.stop_names.assign(control::stops.begin(), control::stops.end());
    out.tools_enabled = !functions.empty();
    out.tools = tools_text(functions);
    if (!out.tools_enabled)
        out.banned_names.assign(control::banned_without_tools.begin(), control::banned_without_tools.end());
    return out;
}

std::string resolved_effort(const EncodeOptions& options) {
    if (options.mode == ThinkingMode::chat) return {};
    return std::string(name_of(options.effort == Effort::unset ? Effort::low : options.effort));
}

class Stream final : public sdk::CompletionStream {
  public:
    Stream(ParserOptions options, const Counter& malformed) : parser_(std::move(options)), malformed_(malformed) {}

    void feed(std::span<const dsv4_piece> pieces, const Sink& sink) override {
        Delta delta;
        for (const dsv4_piece& piece : pieces)
            parser_.feed(sdk::view(piece.bytes), piece.is_control ? Origin::control : Origin::ordinary, delta);
        hand_on(delta, sink);
    }

    dsv4_completion_end finish(dsv4_stopped_by stopped_by, const Sink& sink) override {
        StoppedBy reason = StoppedBy::eos;
        switch (stopped_by) {
        case DSV4_STOPPED_EOS: reason = StoppedBy::eos; break;
        case DSV4_STOPPED_STOP: reason = StoppedBy::stop; break;
        case DSV4_STOPPED_LENGTH: reason = StoppedBy::length; break;
        default:
            throw Failure(Code::invalid, "stopped_by " + std::to_string(stopped_by) + " is not one of dsv4_stopped_by");
        }
        Delta delta;
        parser_.finish(reason, delta);
        hand_on(delta, sink);
        malformed_.add(parser_.malformed() ? 1 : 0);
        dsv4_completion_end end{};
        end.struct_size = sizeof end;
        end.finish = parser_.finish_reason() == Finish::length       ? DSV4_FINISH_LENGTH
                     : parser_.finish_reason() == Finish::tool_calls ? DSV4_FINISH_TOOL_CALLS
                                                                     : DSV4_FINISH_STOP;
        end.malformed = parser_.malformed();
        end.complete_calls = parser_.complete_calls();
        return end;
    }

  private:
    static void hand_on(const Delta& delta, const Sink& sink) {
        if (!delta.reasoning.empty()) sink(DSV4_DELTA_REASONING, 0, delta.reasoning);
        if (!delta.content.empty()) sink(DSV4_DELTA_CONTENT, 0, delta.content);
        for (const ToolCallDelta& call : delta.tool_calls) {
            if (call.name) sink(DSV4_DELTA_TOOL_BEGIN, call.index, *call.name);
            if (!call.arguments.empty()) sink(DSV4_DELTA_TOOL_ARGUMENTS, call.index, call.arguments);
        }
    }

    CompletionParser parser_;
    const Counter& malformed_; // the plugin instance outlives its streams
};

class DeepseekV4 final : public sdk::Parser {
  public:
    DeepseekV4(const sdk::Host& host, const sdk::Options& options)
        : Parser({control::written.begin(), control::written.end()}),
          turns_without_reasoning_(host, "dsv4_parser_turns_without_reasoning_total",
                                   "History turns with tool calls whose reasoning the client did not send back."),
          malformed_(host, "dsv4_parser_malformed_completions_total",
                     "Completions whose text broke the markup's rules and was repaired or cut.") {
        policy_.variant = variant_from_name(options.text("encoding")).value();
        policy_.strict_reasoning = options.flag("strict_reasoning");
        policy_.response_format_in_prompt = options.flag("response_format_in_prompt");
        const std::int64_t limit = options.integer("buffer_limit_bytes");
        if (limit < 4096)
            throw Failure(Code::invalid, "buffer_limit_bytes = " + std::to_string(limit) + " is too small",
                          "give at least 4096");
        buffer_limit_bytes_ = static_cast<std::size_t>(limit);
    }

    sdk::Prompt encode(const dsv4_chat_request& request) const override {
        ChatFields fields;
        fields.messages = parse_field(request.messages, "messages");
        fields.tools = parse_field(request.tools, "tools");
        fields.tool_choice = parse_field(request.tool_choice, "tool_choice");
        fields.response_format = parse_field(request.response_format, "response_format");
        fields.template_kwargs = parse_field(request.template_kwargs, "chat_template_kwargs");
        fields.thinking = said(request.thinking);
        fields.continue_final_message = said(request.continue_final_message);
        if (request.effort.size > 0) fields.effort = std::string(sdk::view(request.effort));

        const NormalisedRequest normal = normalise(fields, policy_for(request)).value();
        turns_without_reasoning_.add(normal.turns_without_reasoning);
        sdk::Prompt out = to_prompt(deepseek_v4::encode(normal.messages, normal.options).value(), normal.functions);
        out.effort = resolved_effort(normal.options);
        out.reused_note = reuse_note(normal);
        return out;
    }

    sdk::Prompt encode_messages(std::string_view input_json) const override {
        const EncoderInput input = read_encoder_input(parse_json(input_json, "the encoder input").value()).value();
        std::vector<JsonValue> functions;
        for (const std::vector<Message>* list : {&input.context, &input.messages})
            for (const Message& message : *list)
                functions.insert(functions.end(), message.tools.begin(), message.tools.end());
        sdk::Prompt out =
            to_prompt(deepseek_v4::encode(input.messages, input.options, input.context).value(), functions);
        out.effort = resolved_effort(input.options);
        return out;
    }

    std::unique_ptr<sdk::CompletionStream> stream(const dsv4_completion_options& options) const override {
        ParserOptions out;
        out.thinking = options.thinking != 0;
        out.tools_enabled = options.tools_enabled != 0;
        out.tools = ToolSchemas(read_tools(parse_field(options.tools, "tools"), "tools"));
        out.buffer_limit_bytes = buffer_limit_bytes_;
        return std::make_unique<Stream>(std::move(out), malformed_);
    }

  private:
    RequestPolicy policy_for(const dsv4_chat_request& request) const {
        RequestPolicy policy = policy_;
        if (const auto thinking = said(request.default_thinking)) policy.thinking = *thinking;
        if (request.default_effort.size > 0) {
            const auto effort = effort_from_api_name(sdk::view(request.default_effort), "default_effort").value();
            policy.thinking = policy.thinking && effort.has_value();
            policy.effort = effort.value_or(policy.effort);
        }
        return policy;
    }

    // Without tools a thinking model's earlier reasoning is left out of the next prompt, so that prompt does not begin
    // with what is in the cache.
    static std::string reuse_note(const NormalisedRequest& normal) {
        if (normal.options.mode != ThinkingMode::thinking || normal.tools_enabled) return {};
        const std::ptrdiff_t last_user = last_user_index(normal.messages);
        for (std::ptrdiff_t i = 0; i < last_user; ++i)
            if (normal.messages[static_cast<std::size_t>(i)].role == Role::assistant)
                return "thinking without tools leaves earlier reasoning out of the prompt, so the previous turn's "
                       "cache is "
                       "usable only up to that turn's start";
        return {};
    }

    RequestPolicy policy_;
    std::size_t buffer_limit_bytes_ = 0;
    Counter turns_without_reasoning_;
    Counter malformed_;
};

} // namespace
} // namespace dsv4::deepseek_v4

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.0.0",
                              .licence = "Apache-2.0",
                              .status = DSV4_STATUS_STABLE,
                              .posture = DSV4_POSTURE_UNTRUSTED_INPUT}),
            dsv4::deepseek_v4::DeepseekV4)
