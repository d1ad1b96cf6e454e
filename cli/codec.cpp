// `dsv4 codec`: runs the `input` of one encoding, parsing or tokenize vector and prints JSON of the form of `expected`.
#include "cli/commands.hpp"
#include "cli/plugin_host.hpp"
#include "cli/terminal.hpp"
#include "core/tokenizer/tokenizer.hpp"
#include "dsv4/api.h"
#include "dsv4/parser.h"
#include "dsv4/sdk/error.hpp"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <simdjson.h>

namespace dsv4::cli {
namespace {

using Json = nlohmann::ordered_json;

// The client's own text of a member, so that key order and number spelling survive: object members by name, one after
// the other.
std::string raw_member(const std::string& json, std::initializer_list<const char*> names) {
    simdjson::ondemand::parser parser;
    simdjson::padded_string padded(json);
    simdjson::ondemand::document document;
    simdjson::ondemand::value value;
    if (parser.iterate(padded).get(document)) throw Failure(Code::invalid, "the vector is not valid JSON");
    bool first = true;
    for (const char* name : names) {
        const auto error = first ? document[name].get(value) : value[name].get(value);
        if (error) throw Failure(Code::invalid, std::string("the vector has no member '") + name + "'");
        first = false;
    }
    simdjson::ondemand::object object;
    std::string_view raw;
    if (value.get_object().get(object) || object.raw_json().get(raw))
        throw Failure(Code::invalid, "the vector's input is not an object");
    return std::string(raw);
}

class ParserHandle {
  public:
    explicit ParserHandle(const plugin::Instance& instance)
        : table_(instance.table<dsv4_parser_table>()), self_(instance.self()) {}

    Json encode_messages(const std::string& input) const {
        const dsv4_prompt* prompt = nullptr;
        if (dsv4_error* error = table_.encode_messages(self_, sdk::str(input), &prompt)) return failure(error);
        return prompt_json(prompt, false);
    }

    Json encode_request(const dsv4_chat_request& chat) const {
        const dsv4_prompt* prompt = nullptr;
        if (dsv4_error* error = table_.encode(self_, &chat, &prompt)) {
            Json json = failure(error);
            json["http_status"] = 400;
            // A request error begins with its place: "messages[2].content: ...".
            const std::string message = json["message"];
            json["param"] = message.substr(0, message.find_first_of(".[: "));
            return json;
        }
        return prompt_json(prompt, true);
    }

    const dsv4_parser_table& table() const noexcept { return table_; }
    void* self() const noexcept { return self_; }

  private:
    static Json failure(dsv4_error* error) {
        const Error e = sdk::take_error(error);
        if (e.code != Code::invalid) throw Failure(e);
        return {{"error", true}, {"message", e.message}};
    }

    Json prompt_json(const dsv4_prompt* prompt, bool resolved) const {
        Json segments = Json::array();
        std::string text;
        for (std::uint32_t i = 0; i < prompt->segment_count; ++i) {
            const auto& s = prompt->segments[i];
            segments.push_back({s.kind == DSV4_SEGMENT_CONTROL ? "ctl" : "txt", std::string(sdk::view(s.text))});
            text += sdk::view(s.text);
        }
        Json json{{"prompt", text}, {"segments", segments}};
        if (resolved)
            json["resolved"] = {{"thinking_mode", prompt->effort.size ? "thinking" : "chat"},
                                {"reasoning_effort",
                                 prompt->effort.size ? Json(std::string(sdk::view(prompt->effort))) : Json(nullptr)}};
        table_.prompt_release(self_, prompt);
        return json;
    }

    const dsv4_parser_table& table_;
    void* self_;
};

// Collects what a completion stream emits.
struct Collected {
    std::string reasoning, content;
    std::vector<std::pair<std::string, std::string>> calls; // name, arguments

    static void sink(void* arg, const dsv4_delta* delta) {
        auto& c = *static_cast<Collected*>(arg);
        const std::string_view text = sdk::view(delta->text);
        switch (delta->kind) {
        case DSV4_DELTA_REASONING: c.reasoning += text; break;
        case DSV4_DELTA_CONTENT: c.content += text; break;
        case DSV4_DELTA_TOOL_BEGIN: c.calls.emplace_back(text, ""); break;
        case DSV4_DELTA_TOOL_ARGUMENTS: c.calls.at(delta->index).second += text; break;
        }
    }
};

// A completion vector: text whose markers are control tokens unless a literal range covers them.
class Completion {
  public:
    Completion(const ParserHandle& parser, const Json& input) : parser_(parser), text_(input.at("completion")) {
        options_.struct_size = sizeof options_;
        options_.thinking = input.at("thinking").get<bool>();
        options_.tools_enabled = input.at("tools_enabled").get<bool>();
        if (input.contains("tools")) tools_ = input.at("tools").dump();
        options_.tools = sdk::str(tools_);
        const std::string stopped = input.at("stopped_by");
        stopped_by_ = stopped == "length" ? DSV4_STOPPED_LENGTH
                      : stopped == "stop" ? DSV4_STOPPED_STOP
                                          : DSV4_STOPPED_EOS;
        mark_control(input);
    }

