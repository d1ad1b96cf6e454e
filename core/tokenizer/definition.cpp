// Reading tokenizer.json: every field is either used, known to have no effect on ids, or refused by its name.
#include "core/tokenizer/definition.hpp"

#include "core/tokenizer/splitter.hpp"
#include "core/tokenizer/utf8.hpp"
#include "dsv4/sdk/result.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <simdjson.h>

namespace dsv4::tokenizer {
namespace {

using simdjson::dom::element;

[[noreturn]] void corrupt(const std::string& message) {
    throw Failure(Code::corrupt, message, "take the tokenizer.json that was published with the checkpoint");
}

[[noreturn]] void unsupported(const std::string& message) {
    throw Failure(
        Code::unsupported, message,
        "byte-level BPE tokenizers of the DeepSeek family are supported: model BPE, pre_tokenizer of isolating "
        "Split steps and one ByteLevel step, decoder ByteLevel, no normalizer");
}

std::string text_of(element value) { return utf8_excerpt(simdjson::to_string(value)); }

std::string_view string_of(element value, const std::string& where) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) corrupt(where + " must be a string, and is " + text_of(value));
    if (utf8_valid_prefix(text) != text.size()) corrupt(where + " is not valid UTF-8 (an unpaired surrogate escape)");
    return text;
}

bool bool_of(element value, const std::string& where) {
    bool flag = false;
    if (value.get(flag) != simdjson::SUCCESS) corrupt(where + " must be true or false, and is " + text_of(value));
    return flag;
}

TokenId id_of(element value, const std::string& where) {
    std::uint64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS) {
        corrupt(where + " must be a non-negative integer, and is " + text_of(value));
    }
    if (id >= max_entries) {
        throw Failure(Code::exhausted,
                      where + " is " + std::to_string(id) + ", and ids end at " + std::to_string(max_entries - 1));
    }
    return static_cast<TokenId>(id);
}

simdjson::dom::array array_of(element value, const std::string& where) {
    simdjson::dom::array array;
    if (value.get(array) != simdjson::SUCCESS) corrupt(where + " must be an array, and is " + text_of(value));
    return array;
}

void check_count(std::size_t count, std::size_t limit, const std::string& where) {
    if (count < limit) return;
    throw Failure(Code::exhausted, where + " has more than " + std::to_string(limit) + " entries, which is the limit");
}

// An object whose every field must be asked for: `finish` refuses what nobody asked for.
class Object {
  public:
    Object(element value, std::string where) : where_(std::move(where)) {
        if (value.get(object_) != simdjson::SUCCESS) corrupt(where_ + " must be an object, and is " + text_of(value));
        for (const auto field : object_) {
            for (const Field& seen : fields_) {
                if (seen.name == field.key) corrupt(where_ + " has the field '" + seen.name + "' twice");
            }
            fields_.push_back({std::string(field.key), field.value, false});
            check_count(fields_.size(), 64, where_);
        }
    }

    std::string path(std::string_view name) const { return where_ + "." + std::string(name); }

    // Nothing where the field is missing or null.
    std::optional<element> optional(std::string_view name) {
        for (Field& field : fields_) {
            if (field.name != name) continue;
            field.is_used = true;
            if (field.value.is_null()) return std::nullopt;
            return field.value;
        }
        return std::nullopt;
    }
    element required(std::string_view name) {
        if (const auto value = optional(name)) return *value;
        corrupt(where_ + " has no field '" + std::string(name) + "'");
    }
    std::string_view string(std::string_view name) { return string_of(required(name), path(name)); }
    bool flag(std::string_view name, bool fallback) {
        const auto value = optional(name);
        return value ? bool_of(*value, path(name)) : fallback;
    }
    void require_string(std::string_view name, std::string_view only) {
        const std::string_view got = string(name);
        if (got != only) {
            unsupported(path(name) + " is '" + std::string(got) + "', and only '" + std::string(only) +
                        "' is supported");
        }
    }
    void require_false(std::string_view name) {
        if (flag(name, false)) unsupported(path(name) + " is true, which is not supported");
    }
    void require_null(std::string_view name) {
        if (const auto value = optional(name)) {
            unsupported(path(name) + " is " + text_of(*value) + ", and only null is supported");
        }
    }
    void require_null_or_empty(std::string_view name) {
        const auto value = optional(name);
        if (value && !string_of(*value, path(name)).empty()) {
            unsupported(path(name) + " is " + text_of(*value) + ", and only null is supported");
        }
    }
    // Fields that change offsets or padding, never ids; still they must have their type.
    void ignore_flags(std::initializer_list<std::string_view> names) {
        for (const auto name : names) flag(name, false);
    }
    void finish() const {
        for (const Field& field : fields_) {
            if (!field.is_used) unsupported(where_ + " has the field '" + field.name + "', which is not understood");
        }
    }

