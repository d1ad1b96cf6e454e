// Builds a tokenizer from its definition, checking that the parts fit, and runs the parts in order.
#include "core/tokenizer/tokenizer.hpp"

#include "core/tokenizer/bpe.hpp"
#include "core/tokenizer/byte_level.hpp"
#include "core/tokenizer/control_matcher.hpp"
#include "core/tokenizer/splitter.hpp"
#include "core/tokenizer/utf8.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

namespace dsv4::tokenizer {
namespace {

constexpr std::size_t max_text_bytes = std::size_t{256} << 20;
constexpr TokenId none = -1;

[[noreturn]] void corrupt(const std::string& message) {
    throw Failure(Code::corrupt, message, "take the tokenizer.json that was published with the checkpoint");
}

std::string read_file(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
        throw Failure(Code::not_found, "the file does not exist", "pass the path of the checkpoint's tokenizer.json");
    }
    const auto size = std::filesystem::file_size(path, error);
    if (error) throw Failure(Code::environment, "the file cannot be read: " + error.message());
    if (size > max_json_bytes) {
        throw Failure(Code::exhausted, "the file has " + std::to_string(size) + " bytes, and the limit is " +
                                           std::to_string(max_json_bytes));
    }
    std::string content(size, '\0');
    std::ifstream stream(path, std::ios::binary);
    if (!stream.read(content.data(), static_cast<std::streamsize>(size))) {
        throw Failure(Code::environment, "the file cannot be read", "check its permissions");
    }
    return content;
}

} // namespace

struct Tokenizer::State {
    explicit State(Definition definition, const LoadOptions& options)
        : added_tokens(std::move(definition.added_tokens)), splitter(definition.split_patterns) {
        add_vocabulary(definition);
        add_control_tokens();
        vocab_size = tokens.size();
        if (options.model_vocab_size != 0) {
            if (tokens.size() > options.model_vocab_size) {
                corrupt("it has the id " + std::to_string(tokens.size() - 1) + ", and the model has only " +
                        std::to_string(options.model_vocab_size) + " tokens");
            }
            vocab_size = options.model_vocab_size;
        }
        add_merges(definition.merges);
    }

    // Checks what encoding relies on; everything after it may assume valid UTF-8 of a bounded size.
    void check_text(std::string_view text) const {
        if (text.size() >= max_text_bytes) {
            throw Failure(Code::invalid,
                          "the text to encode has " + std::to_string(text.size()) + " bytes, and must have less than " +
                              std::to_string(max_text_bytes),
                          "send less text");
        }
        if (const std::size_t valid = utf8_valid_prefix(text); valid != text.size()) {
            throw Failure(Code::invalid, "the text to encode is not valid UTF-8 at byte " + std::to_string(valid),
                          "send text in UTF-8");
        }
    }

    void encode(std::string_view text, Bpe::Scratch& scratch, std::vector<TokenId>& out) const {
        splitter.split(text, [&](std::string_view piece) { bpe.encode(piece, scratch, out); });
    }

    struct Token {
        std::string bytes;
        bool exists = false;
        bool is_added = false;
        bool is_byte_level = false; // spelt in the byte-level alphabet, so that merges may reach it
    };

    std::vector<AddedToken> added_tokens;
    std::vector<Token> tokens; // by id
    boost::unordered_flat_map<std::string_view, TokenId> control_ids;
    ControlMatcher control_matcher;
    Splitter splitter;
    Bpe bpe;
    std::size_t vocab_size = 0;

  private:
    Token& slot(TokenId id) {
        const auto index = static_cast<std::size_t>(id);
        if (index >= tokens.size()) tokens.resize(index + 1);
        return tokens[index];
    }

    void add_vocabulary(const Definition& definition) {
        spellings_.reserve(definition.vocabulary.size());
        for (const auto& [spelling, id] : definition.vocabulary) {
            if (!spellings_.emplace(spelling, id).second) corrupt("model.vocab has the token '" + spelling + "' twice");
            Token& token = slot(id);
            if (token.exists) {
                corrupt("model.vocab gives the id " + std::to_string(id) + " to two tokens, the second is '" +
                        spelling + "'");
            }
            auto bytes = from_byte_level(spelling);
            token = {bytes ? std::move(*bytes) : spelling, true, false, bytes.has_value()};
        }
    }

    void add_control_tokens() {
        for (const AddedToken& added : added_tokens) {
            const auto listed = spellings_.find(added.content);
            if (listed != spellings_.end() && listed->second != added.id) {
                corrupt("the added token '" + added.content + "' has the id " + std::to_string(added.id) +
                        ", and model.vocab says " + std::to_string(listed->second));
            }
            if (!control_ids.emplace(added.content, added.id).second) {
                corrupt("added_tokens has the token '" + added.content + "' twice");
            }
            Token& token = slot(added.id);
            if (token.exists && listed == spellings_.end()) {
                corrupt("the added token '" + added.content + "' has the id " + std::to_string(added.id) +
                        ", which another token has");
            }
            token = {added.content, true, true, false};
            control_matcher.add(added.content, added.id);
        }
    }

    TokenId merge_operand(const std::string& spelling, std::size_t rank) const {
        const auto found = spellings_.find(spelling);
        if (found == spellings_.end()) {
            corrupt("model.merges[" + std::to_string(rank) + "] names '" + spelling + "', which is not in model.vocab");
        }
        return found->second;
    }

