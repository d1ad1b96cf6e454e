// The three passes over a conversation that come before rendering.
#include "turns.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace dsv4::deepseek_v4 {

std::vector<Message> merge_turns(std::vector<Message> messages) {
    std::vector<Message> out;
    out.reserve(messages.size());
    for (Message& message : messages) {
        if (message.role != Role::user && message.role != Role::tool) {
            out.push_back(std::move(message));
            continue;
        }
        const bool is_tool = message.role == Role::tool;
        Block block{is_tool ? Block::Kind::tool_result : Block::Kind::text,
                    is_tool ? std::move(message.tool_call_id) : std::string{}, std::move(message.content)};
        const bool joins = !out.empty() && out.back().role == Role::user && (is_tool || !out.back().task);
        if (!joins) {
            Message turn;
            turn.role = Role::user;
            turn.role_name = "user";
            if (!is_tool) {
                turn.task = std::move(message.task);
                turn.wo_eos = message.wo_eos;
            }
            out.push_back(std::move(turn));
        }
        out.back().blocks.push_back(std::move(block));
    }
    return out;
}

void sort_tool_results(std::vector<Message>& messages) {
    std::unordered_map<std::string, std::size_t> call_order;
    for (Message& message : messages) {
        if (message.role == Role::assistant && !message.tool_calls.empty()) {
            call_order.clear();
            for (std::size_t i = 0; i < message.tool_calls.size(); ++i)
                if (!message.tool_calls[i].id.empty()) call_order[message.tool_calls[i].id] = i;
        } else if (message.role == Role::user && !call_order.empty()) {
            std::vector<std::size_t> slots;                                 // where tool results stand
            std::vector<std::pair<std::size_t, std::size_t>> call_and_slot; // the slot breaks ties
            for (std::size_t i = 0; i < message.blocks.size(); ++i) {
                if (message.blocks[i].kind != Block::Kind::tool_result) continue;
                const auto found = call_order.find(message.blocks[i].call_id);
                slots.push_back(i);
                call_and_slot.emplace_back(found == call_order.end() ? 0 : found->second, i);
            }
            std::sort(call_and_slot.begin(), call_and_slot.end());
            std::vector<Block> sorted;
            sorted.reserve(slots.size());
            for (const auto& [call, slot] : call_and_slot) sorted.push_back(std::move(message.blocks[slot]));
            for (std::size_t i = 0; i < slots.size(); ++i) message.blocks[slots[i]] = std::move(sorted[i]);
        }
    }
}

bool any_tools(const std::vector<Message>& messages) {
    return std::any_of(messages.begin(), messages.end(), [](const Message& m) { return !m.tools.empty(); });
}

std::ptrdiff_t last_user_index(const std::vector<Message>& messages) {
    for (std::size_t i = messages.size(); i-- > 0;)
        if (messages[i].role == Role::user || messages[i].role == Role::developer)
            return static_cast<std::ptrdiff_t>(i);
    return -1;
}

void drop_old_reasoning(std::vector<Message>& messages, std::size_t& context_count) {
    const std::ptrdiff_t last_user = last_user_index(messages);
    std::vector<Message> kept;
    kept.reserve(messages.size());
    std::size_t kept_context = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        Message& message = messages[i];
        if (static_cast<std::ptrdiff_t>(i) < last_user) {
            if (message.role == Role::developer || message.role == Role::other) continue;
            if (message.role == Role::assistant) message.reasoning.reset();
        }
        if (i < context_count) ++kept_context;
        kept.push_back(std::move(message));
    }
    messages = std::move(kept);
    context_count = kept_context;
}

} // namespace dsv4::deepseek_v4