  private:
    struct Field {
        std::string name;
        element value;
        bool is_used;
    };
    simdjson::dom::object object_;
    std::string where_;
    std::vector<Field> fields_;
};

std::string checked_token(std::string_view text, const std::string& where) {
    if (text.empty()) corrupt(where + " is empty");
    if (text.size() > max_token_bytes) {
        throw Failure(Code::exhausted, where + " has " + std::to_string(text.size()) + " bytes, and a token ends at " +
                                           std::to_string(max_token_bytes));
    }
    return std::string(text);
}

std::vector<AddedToken> read_added_tokens(element value) {
    std::vector<AddedToken> tokens;
    for (const element entry : array_of(value, "added_tokens")) {
        check_count(tokens.size(), max_entries, "added_tokens");
        Object object(entry, "added_tokens[" + std::to_string(tokens.size()) + "]");
        AddedToken token{id_of(object.required("id"), object.path("id")),
                         checked_token(object.string("content"), object.path("content")),
                         object.flag("special", false)};
        object.require_false("single_word");
        object.require_false("lstrip");
        object.require_false("rstrip");
        object.ignore_flags({"normalized"}); // no normalizer, no effect
        object.finish();
        tokens.push_back(std::move(token));
    }
    return tokens;
}

void check_normalizer(element value) {
    Object object(value, "normalizer");
    object.require_string("type", "Sequence");
    for (const element step : array_of(object.required("normalizers"), object.path("normalizers"))) {
        unsupported("normalizer.normalizers has the step " + text_of(step) + ", and no normalizer is supported");
    }
    object.finish();
}

// Reads one step of the pre-tokenizer; true after its ByteLevel step, which must be the last.
bool read_pre_tokenizer_step(element value, const std::string& where, std::vector<std::string>& patterns) {
    Object object(value, where);
    const std::string_view type = object.string("type");
    if (type == "ByteLevel") {
        object.require_false("add_prefix_space");
        object.ignore_flags({"trim_offsets"});
        if (object.flag("use_regex", true)) patterns.emplace_back(byte_level_pattern);
        object.finish();
        return true;
    }
    if (type != "Split") unsupported(where + " has the type '" + std::string(type) + "', which is not supported");
    object.require_string("behavior", "Isolated");
    object.require_false("invert");
    Object pattern(object.required("pattern"), object.path("pattern"));
    const std::string_view regex = pattern.string("Regex");
    if (regex.empty() || regex.size() > max_pattern_bytes) {
        throw Failure(Code::exhausted, pattern.path("Regex") + " has " + std::to_string(regex.size()) +
                                           " bytes, and must have 1 to " + std::to_string(max_pattern_bytes));
    }
    patterns.emplace_back(regex);
    pattern.finish();
    object.finish();
    return false;
}

std::vector<std::string> read_pre_tokenizer(element value) {
    std::vector<std::string> patterns;
    std::string_view type;
    const bool is_sequence = value["type"].get(type) == simdjson::SUCCESS && type == "Sequence";
    if (!is_sequence) {
        if (!read_pre_tokenizer_step(value, "pre_tokenizer", patterns)) {
            unsupported("pre_tokenizer has no ByteLevel step");
        }
        return patterns;
    }
    Object object(value, "pre_tokenizer");
    object.string("type");
    bool is_done = false;
    std::size_t index = 0;
    for (const element step : array_of(object.required("pretokenizers"), object.path("pretokenizers"))) {
        check_count(index, max_splits, object.path("pretokenizers"));
        const std::string where = object.path("pretokenizers") + "[" + std::to_string(index++) + "]";
        if (is_done) unsupported(where + " follows the ByteLevel step, which must be the last");
        is_done = read_pre_tokenizer_step(step, where, patterns);
    }
    if (!is_done) unsupported("pre_tokenizer has no ByteLevel step");
    object.finish();
    return patterns;
}

