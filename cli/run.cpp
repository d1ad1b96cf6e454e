// `dsv4 run`: answers one conversation through the whole serving path, without a server.
#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "core/runtime/deployment.hpp"
#include "dsl/compile.hpp"
#include "dsv4/api.h"
#include "dsv4/sdk/error.hpp"
#include "dsv4/sdk/generate.hpp"

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <simdjson.h>

namespace dsv4::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t max_messages_bytes = std::size_t{64} << 20;

// The conversation as a generate request: from --prompt, an array of messages, or a chat-completions body that the
// pipeline's api plugin translates. Owns what the request points to.
class Conversation {
  public:
    Conversation(const RunOptions& options, runtime::Deployment& deployment) : api_(nullptr) {
        const std::string text = options.prompt.empty() && !options.messages_file.empty()
                                     ? read_text(options.messages_file, max_messages_bytes)
                                     : user_message(options.prompt);
        if (is_object(text, options.messages_file))
            translate(text, deployment);
        else
            plain(text);
        if (options.temperature) say(request_.sampling.temperature, float(*options.temperature), DSV4_SAID_TEMPERATURE);
        if (options.seed) say(request_.sampling.seed, std::uint64_t(*options.seed), DSV4_SAID_SEED);
        if (options.max_tokens) request_.limits.max_tokens = *options.max_tokens;
    }
    ~Conversation() {
        if (translation_) api_->table<dsv4_api_table>().translation_release(api_->self(), translation_);
    }
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;

    const dsv4_generate_request& request() const noexcept { return request_; }

  private:
    static std::string user_message(const std::string& prompt) {
        try {
            return Json::array({{{"role", "user"}, {"content", prompt}}}).dump();
        } catch (const Json::exception&) {
            throw Failure(Code::invalid, "--prompt is not UTF-8");
        }
    }

    static bool is_object(const std::string& text, const std::string& file) {
        simdjson::dom::parser parser;
        simdjson::dom::element root;
        if (parser.parse(text).get(root)) throw Failure(Code::invalid, "'" + file + "' is not valid JSON");
        if (root.is_object()) return true;
        if (root.is_array()) return false;
        throw Failure(Code::invalid, "'" + file + "' is neither an array of messages nor a chat-completions body");
    }

    void plain(const std::string& text) {
        messages_ = text;
        chat_.struct_size = sizeof chat_;
        chat_.thinking = chat_.continue_final_message = chat_.default_thinking = DSV4_UNSAID;
        chat_.messages = sdk::str(messages_);
        request_ = sdk::default_request();
        request_.chat = &chat_;
    }

    void translate(const std::string& body, runtime::Deployment& deployment) {
        api_ = &deployment.api();
        const auto& table = api_->table<dsv4_api_table>();
        sdk::check(table.translate(api_->self(), sdk::str("/v1/chat/completions"), sdk::str(body), &translation_));
        if (translation_->http_status != 200 || !translation_->request) {
            const auto error = Json::parse(std::string(sdk::view(translation_->error_json)), nullptr, false);
            std::string message = "the body is refused";
            if (error.is_object() && error.contains("error") && error["error"].is_object())
                message = error["error"].value("message", message);
            throw Failure(Code::invalid, message);
        }
        request_ = *translation_->request;
    }

    template <class T> void say(T& member, T value, std::uint64_t bit) {
        member = value;
        request_.sampling_said |= bit;
    }

    const plugin::Instance* api_;
    const dsv4_translation* translation_ = nullptr;
    std::string messages_;
    dsv4_chat_request chat_{};
    dsv4_generate_request request_{};
};

struct Call {
    std::string name, arguments;
};
struct Answer {
    std::string reasoning, content;
    std::vector<Call> calls;
    std::string finish_reason;
};

constexpr const char* finish_name(std::int32_t reason) {
    switch (reason) {
    case DSV4_REASON_LENGTH: return "length";
    case DSV4_REASON_TOOL_CALLS: return "tool_calls";
    case DSV4_REASON_CANCELLED: return "cancelled";
    case DSV4_REASON_DEADLINE: return "deadline";
    default: return "stop";
    }
}

// Takes the events of one request; shows content as it comes unless `quiet`.
class Listener {
  public:
    Listener(engine::Engine& engine, bool quiet) : engine_(engine), quiet_(quiet), dim_(color_on_stderr()) {}

    void listen(const dsv4_generate_request& request) {
        const auto& service = engine::Engine::service();
        dsv4_request_handle* handle = nullptr;
        sdk::check(service.submit(&engine_, &request, &handle));
        answers_.resize(request.n);
        std::uint32_t finished = 0;
        std::optional<Error> error;
        while (finished < request.n && !error) {
            const dsv4_event* event = nullptr;
            if (dsv4_error* failed = service.next(&engine_, handle, 1000000, &event)) {
                error = sdk::take_error(failed);
                break;
            }
            if (!event) continue;
            switch (event->kind) {
            case DSV4_EVENT_ACCEPTED: id_ = std::string(sdk::view(event->request_id)); break;
            case DSV4_EVENT_TOKENS: take(*event); break;
            case DSV4_EVENT_FINISHED:
                answers_[event->index].finish_reason = finish_name(event->reason);
                add(event->usage);
                ++finished;
                break;
            case DSV4_EVENT_ERROR:
                error = Error{event->code >= 1 && event->code <= 9 ? Code(event->code) : Code::internal,
                              std::string(sdk::view(event->message)),
                              {}};
                break;
            }
        }
        service.release(&engine_, handle);
        if (error) throw Failure(std::move(*error));
    }