    std::size_t bytes() const noexcept { return text_.size(); }
    bool character_begins_at(std::size_t at) const { return (static_cast<unsigned char>(text_[at]) & 0xC0) != 0x80; }

    // The result when the text arrives cut at the given byte offsets, ascending.
    Json run(const std::vector<std::size_t>& cuts) const {
        dsv4_completion_stream* stream = nullptr;
        sdk::check(parser_.table().stream_open(parser_.self(), &options_, &stream));
        Collected collected;
        std::size_t begin = 0;
        dsv4_error* error = nullptr;
        for (std::size_t i = 0; i <= cuts.size() && !error; ++i) {
            const std::size_t end = i < cuts.size() ? cuts[i] : text_.size();
            const auto pieces = pieces_between(begin, end);
            error = parser_.table().stream_feed(stream, pieces.data(), pieces.size(), &Collected::sink, &collected);
            begin = end;
        }
        dsv4_completion_end ended{};
        ended.struct_size = sizeof ended;
        if (!error) error = parser_.table().stream_finish(stream, stopped_by_, &Collected::sink, &collected, &ended);
        parser_.table().stream_close(stream);
        sdk::check(error);
        Json calls = Json::array();
        for (std::size_t i = 0; i < collected.calls.size(); ++i)
            calls.push_back({{"name", collected.calls[i].first},
                             {"arguments", collected.calls[i].second},
                             {"complete", i < ended.complete_calls}});
        constexpr const char* finish[] = {"", "stop", "length", "tool_calls"};
        return {{"reasoning_content", collected.reasoning},
                {"content", collected.content},
                {"tool_calls", calls},
                {"finish_reason", finish[ended.finish]},
                {"malformed", ended.malformed != 0}};
    }

  private:
    void mark_control(const Json& input) {
        control_.assign(text_.size(), false);
        std::vector<std::size_t> starts; // byte offset of each code point
        for (std::size_t i = 0; i < text_.size(); ++i)
            if (character_begins_at(i)) starts.push_back(i);
        starts.push_back(text_.size());
        std::vector<bool> literal(text_.size(), false);
        if (input.contains("literal_ranges"))
            for (const auto& range : input.at("literal_ranges"))
                for (std::size_t i = starts.at(range.at(0)); i < starts.at(range.at(1)); ++i) literal[i] = true;
        const dsv4_str* names = nullptr;
        std::uint32_t count = 0;
        sdk::check(parser_.table().control_names(parser_.self(), &names, &count));
        for (std::uint32_t n = 0; n < count; ++n) {
            const std::string_view name = sdk::view(names[n]);
            for (std::size_t at = text_.find(name); at != std::string::npos; at = text_.find(name, at + 1))
                if (!literal[at])
                    for (std::size_t i = at; i < at + name.size(); ++i) control_[i] = true;
        }
    }

    std::vector<dsv4_piece> pieces_between(std::size_t begin, std::size_t end) const {
        std::vector<dsv4_piece> pieces;
        while (begin < end) {
            std::size_t stop = begin;
            while (stop < end && control_[stop] == control_[begin]) ++stop;
            pieces.push_back({{text_.data() + begin, stop - begin}, control_[begin]});
            begin = stop;
        }
        return pieces;
    }

