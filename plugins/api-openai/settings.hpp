// How the operator configured the plugin; read once from its options.
#pragma once

#include "dsv4/sdk/host.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::openai {

enum class ReasoningField : std::uint8_t { both, reasoning_content, reasoning };

struct Settings {
    // Listening.
    std::string host; // a numeric address
    std::uint16_t port = 0;
    bool allow_remote = false; // `host` may be reachable from other machines
    int io_threads = 1;
    int worker_threads = 1; // read bodies and submit, so that a long prompt holds no stream up
    std::int64_t max_connections = 0;

    // Access.
    std::vector<std::string> api_keys; // empty: none is asked for
    bool metrics_without_key = false;
    bool cors = false;
    std::vector<std::string> allowed_origins;
    bool salt_by_key = false; // prefixes are shared only among callers with the same key

    // Limits.
    std::uint64_t max_body_bytes = 0;
    std::uint64_t max_body_memory_bytes = 0; // bodies being read or held, all connections together
    std::uint64_t max_header_bytes = 0;
    std::uint64_t max_send_buffer_bytes = 0;
    double header_timeout_s = 0, body_timeout_s = 0, idle_timeout_s = 0, send_timeout_s = 0;
    double sse_keepalive_s = 0;
    bool ignore_half_close = false;

    // Models.
    std::vector<std::string> served_model_names; // empty: the model's own name
    bool ignore_model = false;

    // What a request means.
    std::int32_t default_thinking = -1; // 1, 0 or DSV4_UNSAID
    std::string default_effort;
    std::int64_t default_max_tokens = 0; // 0: as far as the context allows
    std::int64_t max_n = 1;
    std::optional<double> agent_top_p;
    bool tools = true;
    bool auto_tool_choice = true;
    bool strict_params = false;
    bool drop_unknown_tools = false;
    bool ignore_chat_template = false;
    std::string bos; // what /tokenize puts in front; empty: nothing
    std::string fim_begin, fim_hole, fim_end;

    // What an answer looks like.
    ReasoningField reasoning_field = ReasoningField::both;
    bool always_include_usage = false;
};

// Failure(invalid) names the option. Resolves keys through the host.
Settings read_settings(const sdk::Host& host, const sdk::Options& options);

// The pieces of a list written with commas or newlines; blanks around them are dropped.
std::vector<std::string> split_list(std::string_view text);

} // namespace dsv4::openai
