// Tokens and their probabilities as clients read them.
#pragma once

#include "dsv4/generate.h"
#include "dsv4/host.h"

#include <cstddef>
#include <string>
#include <vector>

namespace dsv4::openai {

// How tokens are named in logprobs.
struct TokenNames {
    const dsv4_host* host = nullptr;
    bool as_ids = false; // "token_id:N"
    // Bytes of a token; empty without a tokenizer.
    std::string_view bytes(std::int32_t id) const;
    void append_name(std::string& out, std::int32_t id, std::string_view bytes) const;
};

// {"token":...,"logprob":...,"bytes":[...],"top_logprobs":[...]}
void append_chat_logprob(std::string& out, const dsv4_token& token, const TokenNames& names);

// The four lists of a text completion's logprobs; offsets count characters of the text.
class LegacyLogprobs {
  public:
    void add(const dsv4_token& token, const TokenNames& names);
    bool empty() const noexcept { return tokens_.empty(); }
    void append(std::string& out) const; // {"tokens":[...],...}
    void clear();                        // keeps the offset

  private:
    std::string tokens_, token_logprobs_, top_logprobs_, text_offsets_;
    std::int64_t offset_ = 0;
};

} // namespace dsv4::openai