    const ParserHandle& parser_;
    std::string text_, tools_;
    dsv4_completion_options options_{};
    dsv4_stopped_by stopped_by_;
    std::vector<bool> control_;
};

int parse(const ParserHandle& parser, const Json& input, const std::string& split) {
    const Completion completion(parser, input);
    const Json whole = completion.run({});
    std::string different;
    auto check = [&](const std::vector<std::size_t>& cuts, const std::string& what) {
        if (different.empty() && completion.run(cuts) != whole) different = what;
    };
    if (split == "every")
        for (std::size_t at = 1; at < completion.bytes(); ++at) check({at}, "cut at byte " + std::to_string(at));
    else if (split == "codepoint") {
        std::vector<std::size_t> cuts;
        for (std::size_t at = 1; at < completion.bytes(); ++at)
            if (completion.character_begins_at(at)) cuts.push_back(at);
        check(cuts, "code point by code point");
    }
    std::puts(whole.dump(1).c_str());
    if (different.empty()) return clean;
    std::fputs(("error: the result differs when the completion arrives " + different + "\n").c_str(), stderr);
    return findings;
}

Json tokenize(const Json& input, const std::string& path) {
    const char* variable = std::getenv("DSV4_V4_TOKENIZER");
    const std::string file = !path.empty() ? path : variable ? variable : "";
    if (file.empty())
        throw Failure(Code::invalid, "a tokenize vector needs a vocabulary",
                      "pass --tokenizer FILE or set DSV4_V4_TOKENIZER to a tokenizer.json");
    const auto tokenizer = tokenizer::Tokenizer::load(file).value();
    Json json;
    if (input.contains("text")) {
        const std::string text = input.at("text");
        const auto ids = tokenizer.encode(text).value();
        json = {{"ids", ids}, {"count", ids.size()}, {"pieces", tokenizer.pieces(text).value()}};
    } else {
        std::vector<std::string> texts;
        for (const auto& s : input.at("segments")) texts.push_back(s.at(1));
        std::vector<tokenizer::Segment> segments;
        for (std::size_t i = 0; i < texts.size(); ++i)
            segments.push_back({input.at("segments")[i].at(0) == "ctl" ? tokenizer::Segment::Kind::control
                                                                       : tokenizer::Segment::Kind::text,
                                texts[i]});
        const auto ids = tokenizer.encode_segments(segments).value();
        json = {{"ids", ids}, {"count", ids.size()}};
    }
    return json;
}

// A chat-completions body through the api plugin's translation and the parser's request layer.
Json encode_request(PluginHost& plugins, const ParserHandle& parser, const std::string& body) {
    const plugin::Instance api = plugins.make("api-openai", plugin::Kind::api);
    const auto& table = api.table<dsv4_api_table>();
    const dsv4_translation* translation = nullptr;
    sdk::check(table.translate(api.self(), sdk::str("/v1/chat/completions"), sdk::str(body), &translation));
    Json json;
    if (translation->http_status != 200) {
        const auto answer = Json::parse(std::string(sdk::view(translation->error_json)), nullptr, false);
        json = {{"error", true}, {"http_status", translation->http_status}};
        if (answer.is_object() && answer.contains("error") && answer["error"].is_object())
            for (const char* member : {"message", "param"}) json[member] = answer["error"].value(member, Json(nullptr));
    } else
        json = parser.encode_request(*translation->request->chat);
    table.translation_release(api.self(), translation);
    return json;
}

int run_vector(const CodecOptions& options) {
    const std::string text = read_text(options.vector_file, std::size_t{64} << 20);
    const Json vector = Json::parse(text, nullptr, false);
    if (!vector.is_object() || !vector.contains("kind") || !vector.contains("input"))
        throw Failure(Code::invalid, "'" + options.vector_file + "' is not a vector: an object with kind and input");
    const std::string kind = vector["kind"];
    if (kind == "tokenize") {
        std::puts(tokenize(vector["input"], options.tokenizer).dump(1).c_str());
        return clean;
    }
    PluginHost plugins;
    const plugin::Instance instance = plugins.make(options.parser, plugin::Kind::parser);
    const ParserHandle parser(instance);
    if (kind == "parse") return parse(parser, vector["input"], options.split);
    if (kind != "encode") throw Failure(Code::invalid, "vectors of kind '" + kind + "' are not known here");
    const Json json = vector.value("layer", "messages") == "request"
                          ? encode_request(plugins, parser, raw_member(text, {"input", "request"}))
                          : parser.encode_messages(raw_member(text, {"input"}));
    std::puts(json.dump(1).c_str());
    return clean;
}

} // namespace

int codec(const CodecOptions& options) {
    return guarded([&] {
        try {
            return run_vector(options);
        } catch (const nlohmann::json::exception& e) {
            throw Failure(Code::invalid, "'" + options.vector_file + "' is not a vector of its kind: " + e.what());
        } catch (const std::out_of_range&) {
            throw Failure(Code::invalid, "'" + options.vector_file + "' has a literal range outside its completion");
        }
    });
}

} // namespace dsv4::cli
