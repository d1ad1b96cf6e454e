// Every way a tokenizer.json can be wrong or beyond what is supported gives an error that names the place.
#include "tests/tokenizer/small_definition.hpp"
#include "tests/tokenizer/vocabularies.hpp"

#include <functional>

namespace dsv4::tokenizer::testing {
namespace {

using Json = nlohmann::json;

struct Case {
    std::string name; // part of the message
    Code code;
    std::function<void(Json&)> change;
};

void check_refused(const std::string& json, Code code, const std::string& part) {
    CAPTURE(part);
    const auto result = Tokenizer::parse(json);
    REQUIRE_FALSE(result.ok());
    CAPTURE(result.error().message);
    CHECK(static_cast<int>(result.error().code) == static_cast<int>(code));
    CHECK_THAT(result.error().message, ContainsSubstring(part));
    CHECK_THAT(result.error().message, ContainsSubstring("tokenizer.json"));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("the small definition that the other cases change is good") {
    const Tokenizer tokenizer = take(Tokenizer::parse(small_definition().dump()));
    CHECK(tokenizer.vocab_size() == 258);
    CHECK(take(tokenizer.encode("cab<end>")) == std::vector<TokenId>{'c', 256, '<', 'e', 'n', 'd', '>'});
    CHECK(take(tokenizer.encode_with_control("cab<end>")) == std::vector<TokenId>{'c', 256, 257});
    auto sequence = small_definition();
    sequence["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array()}};
    sequence["post_processor"] = byte_level_step(true);
    CHECK(Tokenizer::parse(sequence.dump()).ok());
    auto plain = small_definition();
    plain["pre_tokenizer"] = byte_level_step(true);
    CHECK(take(take(Tokenizer::parse(plain.dump())).pieces("it's 12")) == std::vector<std::string>{"it", "'s", " 12"});
}

TEST_CASE("values that contradict the format are refused") {
    const std::vector<Case> cases = {
        {"has no field 'model'", Code::corrupt, [](Json& j) { j.erase("model"); }},
        {"has no field 'version'", Code::corrupt, [](Json& j) { j.erase("version"); }},
        {"has no field 'decoder'", Code::corrupt, [](Json& j) { j.erase("decoder"); }},
        {"has no field 'pre_tokenizer'", Code::corrupt, [](Json& j) { j["pre_tokenizer"] = nullptr; }},
        {"model must be an object", Code::corrupt, [](Json& j) { j["model"] = 3; }},
        {"model.vocab must be an object", Code::corrupt, [](Json& j) { j["model"]["vocab"] = Json::array(); }},
        {"model.vocab['q'] must be a non-negative integer", Code::corrupt,
         [](Json& j) { j["model"]["vocab"]["q"] = -1; }},
        {"model.vocab['q'] must be a non-negative integer", Code::corrupt,
         [](Json& j) { j["model"]["vocab"]["q"] = "1"; }},
        {"model.vocab['q'] must be a non-negative integer", Code::corrupt,
         [](Json& j) { j["model"]["vocab"]["q"] = 1.5; }},
        {"model.vocab['q'] is 4294967296", Code::exhausted, [](Json& j) { j["model"]["vocab"]["q"] = 4294967296; }},
        {"model.vocab['qq'] is 1048576", Code::exhausted, [](Json& j) { j["model"]["vocab"]["qq"] = 1048576; }},
        {"gives the id 113 to two tokens", Code::corrupt, [](Json& j) { j["model"]["vocab"]["qq"] = 113; }},
        {"model.vocab[''] is empty", Code::corrupt, [](Json& j) { j["model"]["vocab"][""] = 300; }},
        {"a token ends at 4096", Code::exhausted, [](Json& j) { j["model"]["vocab"][std::string(4097, 'x')] = 300; }},
        {"no plain token for the byte 113", Code::corrupt, [](Json& j) { j["model"]["vocab"].erase("q"); }},
        {"no plain token for the byte 0", Code::corrupt, [](Json& j) { j["model"]["vocab"].erase("Ā"); }},
        {"no plain token for the byte 113", Code::corrupt,
         [](Json& j) { j["added_tokens"].push_back(added_token(113, "q")); }},
        {"model.merges must be an array", Code::corrupt, [](Json& j) { j["model"]["merges"] = "a b"; }},
        {"model.merges[1] names 'zz'", Code::corrupt, [](Json& j) { j["model"]["merges"].push_back("zz a"); }},
        {"model.merges[1] names 'ba'", Code::corrupt, [](Json& j) { j["model"]["merges"].push_back("b a"); }},
        {"model.merges[1] repeats the pair of model.merges[0]", Code::corrupt,
         [](Json& j) {
             j["model"]["merges"].push_back({"a", "b"});
         }},
        {"model.merges[1] must be two tokens", Code::corrupt, [](Json& j) { j["model"]["merges"].push_back("ab"); }},
        {"model.merges[1] must be two tokens", Code::corrupt, [](Json& j) { j["model"]["merges"].push_back("a b c"); }},
        {"model.merges[1] is empty", Code::corrupt, [](Json& j) { j["model"]["merges"].push_back(" b"); }},
        {"model.merges[1] must be a pair", Code::corrupt,
         [](Json& j) {
             j["model"]["merges"].push_back({"a", "b", "c"});
         }},
        {"model.merges[1] must be a string", Code::corrupt,
         [](Json& j) {
             j["model"]["merges"].push_back({"a", 1});
         }},
        {"model.merges[1] must be an array", Code::corrupt, [](Json& j) { j["model"]["merges"].push_back(7); }},
        {"added_tokens must be an array", Code::corrupt, [](Json& j) { j["added_tokens"] = Json::object(); }},
        {"added_tokens[0] must be an object", Code::corrupt, [](Json& j) { j["added_tokens"][0] = "x"; }},
        {"added_tokens[0] has no field 'id'", Code::corrupt, [](Json& j) { j["added_tokens"][0].erase("id"); }},
        {"added_tokens[0].content is empty", Code::corrupt, [](Json& j) { j["added_tokens"][0]["content"] = ""; }},
        {"added_tokens[0].special must be true or false", Code::corrupt,
         [](Json& j) { j["added_tokens"][0]["special"] = 1; }},
        {"added_tokens[0].id is 9000000", Code::exhausted, [](Json& j) { j["added_tokens"][0]["id"] = 9000000; }},
        {"'<two>' has the id 257, which another token has", Code::corrupt,
         [](Json& j) { j["added_tokens"].push_back(added_token(257, "<two>")); }},
        {"'<two>' has the id 113, which another token has", Code::corrupt,
         [](Json& j) { j["added_tokens"].push_back(added_token(113, "<two>")); }},
        {"added_tokens has the token '<end>' twice", Code::corrupt,
         [](Json& j) { j["added_tokens"].push_back(added_token(258, "<end>")); }},
        {"'q' has the id 258, and model.vocab says 113", Code::corrupt,
         [](Json& j) { j["added_tokens"].push_back(added_token(258, "q")); }},
        {"does not compile", Code::corrupt, [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0] = split_step("(a"); }},
        {"does not compile", Code::corrupt, [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0] = split_step("*"); }},
        {"does not compile", Code::corrupt,
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0] = split_step("\\p{Nonsense}"); }},
        {"without its closing bracket", Code::corrupt,
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0] = split_step("[ab"); }},
        {"must have 1 to 4096", Code::exhausted,
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0] = split_step(""); }},
        {"must have 1 to 4096", Code::exhausted,
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0] = split_step(std::string(4097, 'x')); }},
    };
    for (const Case& item : cases) {
        auto definition = small_definition();
        item.change(definition);
        check_refused(definition.dump(), item.code, item.name);
    }
}

