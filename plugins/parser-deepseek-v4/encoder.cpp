// Renders a prepared conversation: role texts, tool blocks, tool calls and the markers between turns.
#include "encoder.hpp"

#include "control_tokens.hpp"
#include "markup.hpp"
#include "prompt_texts.hpp"
#include "turns.hpp"

#include <array>
#include <utility>

namespace dsv4::deepseek_v4 {
namespace {

// Collects segments; joins texts.
class PromptWriter {
  public:
    void control(std::string_view name) { segments_.push_back({true, std::string(name)}); }
    void text(std::string_view text) {
        if (text.empty()) return;
        if (segments_.empty() || segments_.back().is_control) segments_.push_back({false, {}});
        segments_.back().text += text;
    }
    // A text of this program: the markers spelled in it become control segments. Never pass a client's text.
    void trusted_text(std::string_view text_with_markers) {
        static constexpr std::array markers = {control::dsml, control::think_open, control::think_close};
        std::string_view rest = text_with_markers;
        while (!rest.empty()) {
            std::size_t at = std::string_view::npos;
            std::string_view marker;
            for (std::string_view candidate : markers)
                if (const std::size_t found = rest.find(candidate); found < at) at = found, marker = candidate;
            text(rest.substr(0, at));
            if (at == std::string_view::npos) return;
            control(marker);
            rest.remove_prefix(at + marker.size());
        }
    }
    void open_tag(std::string_view tag) {
        text("<");
        control(control::dsml);
        text(tag);
    }
    void close_tag(std::string_view tag) {
        text("</");
        control(control::dsml);
        text(tag);
        text(">");
    }
    std::vector<Segment> take() { return std::move(segments_); }

  private:
    std::vector<Segment> segments_;
};

std::string_view effort_text(Variant variant, Effort effort) {
    if (variant == Variant::v4_preview) {
        if (effort == Effort::low)
            throw Failure(Code::invalid, "reasoning effort 'low' does not exist in the v4-preview encoding",
                          "use high or max, or serve the 0731 checkpoint");
        return effort == Effort::max ? prompt_texts::effort_high : std::string_view{};
    }
    switch (effort) {
    case Effort::unset:
    case Effort::low: return {};
    case Effort::high: return prompt_texts::effort_high;
    case Effort::max: return prompt_texts::effort_max;
    }
    throw Failure(Code::invalid, "reasoning effort is not one of unset, low, high and max");
}

std::string_view task_token(std::string_view task) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> tokens = {{
        {"action", control::action},
        {"query", control::query},
        {"authority", control::authority},
        {"domain", control::domain},
        {"title", control::title},
        {"read_url", control::read_url},
    }};
    for (const auto& [name, token] : tokens)
        if (name == task) return token;
    throw Failure(Code::invalid, "task '" + std::string(task) + "' is not one that this model has",
                  "use action, query, authority, domain, title or read_url");
}

class Renderer {
  public:
    Renderer(std::vector<Message> messages, std::size_t context_count, const EncodeOptions& options)
        : messages_(std::move(messages)),
          context_count_(context_count),
          options_(options),
          thinking_(options.mode == ThinkingMode::thinking),
          drop_(options.drop_thinking && !any_tools(messages_)) {
        if (thinking_ && drop_) drop_old_reasoning(messages_, context_count_);
        last_user_ = last_user_index(messages_);
    }

    std::vector<Segment> render() {
        const std::string_view effort = effort_text(options_.variant, options_.effort); // checked in every mode
        if (options_.add_bos && context_count_ == 0) out_.control(control::bos);
        for (std::size_t i = context_count_; i < messages_.size(); ++i) {
            if (i == 0 && thinking_) out_.text(effort);
            render_message(i);
            render_transition(i);
        }
        if (options_.always_open_turn && !messages_.empty() && !turn_is_open()) open_turn(thinking_);
        return out_.take();
    }

  private:
    void open_turn(bool with_thinking) {
        out_.control(control::assistant);
        out_.control(with_thinking ? control::think_open : control::think_close);
    }

    bool turn_is_open() const {
        const Message& last = messages_.back();
        return last.role == Role::user || last.role == Role::developer || last.task ||
               (last.role == Role::assistant && last.wo_eos);
    }

    void render_message(std::size_t i) {
        const Message& message = messages_[i];
        switch (message.role) {
        case Role::system:
            out_.text(message.content);
            render_attachments(message);
            return;
        case Role::developer:
            if (message.content.empty())
                throw Failure(Code::invalid, "developer message " + std::to_string(i) + " has no content",
                              "give it text or remove it");
            out_.control(control::user);
            out_.text(message.content);
            render_attachments(message);
            return;
        case Role::user: render_user(message); return;
        case Role::assistant: render_assistant(i); return;
        case Role::latest_reminder:
            out_.control(control::latest_reminder);
            out_.text(message.content);
            return;
        case Role::tool: // merged into user turns before
        case Role::other: break;
        }
        throw Failure(Code::invalid,
                      "message " + std::to_string(i) + " has the unknown role '" + message.role_name + "'",
                      "use system, developer, user, assistant, tool or latest_reminder");
    }