// A ByteLevel decoder or post-processor: its flags change offsets only.
void check_byte_level(element value, const std::string& where) {
    Object object(value, where);
    object.require_string("type", "ByteLevel");
    object.ignore_flags({"add_prefix_space", "trim_offsets", "use_regex"});
    object.finish();
}

std::pair<std::string, std::string> read_merge(element value, const std::string& where) {
    std::string_view left, right;
    if (value.is_string()) {
        const std::string_view both = string_of(value, where);
        const std::size_t blank = both.find(' ');
        if (blank == std::string_view::npos || both.find(' ', blank + 1) != std::string_view::npos) {
            corrupt(where + " must be two tokens with one blank between them, and is " + text_of(value));
        }
        left = both.substr(0, blank);
        right = both.substr(blank + 1);
    } else {
        const simdjson::dom::array pair = array_of(value, where);
        if (pair.size() != 2) corrupt(where + " must be a pair of tokens, and is " + text_of(value));
        left = string_of(pair.at(0).value(), where);
        right = string_of(pair.at(1).value(), where);
    }
    return {checked_token(left, where), checked_token(right, where)};
}

void read_model(element value, Definition& definition) {
    Object object(value, "model");
    object.require_string("type", "BPE");
    for (const auto name : {"dropout", "unk_token"}) object.require_null(name);
    for (const auto name : {"continuing_subword_prefix", "end_of_word_suffix"}) object.require_null_or_empty(name);
    for (const auto name : {"byte_fallback", "ignore_merges"}) object.require_false(name);
    object.ignore_flags({"fuse_unk"}); // there is no unknown token
    simdjson::dom::object vocabulary;
    if (object.required("vocab").get(vocabulary) != simdjson::SUCCESS) corrupt("model.vocab must be an object");
    for (const auto entry : vocabulary) {
        check_count(definition.vocabulary.size(), max_entries, "model.vocab");
        if (utf8_valid_prefix(entry.key) != entry.key.size()) corrupt("model.vocab has a key that is not valid UTF-8");
        const std::string where = "model.vocab['" + utf8_excerpt(entry.key) + "']";
        definition.vocabulary.push_back({checked_token(entry.key, where), id_of(entry.value, where)});
    }
    for (const element merge : array_of(object.required("merges"), "model.merges")) {
        check_count(definition.merges.size(), max_entries, "model.merges");
        definition.merges.push_back(
            read_merge(merge, "model.merges[" + std::to_string(definition.merges.size()) + "]"));
    }
    object.finish();
}

} // namespace

Definition parse_definition(std::string_view json) {
    if (json.size() > max_json_bytes) {
        throw Failure(Code::exhausted, "the file has " + std::to_string(json.size()) + " bytes, and the limit is " +
                                           std::to_string(max_json_bytes));
    }
    simdjson::dom::parser parser(max_json_bytes);
    element root;
    if (const auto error = parser.parse(simdjson::padded_string(json)).get(root); error != simdjson::SUCCESS) {
        corrupt(std::string("it is not valid JSON: ") + simdjson::error_message(error));
    }
    Definition definition;
    Object object(root, "the root");
    object.require_string("version", "1.0");
    object.require_null("truncation");
    object.require_null("padding");
    if (const auto normalizer = object.optional("normalizer")) check_normalizer(*normalizer);
    if (const auto processor = object.optional("post_processor")) check_byte_level(*processor, "post_processor");
    check_byte_level(object.required("decoder"), "decoder");
    definition.split_patterns = read_pre_tokenizer(object.required("pre_tokenizer"));
    if (const auto tokens = object.optional("added_tokens")) definition.added_tokens = read_added_tokens(*tokens);
    read_model(object.required("model"), definition);
    object.finish();
    return definition;
}

} // namespace dsv4::tokenizer
