// Options to settings: ranges are the manifest's business, meaning is checked here.
#include "settings.hpp"

#include "dsv4/chat.h"

#include <algorithm>

namespace dsv4::openai {
namespace {

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
    std::vector<std::string> pieces;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of(separators), text.size());
        if (const std::string_view piece = trimmed(text.substr(0, end)); !piece.empty()) pieces.emplace_back(piece);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return pieces;
}

// A secret holds one key a line. The host's copy is wiped.
void add_keys(const dsv4_host* host, const std::string& reference, std::vector<std::string>& keys) {
    char* text = nullptr;
    std::size_t size = 0;
    sdk::check(host->secret(host->ctx, sdk::str(reference), &text, &size));
    std::vector<std::string> found = split(std::string_view(text, size), "\n");
    host->secret_release(host->ctx, text, size);
    if (found.empty())
        throw Failure(Code::invalid, "option api_key: " + reference + " holds no key", "write one key a line");
    for (std::string& key : found) {
        if (key.size() < 8 || std::any_of(key.begin(), key.end(), [](char c) { return c <= ' ' || c > '~'; }))
            throw Failure(Code::invalid, "option api_key: a key of " + reference + " is too short or not plain ASCII",
                          "use at least 8 printable characters without blanks");
        keys.push_back(std::move(key));
    }
}

std::uint64_t bytes(const sdk::Options& options, std::string_view name) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, options.integer(name)));
}

} // namespace

std::vector<std::string> split_list(std::string_view text) { return split(text, ",\n"); }

Settings read_settings(const sdk::Host& host, const sdk::Options& options) {
    Settings s;
    s.host = options.text("host");
    s.port = static_cast<std::uint16_t>(options.integer("port"));
    s.allow_remote = options.flag("allow_remote");
    s.io_threads = static_cast<int>(options.integer("io_threads"));
    s.worker_threads = static_cast<int>(options.integer("worker_threads"));
    s.max_connections = options.integer("max_connections");

    for (const std::string& reference : split_list(options.text("api_key"))) {
        if (!reference.starts_with("env:") && !reference.starts_with("file:"))
            throw Failure(Code::invalid, "option api_key must name where a key is kept, not be the key",
                          "write env:NAME or file:PATH");
        add_keys(host.table(), reference, s.api_keys);
    }
    s.metrics_without_key = options.flag("metrics_without_key");
    s.cors = options.flag("cors");
    s.allowed_origins = split_list(options.text("allowed_origins"));
    s.salt_by_key = options.text("cache_salt") == "api_key";

    s.max_body_bytes = bytes(options, "max_body_bytes");
    s.max_body_memory_bytes = std::max(bytes(options, "max_body_memory"), s.max_body_bytes);
    s.max_header_bytes = bytes(options, "max_header_bytes");
    s.max_send_buffer_bytes = bytes(options, "max_send_buffer");
    s.header_timeout_s = options.number("header_timeout");
    s.body_timeout_s = options.number("body_timeout");
    s.idle_timeout_s = options.number("idle_timeout");
    s.send_timeout_s = options.number("send_timeout");
    s.sse_keepalive_s = options.number("sse_keepalive");
    s.ignore_half_close = options.flag("ignore_half_close");

    s.served_model_names = split_list(options.text("served_model_name"));
    s.ignore_model = options.flag("ignore_model");

    const std::string thinking = options.text("default_thinking");
    s.default_thinking = thinking == "on" ? 1 : thinking == "off" ? 0 : DSV4_UNSAID;
    s.default_effort = options.text("default_effort");
    s.default_max_tokens = options.integer("default_max_tokens");
    s.max_n = options.integer("max_n");
    if (const double top_p = options.number("agent_top_p"); top_p > 0) s.agent_top_p = top_p;
    s.tools = options.flag("tools");
    s.auto_tool_choice = options.flag("auto_tool_choice");
    s.strict_params = options.flag("strict_params");
    s.drop_unknown_tools = options.flag("drop_unknown_tools");
    s.ignore_chat_template = options.flag("ignore_chat_template");
    s.bos = options.text("bos");
    s.fim_begin = options.text("fim_begin");
    s.fim_hole = options.text("fim_hole");
    s.fim_end = options.text("fim_end");

    const std::string field = options.text("reasoning_field");
    s.reasoning_field = field == "reasoning"           ? ReasoningField::reasoning
                        : field == "reasoning_content" ? ReasoningField::reasoning_content
                                                       : ReasoningField::both;
    s.always_include_usage = options.flag("always_include_usage");
    return s;
}

} // namespace dsv4::openai