    // What streaming did not show: tool calls, the last newline, why it stopped early.
    void close() {
        for (const Answer& answer : answers_) {
            if (quiet_) std::fputs(answer.content.c_str(), stdout);
            if (!answer.content.empty() && answer.content.back() != '\n') std::fputs("\n", stdout);
            for (const Call& call : answer.calls)
                std::fputs((Json{{"name", call.name}, {"arguments", call.arguments}}.dump() + "\n").c_str(), stdout);
            std::fflush(stdout); // the note comes behind the answer
            if (answer.finish_reason == "length")
                std::fputs("note: stopped at the token limit (--max-tokens or context.max_model_len)\n", stderr);
        }
    }

    Json completion(const std::string& model) const {
        Json choices = Json::array();
        for (std::size_t i = 0; i < answers_.size(); ++i) {
            const Answer& a = answers_[i];
            Json message{{"role", "assistant"},
                         {"content", a.content.empty() && !a.calls.empty() ? Json(nullptr) : Json(a.content)}};
            if (!a.reasoning.empty()) message["reasoning_content"] = message["reasoning"] = a.reasoning;
            for (std::size_t c = 0; c < a.calls.size(); ++c)
                message["tool_calls"].push_back(
                    {{"id", "call_" + id_ + "_" + std::to_string(i) + "_" + std::to_string(c)},
                     {"type", "function"},
                     {"function", {{"name", a.calls[c].name}, {"arguments", a.calls[c].arguments}}}});
            choices.push_back(
                {{"index", i}, {"message", message}, {"logprobs", nullptr}, {"finish_reason", a.finish_reason}});
        }
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        return {{"id", "chatcmpl-" + id_},
                {"object", "chat.completion"},
                {"created", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
                {"model", model},
                {"choices", choices},
                {"usage",
                 {{"prompt_tokens", usage_.prompt_tokens},
                  {"completion_tokens", usage_.completion_tokens},
                  {"total_tokens", usage_.prompt_tokens + usage_.completion_tokens},
                  {"prompt_tokens_details", {{"cached_tokens", usage_.cached_tokens}}},
                  {"completion_tokens_details", {{"reasoning_tokens", usage_.reasoning_tokens}}}}}};
    }

  private:
    void take(const dsv4_event& event) {
        Answer& answer = answers_[event.index];
        for (std::uint32_t i = 0; i < event.delta_count; ++i) {
            const dsv4_delta& delta = event.deltas[i];
            const std::string text(sdk::view(delta.text));
            switch (delta.kind) {
            case DSV4_DELTA_REASONING:
                answer.reasoning += text;
                if (!quiet_ && dim_) std::fputs(("\033[2m" + text + "\033[0m").c_str(), stderr);
                break;
            case DSV4_DELTA_CONTENT:
                if (!quiet_ && dim_ && answer.content.empty() && !answer.reasoning.empty()) std::fputs("\n", stderr);
                answer.content += text;
                if (!quiet_) {
                    std::fputs(text.c_str(), stdout);
                    std::fflush(stdout);
                }
                break;
            case DSV4_DELTA_TOOL_BEGIN: answer.calls.push_back({text, ""}); break;
            case DSV4_DELTA_TOOL_ARGUMENTS: answer.calls.at(delta.index).arguments += text; break;
            }
        }
    }

    // The prompt is one, however many answers it got.
    void add(const dsv4_usage& usage) {
        usage_.prompt_tokens = usage.prompt_tokens;
        usage_.cached_tokens = usage.cached_tokens;
        usage_.completion_tokens += usage.completion_tokens;
        usage_.reasoning_tokens += usage.reasoning_tokens;
    }

    engine::Engine& engine_;
    const bool quiet_, dim_;
    std::string id_;
    std::vector<Answer> answers_;
    dsv4_usage usage_{};
};

} // namespace

int run(const RunOptions& options) {
    return guarded([&] {
        dsl::CompileOptions compile{options.set};
        if (!options.precision.empty()) compile.overrides.push_back("engine.precision=" + options.precision);
        auto compilation = dsl::compile_file(options.pipeline, compile).value();
        std::fputs(dsl::render_human(compilation.diagnostics, compilation.sources, {color_on_stderr()}).c_str(),
                   stderr);
        if (!compilation.plan) return int(findings);

        runtime::DeploymentOptions how;
        how.log.level = host::LogLevel::warning;
        how.any_model = true;
        auto bar = std::make_unique<ProgressBar>("loading weights");
        how.progress = [&](const checkpoint::Progress& p) {
            bar->update(p.done_bytes, p.total_bytes);
            return true;
        };
        runtime::Deployment deployment(*compilation.plan, std::move(how));
        bar.reset();
        const Conversation conversation(options, deployment);
        // Several answers would mix on the terminal: they are shown whole.
        Listener listener(deployment.engine(), options.json || conversation.request().n > 1);
        listener.listen(conversation.request());
        if (options.json) {
            std::puts(listener.completion(plan::model_name(deployment.plan()))
                          .dump(2, ' ', false, Json::error_handler_t::replace)
                          .c_str());
        } else
            listener.close();
        return int(clean);
    });
}

} // namespace dsv4::cli
