// Conversations as plain transcripts, and completions as UTF-8 content.
#pragma once

#include <dsv4/sdk/result.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace transcript {

struct Labels {
    std::string user = "User";
    std::string assistant = "Assistant";
};

// `messages_json`: an array of {"role": "system" | "user" | "assistant", "content": text}. The result ends with the
// assistant's label. Throws Failure(invalid) for anything else and for more than max_messages.
std::string write(std::string_view messages_json, const Labels& labels, std::size_t max_messages);

// Cuts a stream of bytes into whole characters. What can never become a character turns into U+FFFD.
class Characters {
  public:
    // The characters that are complete now; the rest waits.
    std::string feed(std::string_view bytes);
    std::string finish();

  private:
    std::string take(bool last);
    std::string waiting_;
};

} // namespace transcript