    void render_user(const Message& message) {
        out_.control(control::user);
        std::string_view separator;
        for (const Block& block : message.blocks) {
            out_.text(separator);
            separator = "\n\n";
            const bool is_result = block.kind == Block::Kind::tool_result;
            if (is_result) out_.text(markup::tool_result_open);
            out_.text(block.content);
            if (is_result) out_.text(markup::tool_result_close);
        }
    }

    // Tools and response format of a system or developer message.
    void render_attachments(const Message& message) {
        if (!message.tools.empty()) {
            out_.text("\n\n");
            out_.trusted_text(prompt_texts::tools_before_schemas);
            std::string_view separator;
            for (const JsonValue& function : message.tools) {
                out_.text(separator);
                out_.text(to_text(function));
                separator = "\n";
            }
            out_.text(prompt_texts::tools_after_schemas);
        }
        if (message.response_format) {
            out_.text("\n\n");
            out_.text(prompt_texts::response_format_before_schema);
            out_.text(to_text(*message.response_format));
        }
    }

    void render_assistant(std::size_t i) {
        const Message& message = messages_[i];
        const bool after_task = i > 0 && messages_[i - 1].task;
        if (thinking_ && !after_task && (!drop_ || static_cast<std::ptrdiff_t>(i) > last_user_)) {
            if (message.reasoning) out_.text(*message.reasoning);
            out_.control(control::think_close);
        }
        out_.text(message.content);
        if (!message.tool_calls.empty()) render_calls(message, i);
        if (!message.wo_eos) out_.control(control::eos);
    }

    void render_calls(const Message& message, std::size_t i) {
        out_.text("\n\n");
        out_.open_tag(markup::wrapper);
        out_.text(">\n");
        for (const ToolCall& call : message.tool_calls) {
            out_.open_tag(markup::invoke);
            out_.text(" name=\"");
            out_.text(call.name);
            out_.text("\">\n");
            render_arguments(call, i);
            out_.text("\n");
            out_.close_tag(markup::invoke);
            out_.text("\n");
        }
        out_.close_tag(markup::wrapper);
    }

    void render_arguments(const ToolCall& call, std::size_t i) {
        const Result<JsonValue> arguments = parse_json(call.arguments, "arguments");
        if (!arguments.ok()) return render_parameter("arguments", true, call.arguments);
        if (!arguments->is_object())
            throw Failure(Code::invalid,
                          "the arguments of call '" + call.name + "' in message " + std::to_string(i) +
                              " are JSON but not an object",
                          "send an object, such as {\"city\": \"Brest\"}");
        std::string_view separator;
        for (const auto& [key, value] : arguments->members()) {
            out_.text(separator);
            separator = "\n";
            render_parameter(key, value.is_string(), value.is_string() ? value.text() : to_text(value));
        }
    }

    void render_parameter(std::string_view key, bool is_string, std::string_view value) {
        out_.open_tag(markup::parameter);
        out_.text(" name=\"");
        out_.text(key);
        out_.text(is_string ? "\" string=\"true\">" : "\" string=\"false\">");
        out_.text(value);
        out_.close_tag(markup::parameter);
    }

    void render_transition(std::size_t i) {
        const Message& message = messages_[i];
        const std::string_view token = message.task ? task_token(*message.task) : std::string_view{};
        if (i + 1 < messages_.size()) {
            const Role next = messages_[i + 1].role;
            if (next != Role::assistant && next != Role::latest_reminder) return;
        }
        if (message.task) {
            if (token == control::action) open_turn(thinking_);
            out_.control(token);
        } else if (message.role == Role::user || message.role == Role::developer) {
            open_turn(thinking_ && (!drop_ || static_cast<std::ptrdiff_t>(i) >= last_user_));
        }
    }

    std::vector<Message> messages_;
    std::size_t context_count_;
    const EncodeOptions& options_;
    bool thinking_;
    bool drop_;
    std::ptrdiff_t last_user_ = -1;
    PromptWriter out_;
};

} // namespace

Result<std::vector<Segment>> encode(std::vector<Message> messages, const EncodeOptions& options,
                                    std::vector<Message> context) {
    return guard([&] {
        std::vector<Message> all = merge_turns(std::move(context));
        const std::size_t context_count = all.size();
        for (Message& message : merge_turns(std::move(messages))) all.push_back(std::move(message));
        sort_tool_results(all);
        return Renderer(std::move(all), context_count, options).render();
    });
}

bool ends_in_reasoning(std::span<const Segment> segments) noexcept {
    return !segments.empty() && segments.back().is_control && segments.back().text == control::think_open;
}

std::string prompt_text(std::span<const Segment> segments) {
    std::string out;
    for (const Segment& segment : segments) out += segment.text;
    return out;
}

} // namespace dsv4::deepseek_v4
