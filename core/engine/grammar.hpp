// Which tokens may come next in one completion: allowed ids and a grammar, as a late mask.
#pragma once

#include "dsv4/host.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::engine {

// The host's grammar service with its context; `table` is null where there is none.
struct GrammarHandle {
    const dsv4_grammar_service* table = nullptr;
    void* ctx = nullptr;
};

// A compiled grammar, shared by the completions of a request. Throws Failure where the service refuses the text.
class Grammar {
  public:
    Grammar(GrammarHandle service, std::int32_t syntax, std::string_view text);
    ~Grammar();
    Grammar(const Grammar&) = delete;
    Grammar& operator=(const Grammar&) = delete;
    const GrammarHandle& service() const noexcept { return service_; }
    dsv4_grammar* raw() const noexcept { return grammar_; }

  private:
    GrammarHandle service_;
    dsv4_grammar* grammar_ = nullptr;
};

// Not thread-safe.
class TokenMask {
  public:
    // `allowed` empty: all. `stop_ids` are always allowed beside `allowed`, and where a grammar is complete.
    TokenMask(std::int64_t vocab_size, std::span<const std::int32_t> allowed, std::span<const std::int32_t> stop_ids,
              std::shared_ptr<Grammar> grammar);
    ~TokenMask();
    TokenMask(const TokenMask&) = delete;
    TokenMask& operator=(const TokenMask&) = delete;

    // Words of one row.
    std::size_t words() const noexcept { return std::size_t(vocab_size_ + 31) / 32; }
    // Appends the mask of the next token. `constrained` false: the grammar does not apply yet (reasoning). `forced`: a
    // token that must stay possible, or -1.
    void append(std::vector<std::uint32_t>& words, bool constrained, std::int32_t forced);
    // Moves the grammar on. False when it forbids the token.
    bool advance(std::int32_t token);

  private:
    std::int64_t vocab_size_;
    std::vector<std::int32_t> stop_ids_;
    std::vector<std::uint32_t> allowed_; // empty: all
    std::shared_ptr<Grammar> grammar_;
    dsv4_grammar_state* state_ = nullptr;
};

} // namespace dsv4::engine
