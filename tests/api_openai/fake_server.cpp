// Serves the plugin with the fake engine until its standard input closes: what clients in other languages are tested
// against. Prints the endpoint. What a request says chooses the script: see play().
#include "tests/api_openai/fake_host.hpp"

#include "dsv4/sdk/error.hpp"

#include <cstdio>
#include <exception>
#include <string>

using namespace dsv4::test;

namespace {

Script play(const dsv4_generate_request& r) {
    Script s;
    const std::string messages = r.chat ? std::string(r.chat->messages.data, r.chat->messages.size) : std::string();
    const auto says = [&](const char* word) { return messages.find(word) != std::string::npos; };
    s.events = {accepted()};
    if (says("please fail late")) {
        s.events.push_back(text("some"));
        s.events.push_back(failed(DSV4_INTERNAL, "lost"));
        return s;
    }
    if (says("too long")) {
        s.refuse_code = DSV4_INVALID;
        s.refuse_message = "This model's maximum context length is 4096 tokens. However, your prompt has 5000 tokens.";
        return s;
    }
    if (says("queue")) {
        s.refuse_code = DSV4_EXHAUSTED;
        s.refuse_message = "the queue is full";
        return s;
    }
    if (r.chat && r.chat->tools.size > 2) {
        s.events.push_back(text("I need the tide.", DSV4_DELTA_REASONING));
        s.events.push_back(tool_begin(0, "get_tide"));
        s.events.push_back(tool_arguments(0, "{\"harbour\": "));
        s.events.push_back(tool_arguments(0, "\"Faro\"}"));
        s.events.push_back(finished(DSV4_REASON_TOOL_CALLS));
        return s;
    }
    for (std::uint32_t i = 0; i < r.n; ++i) {
        if (r.chat) s.events.push_back(text("Let me think.", DSV4_DELTA_REASONING, i));
        for (const char* word : {"Hello", ", ", "wörld", " 😀", "!"})
            s.events.push_back(text(word, DSV4_DELTA_CONTENT, i));
    }
    for (std::uint32_t i = 0; i < r.n; ++i) s.events.push_back(finished(DSV4_REASON_STOP, i));
    s.gap_us = 500;
    return s;
}

} // namespace

int main(int argc, char** argv) try {
    FakeService service(play);
    FakeHost host(&service);
    if (argc > 1) {
        host.secrets["env:KEY"] = argv[1];
        host.options.values["api_key"] = std::string("env:KEY");
    }
    LoadedApi api(host);
    api.start();
    const dsv4_str endpoint = api.table().endpoint(api.self());
    std::printf("%.*s\n", int(endpoint.size), endpoint.data);
    std::fflush(stdout);
    while (std::getchar() != EOF) {}
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
