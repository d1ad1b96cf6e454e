// Masks from allowed ids and the host's grammar automaton.
#include "core/engine/grammar.hpp"

#include "dsv4/sdk/error.hpp"

#include <algorithm>

namespace dsv4::engine {

Grammar::Grammar(GrammarHandle service, std::int32_t syntax, std::string_view text) : service_(service) {
    if (!service_.table)
        throw Failure(Code::unsupported,
                      "response_format: this server has no grammar service, so it offers no structured output.");
    sdk::check(service_.table->compile(service_.ctx, syntax, sdk::str(text), &grammar_));
}

Grammar::~Grammar() {
    if (grammar_) service_.table->release(service_.ctx, grammar_);
}

TokenMask::TokenMask(std::int64_t vocab_size, std::span<const std::int32_t> allowed,
                     std::span<const std::int32_t> stop_ids, std::shared_ptr<Grammar> grammar)
    : vocab_size_(vocab_size), stop_ids_(stop_ids.begin(), stop_ids.end()), grammar_(std::move(grammar)) {
    if (!allowed.empty()) {
        allowed_.assign(words(), 0);
        auto allow = [&](std::int32_t id) { allowed_[std::size_t(id) / 32] |= 1u << (id % 32); };
        for (std::int32_t id : allowed) {
            if (id < 0 || id >= vocab_size_)
                throw Failure(Code::invalid, "allowed_token_ids: token " + std::to_string(id) + " is not from 0 to " +
                                                 std::to_string(vocab_size_ - 1) + ".");
            allow(id);
        }
        for (std::int32_t id : stop_ids_) allow(id);
    }
    if (grammar_) sdk::check(grammar_->service().table->start(grammar_->service().ctx, grammar_->raw(), &state_));
}

TokenMask::~TokenMask() {
    if (state_) grammar_->service().table->state_release(grammar_->service().ctx, state_);
}

void TokenMask::append(std::vector<std::uint32_t>& out, bool constrained, std::int32_t forced) {
    const std::size_t begin = out.size(), count = words();
    out.resize(begin + count, ~std::uint32_t(0));
    std::uint32_t* row = out.data() + begin;
    auto allow = [&](std::int32_t id) { row[std::size_t(id) / 32] |= 1u << (id % 32); };
    if (state_ && constrained) {
        grammar_->service().table->fill_mask(grammar_->service().ctx, state_, row);
        if (std::all_of(row, row + count, [](std::uint32_t w) { return w == 0; })) // complete: nothing but the end
            for (std::int32_t id : stop_ids_) allow(id);
    }
    if (!allowed_.empty())
        for (std::size_t i = 0; i < count; ++i) row[i] &= allowed_[i];
    if (forced >= 0) allow(forced);
}

bool TokenMask::advance(std::int32_t token) {
    if (!state_ || std::find(stop_ids_.begin(), stop_ids_.end(), token) != stop_ids_.end()) return true;
    return grammar_->service().table->advance(grammar_->service().ctx, state_, token) != 0;
}

} // namespace dsv4::engine
