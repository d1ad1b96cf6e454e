// The echo parser: a prompt is what the users said, a completion is content from its first byte to its last.
#include <dsv4/sdk/parser.hpp>

namespace {

using dsv4::Code;
using dsv4::Failure;
using dsv4::sdk::view;

[[noreturn]] void bad(const char* why) {
    throw Failure(Code::invalid, std::string("messages are not what a chat needs: ") + why);
}

// Just enough JSON to walk an array of messages. Numbers are skipped without judging them.
class Json {
  public:
    explicit Json(std::string_view text) : text_(text) {}

    // True when the next thing is `c`, which is taken.
    bool take(char c) {
        space();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void need(char c) {
        if (!take(c)) bad("malformed JSON");
    }
    bool done() {
        space();
        return at_ == text_.size();
    }
    bool at_string() {
        space();
        return at_ < text_.size() && text_[at_] == '"';
    }
    std::string string() {
        need('"');
        std::string out;
        while (true) {
            const char c = next();
            if (c == '"') return out;
            if (static_cast<unsigned char>(c) < 0x20) bad("a control character inside a string");
            if (c != '\\') {
                out += c;
                continue;
            }
            switch (const char e = next()) {
            case 'n': out += '\n'; break;
            case 't': out += '\t'; break;
            case 'r': out += '\r'; break;
            case 'b': out += '\b'; break;
            case 'f': out += '\f'; break;
            case '"':
            case '\\':
            case '/': out += e; break;
            case 'u': append(out, escaped()); break;
            default: bad("an unknown escape");
            }
        }
    }
    // Each(key) must consume the value.
    template <class F> void object(F&& each) {
        need('{');
        if (take('}')) return;
        do {
            const auto key = string();
            need(':');
            each(key);
        } while (take(','));
        need('}');
    }
    template <class F> void array(F&& each) {
        need('[');
        if (take(']')) return;
        do each();
        while (take(','));
        need(']');
    }
    void skip() {
        if (++depth_ > 64) bad("nested too deeply");
        space();
        const char c = at_ < text_.size() ? text_[at_] : '\0';
        if (c == '"')
            string();
        else if (c == '{')
            object([&](const std::string&) { skip(); });
        else if (c == '[')
            array([&] { skip(); });
        else {
            const auto begin = at_;
            while (at_ < text_.size() &&
                   std::string_view("+-.0123456789aefilnrstuEINY").find(text_[at_]) != std::string_view::npos)
                ++at_;
            if (at_ == begin) bad("malformed JSON");
        }
        --depth_;
    }

  private:
    void space() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    }
    char next() {
        if (at_ >= text_.size()) bad("a string without end");
        return text_[at_++];
    }
    std::uint32_t hex() {
        std::uint32_t v = 0;
        for (int i = 0; i < 4; ++i) {
            const char c = next();
            if (c >= '0' && c <= '9')
                v = v * 16 + std::uint32_t(c - '0');
            else if ((c | 32) >= 'a' && (c | 32) <= 'f')
                v = v * 16 + std::uint32_t((c | 32) - 'a' + 10);
            else
                bad("a broken \\u escape");
        }
        return v;
    }
    std::uint32_t escaped() {
        auto v = hex();
        if (v >= 0xdc00 && v < 0xe000) bad("a lone surrogate");
        if (v < 0xd800 || v >= 0xdc00) return v;
        if (next() != '\\' || next() != 'u') bad("a lone surrogate");
        const auto low = hex();
        if (low < 0xdc00 || low >= 0xe000) bad("a lone surrogate");
        return 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
    }
    static void append(std::string& out, std::uint32_t v) {
        if (v < 0x80)
            out += char(v);
        else if (v < 0x800)
            (out += char(0xc0 | v >> 6)) += char(0x80 | (v & 63));
        else if (v < 0x10000)
            ((out += char(0xe0 | v >> 12)) += char(0x80 | (v >> 6 & 63))) += char(0x80 | (v & 63));
        else
            (((out += char(0xf0 | v >> 18)) += char(0x80 | (v >> 12 & 63))) += char(0x80 | (v >> 6 & 63))) +=
                char(0x80 | (v & 63));
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

// Cuts a byte stream into whole characters. What can never become one is U+FFFD, one for each maximal part, so that the
// text does not depend on how the bytes were cut.
class Characters {
  public:
    void feed(std::string_view bytes, std::string& out) {
        for (const char c : bytes) take(static_cast<unsigned char>(c), out);
    }
    void finish(std::string& out) {
        if (have_) out += "\xef\xbf\xbd";
        have_ = 0;
    }

  private:
    void take(unsigned char c, std::string& out) {
        if (have_) {
            if (c >= low_ && c <= high_) {
                held_[have_++] = char(c);
                low_ = 0x80, high_ = 0xbf;
                if (have_ < want_) return;
                out.append(held_, have_);
                have_ = 0;
                return;
            }
            finish(out); // and c begins anew
        }
        low_ = 0x80, high_ = 0xbf;
        if (c < 0x80) {
            out += char(c);
            return;
        }
        if (c >= 0xc2 && c <= 0xdf)
            want_ = 2;
        else if (c >= 0xe0 && c <= 0xef) {
            want_ = 3;
            if (c == 0xe0) low_ = 0xa0;
            if (c == 0xed) high_ = 0x9f;
        } else if (c >= 0xf0 && c <= 0xf4) {
            want_ = 4;
            if (c == 0xf0) low_ = 0x90;
            if (c == 0xf4) high_ = 0x8f;
        } else {
            out += "\xef\xbf\xbd";
            return;
        }
        held_[0] = char(c);
        have_ = 1;
    }

    char held_[4] = {};
    unsigned have_ = 0, want_ = 0;
    unsigned char low_ = 0x80, high_ = 0xbf;
};

class EchoStream final : public dsv4::sdk::CompletionStream {
  public:
    void feed(std::span<const dsv4_piece> pieces, const Sink& sink) override {
        std::string text;
        for (const auto& piece : pieces) characters_.feed(view(piece.bytes), text);
        if (!text.empty()) sink(DSV4_DELTA_CONTENT, 0, text);
    }
    dsv4_completion_end finish(dsv4_stopped_by stopped_by, const Sink& sink) override {
        std::string text;
        characters_.finish(text);
        if (!text.empty()) sink(DSV4_DELTA_CONTENT, 0, text);
        return {sizeof(dsv4_completion_end), stopped_by == DSV4_STOPPED_LENGTH ? DSV4_FINISH_LENGTH : DSV4_FINISH_STOP,
                0, 0};
    }

  private:
    Characters characters_;
};

std::vector<std::string> names(const std::string& stop) {
    return stop.empty() ? std::vector<std::string>{} : std::vector<std::string>{stop};
}

class Echo final : public dsv4::sdk::Parser {
  public:
    Echo(const dsv4::sdk::Host&, const dsv4::sdk::Options& options)
        : Parser(names(options.text("stop_token"))), stop_(options.text("stop_token")) {}

    dsv4::sdk::Prompt encode(const dsv4_chat_request& request) const override {
        dsv4::sdk::Prompt prompt;
        Json json(view(request.messages));
        json.array([&] {
            std::string role;
            std::vector<std::string> texts;
            json.object([&](const std::string& key) {
                if (key == "role")
                    role = json.string();
                else if (key == "content")
                    content(json, texts);
                else
                    json.skip();
            });
            if (role.empty()) bad("a message without a role");
            if (role != "user") return;
            for (auto& t : texts)
                if (!t.empty()) prompt.segments.push_back({DSV4_SEGMENT_TEXT, std::move(t)});
        });
        if (!json.done()) bad("something follows the array");
        if (prompt.segments.empty()) bad("no user said anything");
        prompt.stop_names = names(stop_);
        return prompt;
    }
    std::unique_ptr<dsv4::sdk::CompletionStream> stream(const dsv4_completion_options&) const override {
        return std::make_unique<EchoStream>();
    }

  private:
    // A string, null, or an array of parts of which those with a "text" count.
    static void content(Json& json, std::vector<std::string>& texts) {
        if (json.at_string()) {
            texts.push_back(json.string());
            return;
        }
        if (!json.take('[')) return json.skip();
        if (json.take(']')) return;
        do {
            json.object([&](const std::string& key) {
                if (key == "text")
                    texts.push_back(json.string());
                else
                    json.skip();
            });
        } while (json.take(','));
        json.need(']');
    }

    std::string stop_;
};

} // namespace

DSV4_PLUGIN((dsv4::sdk::About{.version = "1.0.0",
                              .licence = "Apache-2.0",
                              .status = DSV4_STATUS_BETA,
                              .posture = DSV4_POSTURE_UNTRUSTED_INPUT}),
            Echo)
