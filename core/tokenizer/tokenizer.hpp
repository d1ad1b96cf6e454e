// The tokenizer: byte-level BPE read from a Hugging Face tokenizer.json of the DeepSeek family.
//
//     auto tokenizer = Tokenizer::load("tokenizer.json").value();
//     std::vector<TokenId> ids = tokenizer.encode("Hello").value();
//     std::string_view bytes = tokenizer.bytes(ids[0]);
//
// Two worlds are kept apart. Text becomes ids by pre-tokenisation and byte-pair merges alone, and these ids are never
// those of added tokens: a user who writes `<think>` or `<dsml:` gets the characters, not the control token. Control
// tokens enter only by name, as `control` segments from the prompt encoder. `encode_with_control` mixes the two worlds
// and is only for raw prompts whose sender asked for it. Loading refuses a file for which this cannot hold.
//
// Files: definition (reading the JSON), hf_pattern (regex dialect), splitter (pre-tokenisation), bpe (merges),
// control_matcher (raw prompts), utf8 (checks and the streaming detokenizer), byte_level (the alphabet of the file).
//
// Threads: a Tokenizer is immutable; every member may be called from any thread. Copies share their state and are
// cheap. Errors: Code::invalid for bad text or names; loading gives not_found, corrupt, unsupported or exhausted.
#pragma once

#include "core/tokenizer/definition.hpp"
#include "core/tokenizer/token_id.hpp"
#include "dsv4/sdk/result.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::tokenizer {

// A part of a prompt: text, which is encoded, or the exact name of one control token. Does not own its characters.
struct Segment {
    enum class Kind { text, control };
    Kind kind = Kind::text;
    std::string_view text;
};

struct LoadOptions {
    // Rows of the model's embedding; 0: the largest id + 1. A file with an id at or above it is refused.
    std::size_t model_vocab_size = 0;
};

class Tokenizer {
  public:
    static Result<Tokenizer> load(const std::filesystem::path& path, const LoadOptions& options = {});
    // `json` is the content of a tokenizer.json; it is not needed afterwards.
    static Result<Tokenizer> parse(std::string_view json, const LoadOptions& options = {});

    // Plain text to ids. No added token is ever matched. `text` must be UTF-8 and less than 256 MiB.
    Result<std::vector<TokenId>> encode(std::string_view text) const;
    // A prompt to ids. Neighbouring text segments are joined before they are encoded.
    Result<std::vector<TokenId>> encode_segments(std::span<const Segment> segments) const;
    // Raw prompts only: spellings of added tokens in `text` become their ids, the leftmost first, then the longest.
    Result<std::vector<TokenId>> encode_with_control(std::string_view text) const;
    // The pieces after pre-tokenisation; joined they are `text`.
    Result<std::vector<std::string>> pieces(std::string_view text) const;

    // The id of an added token by its exact content.
    std::optional<TokenId> control_id(std::string_view name) const;
    // True for added tokens, whatever their `special` flag.
    bool is_control(TokenId id) const noexcept;
    // The bytes of a token: part of a UTF-8 text, not necessarily whole characters; of an added token its content.
    // Empty for an id without an entry. Valid as long as any copy of this tokenizer lives.
    std::string_view bytes(TokenId id) const noexcept;
    // In the order of the file.
    std::span<const AddedToken> added_tokens() const noexcept;
    // Ids are below this.
    std::size_t vocab_size() const noexcept;

  private:
    struct State;
    explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
    std::shared_ptr<const State> state_;
};

} // namespace dsv4::tokenizer
