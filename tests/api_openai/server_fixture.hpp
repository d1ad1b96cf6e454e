// A running server around a script.
#pragma once

#include "tests/api_openai/client.hpp"
#include "tests/api_openai/fake_host.hpp"
#include "tests/support/catch.hpp"

namespace dsv4::test {

class TestServer {
  public:
    template <class Setup = void (*)(FakeHost&)>
    explicit TestServer(
        FakeService::Play play, Setup setup = [](FakeHost&) {})
        : service(std::move(play)), host(&service) {
        host.options.values["header_timeout"] = 5.0;
        setup(host);
        api = std::make_unique<LoadedApi>(host);
        port = api->start();
    }
    FakeService service;
    FakeHost host;
    std::unique_ptr<LoadedApi> api;
    std::uint16_t port = 0;

    HttpAnswer chat(const nlohmann::json& body, std::string_view headers = {}) const {
        return ask_post(port, "/v1/chat/completions", body.dump(), headers);
    }
};

inline nlohmann::json chat_body(bool stream = false) {
    nlohmann::json body = {{"model", "tiny"}, {"messages", {{{"role", "user"}, {"content", "ping"}}}}};
    if (stream) body["stream"] = true;
    return body;
}

inline FakeService::Play always(Script script) {
    return [script = std::move(script)](const dsv4_generate_request&) { return script; };
}

} // namespace dsv4::test