TEST_CASE("what is understood elsewhere and not here is refused by name") {
    const auto step = [](Json& j) -> Json& { return j["pre_tokenizer"]["pretokenizers"][0]; };
    const std::vector<Case> cases = {
        {"field 'surprise'", Code::unsupported, [](Json& j) { j["surprise"] = 1; }},
        {"model has the field 'surprise'", Code::unsupported, [](Json& j) { j["model"]["surprise"] = nullptr; }},
        {"added_tokens[0] has the field 'surprise'", Code::unsupported,
         [](Json& j) { j["added_tokens"][0]["surprise"] = 1; }},
        {"version is '2.0'", Code::unsupported, [](Json& j) { j["version"] = "2.0"; }},
        {"truncation", Code::unsupported,
         [](Json& j) {
             j["truncation"] = {{"max_length", 5}};
         }},
        {"padding", Code::unsupported,
         [](Json& j) {
             j["padding"] = {{"pad_id", 5}};
         }},
        {"normalizer.type is 'NFC'", Code::unsupported,
         [](Json& j) {
             j["normalizer"] = {{"type", "NFC"}};
         }},
        {"normalizer.normalizers", Code::unsupported,
         [](Json& j) {
             j["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}};
         }},
        {"post_processor.type is 'TemplateProcessing'", Code::unsupported,
         [](Json& j) {
             j["post_processor"] = {{"type", "TemplateProcessing"}};
         }},
        {"decoder.type is 'Metaspace'", Code::unsupported, [](Json& j) { j["decoder"]["type"] = "Metaspace"; }},
        {"model.type is 'WordPiece'", Code::unsupported, [](Json& j) { j["model"]["type"] = "WordPiece"; }},
        {"model.dropout", Code::unsupported, [](Json& j) { j["model"]["dropout"] = 0.1; }},
        {"model.unk_token", Code::unsupported, [](Json& j) { j["model"]["unk_token"] = "<unk>"; }},
        {"model.continuing_subword_prefix", Code::unsupported,
         [](Json& j) { j["model"]["continuing_subword_prefix"] = "##"; }},
        {"model.byte_fallback is true", Code::unsupported, [](Json& j) { j["model"]["byte_fallback"] = true; }},
        {"model.ignore_merges is true", Code::unsupported, [](Json& j) { j["model"]["ignore_merges"] = true; }},
        {"added_tokens[0].lstrip is true", Code::unsupported, [](Json& j) { j["added_tokens"][0]["lstrip"] = true; }},
        {"added_tokens[0].rstrip is true", Code::unsupported, [](Json& j) { j["added_tokens"][0]["rstrip"] = true; }},
        {"added_tokens[0].single_word is true", Code::unsupported,
         [](Json& j) { j["added_tokens"][0]["single_word"] = true; }},
        {"pretokenizers[0] has the type 'Digits'", Code::unsupported,
         [=](Json& j) {
             step(j) = {{"type", "Digits"}};
         }},
        {"behavior is 'Removed'", Code::unsupported, [=](Json& j) { step(j)["behavior"] = "Removed"; }},
        {"invert is true", Code::unsupported, [=](Json& j) { step(j)["invert"] = true; }},
        {"no field 'Regex'", Code::corrupt,
         [=](Json& j) {
             step(j)["pattern"] = {{"String", " "}};
         }},
        {"no ByteLevel step", Code::unsupported, [](Json& j) { j["pre_tokenizer"]["pretokenizers"].erase(1); }},
        {"no ByteLevel step", Code::unsupported, [](Json& j) { j["pre_tokenizer"] = split_step("a"); }},
        {"must be the last", Code::unsupported,
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"].push_back(split_step("a")); }},
        {"add_prefix_space is true", Code::unsupported,
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }},
        {"more than 16", Code::exhausted,
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"] = std::vector<Json>(17, split_step("a")); }},
        {"gives the added token 'ab'", Code::unsupported,
         [](Json& j) { j["added_tokens"].push_back(added_token(256, "ab")); }},
    };
    for (const Case& item : cases) {
        auto definition = small_definition();
        item.change(definition);
        check_refused(definition.dump(), item.code, item.name);
    }
}

TEST_CASE("pattern constructs that mean something else in the other dialect are refused") {
    for (const std::string pattern :
         {"^a",     "a$",     "\\w+",    "\\h",     "\\b",        "\\bfoo", "\\d",   "\\R",         "\\X",
          "\\C",    "\\K",    "\\1",     "\\x41",   "\\Qa\\E",    "\\",     "\\é",   "[[:alpha:]]", "[a[b]]",
          "[a&&b]", "[]a]",   "[^]a]",   "[\\S]",   "[\\P{L}]",   "\\pL",   "\\p{L", "(?<n>a)",     "(?P<n>a)",
          "(?x)a",  "(?R)",   "(?#c)",   "(?(1)a)", "(*SKIP)",    "a{,3}",  "a{",    "a{x}",        "a{1,2}+",
          "a{2}?",  "a(?i)b", "[\\s-z]", "[!-\\s]", "[!-\\p{L}]", "\\u12"}) {
        auto definition = small_definition();
        definition["pre_tokenizer"]["pretokenizers"][0] = split_step(pattern);
        const auto result = Tokenizer::parse(definition.dump());
        CAPTURE(pattern);
        REQUIRE_FALSE(result.ok());
        CHECK_THAT(result.error().message, ContainsSubstring("split pattern"));
    }
}

TEST_CASE("text that is not JSON, or not this JSON, is refused") {
    check_refused("", Code::corrupt, "not valid JSON");
    check_refused("{", Code::corrupt, "not valid JSON");
    check_refused("{\"model\": \"\xFF\"}", Code::corrupt, "not valid JSON");
    check_refused("[]", Code::corrupt, "must be an object");
    check_refused("{}", Code::corrupt, "has no field 'version'");
    check_refused(std::string(100000, '['), Code::corrupt, "not valid JSON");
    check_refused(std::string((std::size_t{64} << 20) + 1, ' '), Code::exhausted, "the limit is");
    const std::string good = small_definition().dump();
    for (std::size_t size = 0; size < good.size(); size += 97) {
        CHECK_FALSE(Tokenizer::parse(std::string_view(good).substr(0, size)).ok());
    }
    check_refused(replaced(good, "\"version\":\"1.0\"", "\"version\":\"1.0\",\"version\":\"1.0\""), Code::corrupt,
                  "'version' twice");
    check_refused(replaced(good, "\"ab\":256", "\"ab\":256,\"ab\":258"), Code::corrupt, "'ab' twice");
    CHECK_FALSE(Tokenizer::parse(replaced(good, "\"<end>\"", "\"\\udc00\"")).ok());
    CHECK_FALSE(Tokenizer::parse(replaced(good, "\"<end>\"", "\"\\ud800\"")).ok());
}

TEST_CASE("a missing file and a model that is too small are refused") {
    const auto missing = Tokenizer::load("/nowhere/tokenizer.json");
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == Code::not_found);
    CHECK_THAT(missing.error().message, ContainsSubstring("/nowhere/tokenizer.json"));
    CHECK_FALSE(Tokenizer::load(source_dir).ok());
    const std::string good = small_definition().dump();
    CHECK_FALSE(Tokenizer::parse(good, {257}).ok());
    CHECK(take(Tokenizer::parse(good, {258})).vocab_size() == 258);
    const Tokenizer padded = take(Tokenizer::parse(good, {300}));
    CHECK(padded.vocab_size() == 300);
    CHECK(padded.bytes(299).empty());
}

TEST_CASE("a pattern that explodes ends with an error, not a hang") {
    auto definition = small_definition();
    definition["pre_tokenizer"]["pretokenizers"][0] = split_step("(?:a|aa|aaa)+(?:a|aa|aaa)+[bd]");
    const Tokenizer tokenizer = take(Tokenizer::parse(definition.dump()));
    const auto result = tokenizer.encode(std::string(60, 'a') + "c");
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code == Code::exhausted);
    CHECK_THAT(result.error().message, ContainsSubstring("split 1"));
}

} // namespace dsv4::tokenizer::testing
