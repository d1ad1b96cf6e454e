// Bodies are put together from JSON that was made once, so that making one costs no time while the load runs.
#include "bench/prompts.hpp"

#include "dsv4/sdk/result.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

namespace dsv4::bench {

namespace {

using nlohmann::ordered_json;

// 128 common words, so that seven random bits choose one.
constexpr const char* words[128] = {
    "time",   "year",    "people",  "way",     "day",     "man",      "thing",    "woman",    "life",   "child",
    "world",  "school",  "state",   "family",  "student", "group",    "country",  "problem",  "hand",   "part",
    "place",  "case",    "week",    "company", "system",  "program",  "question", "work",     "number", "night",
    "point",  "home",    "water",   "room",    "mother",  "area",     "money",    "story",    "fact",   "month",
    "lot",    "right",   "study",   "book",    "eye",     "job",      "word",     "business", "issue",  "side",
    "kind",   "head",    "house",   "service", "friend",  "father",   "power",    "hour",     "game",   "line",
    "end",    "member",  "law",     "car",     "city",    "name",     "team",     "minute",   "idea",   "body",
    "back",   "parent",  "face",    "others",  "level",   "office",   "door",     "health",   "person", "art",
    "war",    "history", "party",   "result",  "change",  "morning",  "reason",   "research", "girl",   "guy",
    "moment", "air",     "teacher", "force",   "order",   "foot",     "boy",      "age",      "policy", "music",
    "market", "sense",   "nation",  "plan",    "college", "interest", "death",    "course",   "effect", "garden",
    "river",  "stone",   "paper",   "light",   "voice",   "summer",   "winter",   "letter",   "window", "bridge",
    "forest", "island",  "train",   "ocean",   "bread",   "silver",   "north",    "cloud"};
static_assert(words[127] != nullptr);

ordered_json parse_object(const std::string& text, const char* what) {
    ordered_json value;
    try {
        value = ordered_json::parse(text);
    } catch (const ordered_json::exception& e) {
        throw Failure(Code::invalid, std::string(what) + " is no JSON: " + e.what());
    }
    if (!value.is_object()) throw Failure(Code::invalid, std::string(what) + " is no JSON object");
    return value;
}

std::string dump(const ordered_json& value, const std::string& what) {
    try {
        return value.dump();
    } catch (const ordered_json::exception&) {
        throw Failure(Code::invalid, what + " is not UTF-8");
    }
}

// One prompt as the JSON that the API takes.
std::string to_prompt(const ordered_json& prompt, Api api, const std::string& what) {
    if (prompt.is_string()) {
        if (api == Api::completions) return dump(prompt, what);
        return dump(ordered_json::array({{{"role", "user"}, {"content", prompt}}}), what);
    }
    if (!prompt.is_array() || prompt.empty() || !prompt.front().is_object())
        throw Failure(Code::invalid, what + " is neither a text nor an array of messages");
    if (api == Api::completions)
        throw Failure(Code::invalid, what + " is an array of messages, which text completions do not take",
                      "use the chat endpoint or an array of texts");
    for (const auto& message : prompt)
        if (!message.is_object() || !message.contains("role"))
            throw Failure(Code::invalid, what + " has a message without a role");
    return dump(prompt, what);
}

std::vector<std::string> read_prompts(const std::string& path, Api api) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Failure(Code::not_found, "cannot open the prompts file '" + path + "'");
    ordered_json all;
    try {
        all = ordered_json::parse(file);
    } catch (const ordered_json::exception& e) {
        throw Failure(Code::invalid, "the prompts file '" + path + "' is no JSON: " + e.what());
    }
    if (!all.is_array() || all.empty())
        throw Failure(Code::invalid, "the prompts file '" + path + "' is not an array of one or more prompts",
                      "write [\"a text\", ...] or [[{\"role\": \"user\", \"content\": \"a text\"}], ...]");
    std::vector<std::string> prompts;
    for (std::size_t i = 0; i < all.size(); ++i)
        prompts.push_back(to_prompt(all[i], api, "prompt " + std::to_string(i) + " of '" + path + "'"));
    return prompts;
}

} // namespace

Requests::Requests(const RequestSettings& settings) : settings_(settings) {
    const int sources = int(settings.prompt.has_value()) + int(settings.prompts_file.has_value()) +
                        int(settings.random_words.has_value());
    if (sources != 1)
        throw Failure(Code::invalid, sources ? "there is more than one source of prompts" : "there is nothing to ask",
                      "give one of --prompt, --prompts and --random-words");
    if (settings.random_words && (*settings.random_words == 0 || *settings.random_words > 10'000'000))
        throw Failure(Code::invalid, "a random prompt has from 1 to 10000000 words");
    if (settings.max_tokens && *settings.max_tokens < 1)
        throw Failure(Code::invalid, "the most tokens of an answer are not 1 or more");

    if (settings.prompt) prompts_.push_back(to_prompt(*settings.prompt, settings.api, "the prompt"));
    if (settings.prompts_file) prompts_ = read_prompts(*settings.prompts_file, settings.api);

    ordered_json rest;
    rest["model"] = settings.model;
    if (settings.max_tokens) rest["max_tokens"] = *settings.max_tokens;
    if (settings.temperature) rest["temperature"] = *settings.temperature;
    rest["stream"] = settings.stream;
    if (settings.stream && settings.include_usage) rest["stream_options"] = {{"include_usage", true}};
    if (!settings.extra_body.empty()) {
        const ordered_json extra = parse_object(settings.extra_body, "the extra body");
        for (const auto& [name, value] : extra.items()) {
            if (rest.contains(name) || name == "messages" || name == "prompt" || name == "stream_options" ||
                name == "n")
                throw Failure(Code::invalid, "the extra body has the member '" + name + "', which the benchmark sets");
            rest[name] = value;
        }
    }
    rest_ = "," + dump(rest, "the request").substr(1);
}

std::string Requests::random_text(std::uint64_t index) const {
    std::mt19937_64 random(settings_.seed + 0x9E3779B97F4A7C15u * (index + 1));
    // The number comes first, so that prompts differ from their first tokens on and no prefix cache joins them.
    std::string text = std::to_string(index);
    for (std::uint32_t i = 0; i < *settings_.random_words; ++i) {
        text += ' ';
        text += words[random() >> 57];
    }
    return text;
}

std::string Requests::body(std::uint64_t index) const {
    const bool chat = settings_.api == Api::chat;
    std::string out = chat ? R"({"messages":)" : R"({"prompt":)";
    if (settings_.random_words) {
        const char* before = chat ? R"([{"role":"user","content":")" : "\"";
        const char* after = chat ? "\"}]" : "\"";
        out += before + random_text(index) + after;
    } else {
        out += prompts_[index % prompts_.size()];
    }
    return out + rest_;
}

} // namespace dsv4::bench
