// Reshapes a conversation before rendering: user turns merged, tool results put in call order, old reasoning dropped.
#pragma once

#include "conversation.hpp"

#include <cstddef>
#include <vector>

namespace dsv4::deepseek_v4 {

// Every run of user and tool messages becomes one user message made of blocks. A user message that follows one with a
// `task` starts a new turn. Of a user message's other fields only `task` and `wo_eos` survive.
std::vector<Message> merge_turns(std::vector<Message> messages);

// Puts each user turn's tool results in the order of the calls they answer; texts keep their places. A result whose id
// is unknown sorts with the first call.
void sort_tool_results(std::vector<Message>& messages);

bool any_tools(const std::vector<Message>& messages);

// Index of the last user or developer message, or -1.
std::ptrdiff_t last_user_index(const std::vector<Message>& messages);

// Before the last user or developer message: assistant turns lose their reasoning, developer and unknown messages go.
// `context_count` (how many messages at the front are context) is kept in step.
void drop_old_reasoning(std::vector<Message>& messages, std::size_t& context_count);

} // namespace dsv4::deepseek_v4
