// The tag names of DSML, the tool-call markup: one place for the encoder, the completion parser and grammars.
//
//   <｜DSML｜tool_calls>
//   <｜DSML｜invoke name="NAME">
//   <｜DSML｜parameter name="KEY" string="true">raw text</｜DSML｜parameter>
//   <｜DSML｜parameter name="KEY" string="false">JSON</｜DSML｜parameter>
//   </｜DSML｜invoke>
//   </｜DSML｜tool_calls>
//
// `｜DSML｜` is one control token; everything around it is ordinary text. V4.1 writes one blank after it, which the
// completion parser accepts and the encoder never writes.
#pragma once

#include <array>
#include <string_view>

namespace dsv4::deepseek_v4::markup {

inline constexpr std::string_view wrapper = "tool_calls";
inline constexpr std::string_view invoke = "invoke";
inline constexpr std::string_view parameter = "parameter";

// Spellings of the wrapper that the completion parser takes: `function_calls` is V3.2's, `calls` V4.1's, the other two
// are slips seen from this model.
inline constexpr std::array<std::string_view, 5> wrapper_spellings = {"tool_calls", "toolcalls", "tool_call",
                                                                      "function_calls", "calls"};

// A lone parameter of one of these names may be a call's whole argument object, wrapped once too often.
inline constexpr std::array<std::string_view, 2> argument_wrappers = {"arguments", "input"};

inline constexpr std::string_view tool_result_open = "<tool_result>";   // plain text, not a token
inline constexpr std::string_view tool_result_close = "</tool_result>"; // plain text, not a token

} // namespace dsv4::deepseek_v4::markup