    void add_merges(const std::vector<std::pair<std::string, std::string>>& merges) {
        std::array<TokenId, 256> byte_ids;
        byte_ids.fill(none);
        for (std::size_t id = 0; id < tokens.size(); ++id) {
            const Token& token = tokens[id];
            if (token.is_byte_level && token.bytes.size() == 1) {
                byte_ids[static_cast<unsigned char>(token.bytes[0])] = static_cast<TokenId>(id);
            }
        }
        for (std::size_t byte = 0; byte < byte_ids.size(); ++byte) {
            if (byte_ids[byte] != none) continue;
            corrupt("model.vocab has no plain token for the byte " + std::to_string(byte) +
                    ", so that some text could not be encoded");
        }
        std::vector<Merge> ranked;
        ranked.reserve(merges.size());
        boost::unordered_flat_map<std::uint64_t, std::size_t> seen;
        seen.reserve(merges.size());
        for (const auto& [left, right] : merges) {
            const std::size_t rank = ranked.size();
            const Merge merge{merge_operand(left, rank), merge_operand(right, rank), merge_operand(left + right, rank)};
            if (tokens[static_cast<std::size_t>(merge.result)].is_added) {
                throw Failure(Code::unsupported,
                              "model.merges[" + std::to_string(rank) + "] gives the added token '" + left + right +
                                  "', so that plain text could become a control token",
                              "remove the merge or the added token");
            }
            const auto key = static_cast<std::uint64_t>(merge.left) << 32 | static_cast<std::uint32_t>(merge.right);
            if (const auto [first, is_new] = seen.emplace(key, rank); !is_new) {
                corrupt("model.merges[" + std::to_string(rank) + "] repeats the pair of model.merges[" +
                        std::to_string(first->second) + "]");
            }
            ranked.push_back(merge);
        }
        bpe = Bpe(byte_ids, std::move(ranked));
        for (std::size_t id = 0; id < tokens.size(); ++id) {
            if (tokens[id].is_byte_level) bpe.add_shortcut(tokens[id].bytes, static_cast<TokenId>(id));
        }
        spellings_ = {};
    }

    boost::unordered_flat_map<std::string, TokenId> spellings_; // of model.vocab; only while loading
};

Result<Tokenizer> Tokenizer::parse(std::string_view json, const LoadOptions& options) {
    return guard([&] {
        try {
            return Tokenizer(std::make_shared<const State>(parse_definition(json), options));
        } catch (const Failure& failure) {
            Error error = failure.error();
            error.message = "the tokenizer.json cannot be used: " + error.message;
            throw Failure(std::move(error));
        }
    });
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& path, const LoadOptions& options) {
    return guard([&] {
        try {
            return Tokenizer(std::make_shared<const State>(parse_definition(read_file(path)), options));
        } catch (const Failure& failure) {
            Error error = failure.error();
            error.message = "the tokenizer '" + path.string() + "' cannot be used: " + error.message;
            throw Failure(std::move(error));
        }
    });
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text) const {
    return guard([&] {
        state_->check_text(text);
        std::vector<TokenId> ids;
        Bpe::Scratch scratch;
        state_->encode(text, scratch, ids);
        return ids;
    });
}

Result<std::vector<TokenId>> Tokenizer::encode_segments(std::span<const Segment> segments) const {
    return guard([&] {
        std::vector<TokenId> ids;
        Bpe::Scratch scratch;
        std::string run; // text since the last control token
        const auto flush = [&] {
            state_->check_text(run);
            state_->encode(run, scratch, ids);
            run.clear();
        };
        for (const Segment& segment : segments) {
            if (segment.kind == Segment::Kind::text) {
                run += segment.text;
                continue;
            }
            flush();
            const auto id = control_id(segment.text);
            if (!id) {
                throw Failure(Code::invalid, "the tokenizer has no control token '" + utf8_excerpt(segment.text) + "'",
                              "use the tokenizer.json that belongs to the prompt encoding");
            }
            ids.push_back(*id);
        }
        flush();
        return ids;
    });
}

Result<std::vector<TokenId>> Tokenizer::encode_with_control(std::string_view text) const {
    return guard([&] {
        state_->check_text(text);
        std::vector<TokenId> ids;
        Bpe::Scratch scratch;
        std::size_t from = 0;
        while (const auto match = state_->control_matcher.find(text, from)) {
            state_->encode(text.substr(from, match->begin - from), scratch, ids);
            ids.push_back(match->id);
            from = match->begin + match->size_bytes;
        }
        state_->encode(text.substr(from), scratch, ids);
        return ids;
    });
}

Result<std::vector<std::string>> Tokenizer::pieces(std::string_view text) const {
    return guard([&] {
        state_->check_text(text);
        std::vector<std::string> pieces;
        state_->splitter.split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
        return pieces;
    });
}

std::optional<TokenId> Tokenizer::control_id(std::string_view name) const {
    const auto found = state_->control_ids.find(name);
    if (found == state_->control_ids.end()) return std::nullopt;
    return found->second;
}

bool Tokenizer::is_control(TokenId id) const noexcept {
    return id >= 0 && static_cast<std::size_t>(id) < state_->tokens.size() &&
           state_->tokens[static_cast<std::size_t>(id)].is_added;
}

std::string_view Tokenizer::bytes(TokenId id) const noexcept {
    if (id < 0 || static_cast<std::size_t>(id) >= state_->tokens.size()) return {};
    return state_->tokens[static_cast<std::size_t>(id)].bytes;
}

std::span<const AddedToken> Tokenizer::added_tokens() const noexcept { return state_->added_tokens; }

std::size_t Tokenizer::vocab_size() const noexcept { return state_->vocab_size; }

} // namespace dsv4::tokenizer
