// Parsing vectors as test cases, and a run of the parser over one of them.
#pragma once

#include "completion_parser.hpp"
#include "message_reader.hpp"
#include "vector_file.hpp"

#include <string>
#include <vector>

namespace dsv4::test {

struct StreamCase {
    std::string label;
    std::vector<std::size_t> sizes; // of the chunks, in bytes
    std::vector<Json> deltas;
    Json final_delta;
};

struct CompletionCase {
    std::string name;
    std::string why;
    std::string bytes;
    std::vector<bool> literal; // per byte: quoted, so never markup
    bool thinking = false;
    bool tools_enabled = false;
    deepseek_v4::StoppedBy stopped_by = deepseek_v4::StoppedBy::eos;
    std::string tools; // JSON array, or empty
    Json expected;     // as result_json gives it
    bool malformed = false;
    std::vector<StreamCase> streams;
};

inline Json result_json(const deepseek_v4::ParsedCompletion& whole) {
    static constexpr const char* finishes[] = {"stop", "length", "tool_calls"};
    Json calls = Json::array();
    for (const auto& call : whole.tool_calls)
        calls.push_back({{"name", call.name}, {"arguments", call.arguments}, {"complete", call.complete}});
    return {{"reasoning_content", whole.reasoning},
            {"content", whole.content},
            {"tool_calls", calls},
            {"finish_reason", finishes[static_cast<std::size_t>(whole.finish)]}};
}

inline Json delta_json(const deepseek_v4::Delta& delta) {
    Json out = Json::object();
    if (!delta.reasoning.empty()) out["reasoning_content"] = delta.reasoning;
    if (!delta.content.empty()) out["content"] = delta.content;
    for (const auto& call : delta.tool_calls) {
        Json entry = {{"index", call.index}};
        if (call.name) entry["name"] = *call.name;
        entry["arguments"] = call.arguments;
        out["tool_calls"].push_back(std::move(entry));
    }
    return out;
}

inline std::string from_hex(const std::string& hex) {
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return out;
}

inline std::vector<CompletionCase> completion_cases() {
    std::vector<CompletionCase> out;
    for (const VectorFile& vector : read_vectors("parsing", "par-")) {
        const Json& input = vector.json["input"];
        CompletionCase c;
        c.name = vector.name;
        c.why = vector.json["why"];
        c.bytes = input["completion"];
        c.thinking = input["thinking"];
        c.tools_enabled = input["tools_enabled"];
        const std::string stopped_by = input["stopped_by"];
        c.stopped_by = stopped_by == "length" ? deepseek_v4::StoppedBy::length
                       : stopped_by == "stop" ? deepseek_v4::StoppedBy::stop
                                              : deepseek_v4::StoppedBy::eos;
        if (input.contains("tools")) c.tools = input["tools"].dump();
        c.literal.assign(c.bytes.size(), false);
        if (input.contains("literal_ranges")) { // half-open, in code points
            std::size_t point = 0;
            for (std::size_t i = 0; i < c.bytes.size(); ++i) {
                if (i > 0 && (c.bytes[i] & 0xC0) != 0x80) ++point;
                for (const Json& range : input["literal_ranges"])
                    if (point >= range[0].get<std::size_t>() && point < range[1].get<std::size_t>())
                        c.literal[i] = true;
            }
        }
        const Json& expected = vector.json["expected"];
        for (const char* key : {"reasoning_content", "content", "tool_calls", "finish_reason"})
            c.expected[key] = expected[key];
        c.malformed = expected["malformed"];
        for (const Json& stream : vector.json["streams"]) {
            StreamCase s;
            s.label = stream["label"];
            if (stream.contains("chunks_hex"))
                for (const Json& chunk : stream["chunks_hex"]) s.sizes.push_back(from_hex(chunk).size());
            else
                for (const Json& chunk : stream["chunks"]) s.sizes.push_back(chunk.get<std::string>().size());
            s.deltas.assign(stream["deltas"].begin(), stream["deltas"].end());
            s.final_delta = stream["final_delta"];
            c.streams.push_back(std::move(s));
        }
        out.push_back(std::move(c));
    }
    return out;
}

// Feeds parts of a case's text to the parser and keeps what came out.
class Run {
  public:
    explicit Run(const CompletionCase& c) : case_(c), parser_(options(c)) {}

    deepseek_v4::Delta feed(std::size_t at, std::size_t size) {
        using deepseek_v4::Origin;
        deepseek_v4::Delta delta;
        for (std::size_t end = at + size; at < end;) {
            std::size_t same = at + 1;
            while (same < end && case_.literal[same] == case_.literal[at]) ++same;
            parser_.feed(std::string_view(case_.bytes).substr(at, same - at),
                         case_.literal[at] ? Origin::literal : Origin::spelled, delta);
            at = same;
        }
        accumulate(whole_, delta);
        return delta;
    }
    deepseek_v4::Delta finish() {
        deepseek_v4::Delta delta;
        parser_.finish(case_.stopped_by, delta);
        accumulate(whole_, delta);
        whole_.finish = parser_.finish_reason();
        whole_.malformed = parser_.malformed();
        return delta;
    }
    const deepseek_v4::ParsedCompletion& whole() const { return whole_; }

  private:
    static deepseek_v4::ParserOptions options(const CompletionCase& c) {
        deepseek_v4::ParserOptions out;
        out.thinking = c.thinking;
        out.tools_enabled = c.tools_enabled;
        if (!c.tools.empty())
            out.tools = deepseek_v4::ToolSchemas(
                deepseek_v4::read_tools(deepseek_v4::parse_json(c.tools, "tools").value(), "tools"));
        return out;
    }

    const CompletionCase& case_;
    deepseek_v4::CompletionParser parser_;
    deepseek_v4::ParsedCompletion whole_;
};

} // namespace dsv4::test
