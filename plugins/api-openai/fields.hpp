// The members of a request body, read by name and type; every complaint names the field.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dsv4::openai {

// Borrows the body. A member that is null counts as absent. Readers throw Refusal.
class Fields {
  public:
    // Failure(invalid) where `object` is not strict JSON of an object. `path` stands before the names in complaints
    // ("thinking."), `what` names the whole.
    explicit Fields(std::string_view object, std::string path = {}, std::string_view what = "the request body");

    bool has(std::string_view name) const { return !raw(name).empty(); }
    // The member as the client wrote it; empty when absent.
    std::string_view raw(std::string_view name) const;

    std::optional<bool> flag(std::string_view name) const;
    bool flag(std::string_view name, bool otherwise) const { return flag(name).value_or(otherwise); }
    // A whole number (5.0 counts as 5) not below `min`.
    std::optional<std::int64_t> integer(std::string_view name, std::int64_t min) const;
    std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max) const;
    std::optional<double> number(std::string_view name) const;
    std::optional<double> number(std::string_view name, double min, double max) const;
    std::optional<std::string> text(std::string_view name) const;
    // An array of token ids, or of texts.
    std::optional<std::vector<std::int32_t>> token_ids(std::string_view name, std::uint32_t vocab_size) const;
    std::optional<std::vector<std::string>> texts(std::string_view name, std::size_t max_count) const;
    // An object member.
    std::optional<Fields> object(std::string_view name) const;

    std::string path(std::string_view name) const { return path_ + std::string(name); }
    // Names that are not in `known` (sorted).
    std::vector<std::string> others(std::span<const std::string_view> known) const;

  private:
    std::string path_;
    std::unordered_map<std::string, std::string_view> members_;
};

// Of one checked JSON value, for elements of arrays; `path` names it in complaints. `vocab_size` 0: unknown.
std::string read_text(std::string_view value, std::string_view path);
std::int32_t read_token_id(std::string_view value, std::string_view path, std::uint32_t vocab_size);

} // namespace dsv4::openai
