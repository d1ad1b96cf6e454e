// Finds stop strings in streamed text and holds back only what may still become one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dsv4::engine {

// The match that ends first wins, among those the longest. What is emitted does not depend on how the text was cut.
// Not thread-safe.
class StopStrings {
  public:
    // Empty strings must not be among them. `include`: a match is emitted too.
    StopStrings(std::vector<std::string> strings, bool include);
    // Appends to `out` what can no longer be part of a match. True: matched; the rest of the text is dropped.
    bool feed(std::string_view text, std::string& out);
    // Ends the text: nothing is held back any more.
    void flush(std::string& out);
    // From here on text passes unseen, or is looked at again (min_tokens).
    void set_active(bool active) noexcept { active_ = active; }
    const std::string& matched() const noexcept { return matched_; }

  private:
    std::vector<std::string> strings_;
    bool include_;
    bool active_ = true;
    std::string held_;
    std::string matched_;
};

} // namespace dsv4::engine
