// A JSON reader that refuses repeated keys.
#include "core/model/strict_json.hpp"

#include "dsv4/sdk/result.hpp"

#include <string>
#include <unordered_set>
#include <vector>

namespace dsv4::model {
namespace {

// nlohmann's messages begin with an identifier in brackets that means nothing to a reader.
std::string plain(const char* what) {
    const std::string text = what;
    const std::size_t end = text.find("] ");
    return end == std::string::npos ? text : text.substr(end + 2);
}

} // namespace

nlohmann::json parse_strict_object(std::string_view text, std::string_view where) {
    using nlohmann::json;
    std::vector<std::unordered_set<std::string>> open;
    std::string repeated;
    bool too_deep = false;
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
        too_deep = too_deep || depth > 64;
        if (event == json::parse_event_t::object_start) open.emplace_back();
        if (event == json::parse_event_t::object_end) open.pop_back();
        if (event == json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
            repeated = parsed.get<std::string>();
        return !too_deep;
    };
    json value;
    try {
        value = json::parse(text.begin(), text.end(), watch);
    } catch (const json::exception& e) {
        throw Failure(Code::corrupt, std::string(where) + " is not valid JSON: " + plain(e.what()),
                      "fetch the file again; it may have been cut short or edited");
    }
    if (too_deep) throw Failure(Code::corrupt, std::string(where) + " nests JSON deeper than 64 levels");
    if (!repeated.empty())
        throw Failure(Code::corrupt, std::string(where) + " states the key \"" + repeated + "\" twice",
                      "keep one of the two");
    if (!value.is_object()) throw Failure(Code::corrupt, std::string(where) + " does not hold a JSON object");
    return value;
}

} // namespace dsv4::model
