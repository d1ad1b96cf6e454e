// Tests of the transcript library; no engine needed.
#include "transcript.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

void expect(const std::string& got, const std::string& wanted) {
    if (got == wanted) return;
    std::fprintf(stderr, "wanted \"%s\", got \"%s\"\n", wanted.c_str(), got.c_str());
    std::exit(1);
}
void expect_error(const std::string& json, const std::string& wanted) {
    try {
        transcript::write(json, {}, 2);
    } catch (const dsv4::Failure& f) {
        return expect(f.error().message, wanted);
    }
    expect("no error", wanted);
}

} // namespace

int main() {
    expect(transcript::write(R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}])", {}, 2),
           "Be brief.\nUser: Hi\nAssistant:");
    expect(transcript::write("[]", {"Q", "A"}, 2), "A:");
    expect_error("{", "`messages` is not a JSON array");
    expect_error("[1]", "messages[0] needs a role and a content, both texts");
    expect_error(R"([{"role":"robot","content":""}])", "messages[0] has the role \"robot\"");
    expect_error("[0,0,0]", "the conversation has more than 2 messages");

    // Every cut of a text gives the same characters.
    const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff z";
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        transcript::Characters characters;
        auto out = characters.feed(text.substr(0, cut));
        out += characters.feed(text.substr(cut));
        expect(out + characters.finish(), "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd z");
    }
    transcript::Characters cut_off;
    expect(cut_off.feed("x\xe2\x82"), "x");
    expect(cut_off.finish(), "\xef\xbf\xbd");
    std::puts("all right");
}
