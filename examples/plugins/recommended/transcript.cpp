// Writes transcripts and cuts UTF-8.
#include "transcript.hpp"

#include <nlohmann/json.hpp>

namespace transcript {
namespace {

using dsv4::Code;
using dsv4::Failure;

constexpr std::string_view replacement = "\xef\xbf\xbd";

struct Look {
    std::size_t bytes; // of the character, or of the part that is broken
    enum { whole, broken, unfinished } state;
};

Look look(std::string_view s) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return {1, Look::whole};
    const std::size_t size = first >= 0xC2 && first <= 0xDF   ? 2
                             : (first & 0xF0) == 0xE0         ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
    if (size == 0) return {1, Look::broken};
    for (std::size_t i = 1; i < size; ++i) {
        if (i == s.size()) return {i, Look::unfinished};
        unsigned low = 0x80, high = 0xBF;
        if (i == 1 && first == 0xE0) low = 0xA0;  // longer than needed
        if (i == 1 && first == 0xED) high = 0x9F; // surrogates
        if (i == 1 && first == 0xF0) low = 0x90;
        if (i == 1 && first == 0xF4) high = 0x8F; // above U+10FFFF
        if (byte(i) < low || byte(i) > high) return {i, Look::broken};
    }
    return {size, Look::whole};
}

} // namespace

std::string write(std::string_view messages_json, const Labels& labels, std::size_t max_messages) {
    const auto messages = nlohmann::json::parse(messages_json, nullptr, false);
    if (!messages.is_array()) throw Failure(Code::invalid, "`messages` is not a JSON array");
    if (messages.size() > max_messages)
        throw Failure(Code::invalid, "the conversation has more than " + std::to_string(max_messages) + " messages");
    std::string text;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const auto& m = messages[i];
        const auto where = "messages[" + std::to_string(i) + "]";
        if (!m.is_object() || !m.contains("role") || !m["role"].is_string() || !m.contains("content") ||
            !m["content"].is_string())
            throw Failure(Code::invalid, where + " needs a role and a content, both texts");
        const auto& role = m["role"].get_ref<const std::string&>();
        const auto& content = m["content"].get_ref<const std::string&>();
        if (role == "user")
            text += labels.user + ": " + content + "\n";
        else if (role == "assistant")
            text += labels.assistant + ": " + content + "\n";
        else if (role == "system")
            text += content + "\n";
        else
            throw Failure(Code::invalid, where + " has the role \"" + role + "\"",
                          "roles are system, user and assistant");
    }
    return text + labels.assistant + ":";
}

std::string Characters::take(bool last) {
    std::string out;
    std::string_view rest = waiting_;
    while (!rest.empty()) {
        const auto l = look(rest);
        if (l.state == Look::unfinished && !last) break;
        out += l.state == Look::whole ? rest.substr(0, l.bytes) : replacement;
        rest.remove_prefix(l.bytes);
    }
    waiting_ = std::string(rest);
    return out;
}

std::string Characters::feed(std::string_view bytes) {
    waiting_ += bytes;
    return take(false);
}

std::string Characters::finish() { return take(true); }

} // namespace transcript
