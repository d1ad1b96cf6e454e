// The names of DeepSeek-V4's control tokens that this plugin writes or reads, and which of them end a turn.
//
// Names are spelled exactly as in the tokenizer's added-token table. The bars are U+FF5C, the low line is U+2581.
#pragma once

#include <array>
#include <string_view>

namespace dsv4::deepseek_v4::control {

inline constexpr std::string_view bos = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view eos = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view user = "<｜User｜>";
inline constexpr std::string_view assistant = "<｜Assistant｜>";
inline constexpr std::string_view think_open = "<think>";
inline constexpr std::string_view think_close = "</think>";
inline constexpr std::string_view dsml = "｜DSML｜";
inline constexpr std::string_view latest_reminder = "<｜latest_reminder｜>";
inline constexpr std::string_view action = "<｜action｜>";
inline constexpr std::string_view query = "<｜query｜>";
inline constexpr std::string_view authority = "<｜authority｜>";
inline constexpr std::string_view domain = "<｜domain｜>";
inline constexpr std::string_view title = "<｜title｜>";
inline constexpr std::string_view read_url = "<｜read_url｜>";

// Everything the encoder may write: a tokenizer that lacks one of these is not this model's.
inline constexpr std::array<std::string_view, 14> written = {
    bos,    eos,   user,      assistant, think_open, think_close, dsml, latest_reminder,
    action, query, authority, domain,    title,      read_url};

// Generation stops at any of these. Only EOS ends a turn properly; a model that starts a new turn by itself (BOS or the
// user marker) has nothing more to say to this request.
inline constexpr std::array<std::string_view, 3> stops = {eos, bos, user};

// Never sampled where the request has no usable tools: without it no tool call can begin.
inline constexpr std::array<std::string_view, 1> banned_without_tools = {dsml};

} // namespace dsv4::deepseek_v4::control
