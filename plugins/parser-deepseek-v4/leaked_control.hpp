// Takes control tokens that are no markup (turn markers, placeholders) out of a completion's control bytes.
#pragma once

#include <string>
#include <string_view>

namespace dsv4::deepseek_v4 {

// Sees the characters of control tokens only, in order; a token may arrive in parts. Such tokens are spelled <｜name｜>
// or
// <|name|>; `<think>`, `</think>` and `｜DSML｜` are not, and pass.
class LeakedControl {
  public:
    // Calls pass(std::string_view) for what is not part of such a token, leaked(std::string_view) for one that is
    // complete.
    template <class Pass, class Leaked> void feed(std::string_view character, Pass&& pass, Leaked&& leaked) {
        if (!held_.empty() && !continues(character)) flush(pass);
        if (held_.empty() && character != "<") return pass(character);
        held_ += character;
        if (character != ">") return;
        const std::string token = std::move(held_);
        held_.clear();
        leaked(std::string_view(token));
    }

    // What is held turned out to be no such token.
    template <class Pass> void flush(Pass&& pass) {
        if (held_.empty()) return;
        const std::string text = std::move(held_);
        held_.clear();
        pass(std::string_view(text));
    }

    bool holds() const noexcept { return !held_.empty(); }

  private:
    static constexpr std::size_t longest_bytes = 96; // well beyond the longest name of the vocabulary

    bool continues(std::string_view character) const {
        if (held_.size() == 1) return character == "｜" || character == "|";
        if (character == ">") {
            const std::string_view bar = held_[1] == '|' ? "|" : "｜";
            return held_.size() > 1 + bar.size() && std::string_view(held_).ends_with(bar);
        }
        return character != "<" && character != " " && character != "\n" && held_.size() < longest_bytes;
    }

    std::string held_;
};

} // namespace dsv4::deepseek_v4
