// Pre-tokenisation: cuts text into the pieces that byte-pair encoding works on, by isolating splits in sequence.
//
// Each split isolates the matches of its pattern; matches and the gaps between them all go on, each as a text of its
// own, to the next split. So a look-ahead sees only the piece it is in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::tokenizer {

// The split that a ByteLevel step with `use_regex` stands for.
inline constexpr std::string_view byte_level_pattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Immutable; `split` may run on any number of threads.
class Splitter {
  public:
    // Patterns as tokenizer.json has them, in order. Throws Failure for one that is malformed or not supported.
    explicit Splitter(const std::vector<std::string>& patterns);
    ~Splitter();
    Splitter(Splitter&&) noexcept;
    Splitter& operator=(Splitter&&) noexcept;

    // Calls `piece` for each piece in order; pieces are never empty and together are `text`, which must be valid UTF-8.
    // Throws Failure(exhausted) if a pattern needs more steps than its limit allows.
    void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

  private:
    struct Stage;
    struct Run;
    std::vector<Stage> stages_;
};

} // namespace dsv4::tokenizer
