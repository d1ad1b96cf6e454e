// Everything of the API that needs no network: bodies to calls, and the routes that answer at once.
#pragma once

#include "answer.hpp"
#include "call.hpp"
#include "control_splitter.hpp"
#include "route.hpp"
#include "settings.hpp"

#include "dsv4/sdk/host.hpp"

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::openai {

struct Reply {
    int status = 200;
    std::string content_type = "application/json";
    std::string body;
    std::optional<int> retry_after_s;
};

Reply error_reply(const ApiError& error);

// Any thread once made. Functions that read a body throw Refusal or Failure; call `as_error` where they end.
class Front {
  public:
    Front(const sdk::Host& host, Settings settings);

    const Settings& settings() const noexcept { return settings_; }
    const dsv4_host* host() const noexcept { return host_.table(); }
    const sdk::Host& log() const noexcept { return host_; }

    // A chat or completions body.
    std::unique_ptr<Call> read(Route route, std::string body) const;
    std::unique_ptr<Answer> answer(const Call& call, std::string_view request_id) const;

    // Routes other than chat and completions. `argument` as in RouteMatch.
    Reply reply(Route route, std::string_view argument, std::string body, bool draining) const;

    // The exception in flight as an error answer; logs what is the server's own fault. Only inside a catch block.
    ApiError as_error() const;

  private:
    struct Engine { // what the generation service says of itself
        std::string model;
        std::int64_t max_model_len = 0, running = 0, waiting = 0;
        bool ready = false;
    };
    Engine describe() const;
    std::vector<std::string> served_names() const;
    TranslateContext context(const std::vector<std::string>& models) const;
    const dsv4_generate_service& service() const;
    const dsv4_tokenizer_service& tokenizer() const;
    void note_unknown(const Call& call) const;

    Reply models(std::string_view wanted) const;
    Reply health(bool draining) const;
    Reply version() const;
    Reply load() const;
    Reply metrics() const;
    Reply tokenize(std::string body) const;
    Reply detokenize(std::string body) const;
    Reply render(std::string body) const;
    std::vector<std::int32_t> encode(std::string_view text, bool parse_special, bool bos) const;
    std::vector<std::int32_t> encode_chat(const Call& call) const;
    std::string text_of(const std::vector<std::int32_t>& ids) const;

    sdk::Host host_;
    Settings settings_;
    std::int64_t created_s_;
    mutable std::once_flag splitter_made_;
    mutable std::unique_ptr<ControlSplitter> splitter_;
    mutable std::mutex noted_mutex_;
    mutable std::set<std::string> noted_; // unknown fields that were logged
};

} // namespace dsv4::openai
