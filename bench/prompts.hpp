// The body of each request: what is asked, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsv4::bench {

enum class Api : std::uint8_t { chat, completions };

struct RequestSettings {
    Api api = Api::chat;
    std::string model;
    bool stream = true;
    bool include_usage = true; // streams only: ask for a last event with token counts
    std::optional<std::int64_t> max_tokens;
    std::optional<double> temperature;
    std::string extra_body; // a JSON object whose members are added to each body, or empty
    // Exactly one of these:
    std::optional<std::string> prompt;
    std::optional<std::string> prompts_file;
    std::optional<std::uint32_t> random_words;
    std::uint64_t seed = 0; // of the random words
};

// Request bodies by number. Prompts of a file are asked in turn, from the first again after the last. Random words
// depend on seed and number alone; no two numbers share a prompt. Immutable once made.
class Requests {
  public:
    // Throws Failure: invalid settings, or a file that cannot be read or has another shape.
    explicit Requests(const RequestSettings& settings);
    std::string body(std::uint64_t index) const;
    const RequestSettings& settings() const noexcept { return settings_; }
    const char* path() const noexcept {
        return settings_.api == Api::chat ? "/v1/chat/completions" : "/v1/completions";
    }

  private:
    std::string random_text(std::uint64_t index) const;
    RequestSettings settings_;
    std::vector<std::string> prompts_; // JSON: message arrays (chat) or strings (completions)
    std::string rest_;                 // the members of the body after the prompt, and its closing brace
};

} // namespace dsv4::bench
