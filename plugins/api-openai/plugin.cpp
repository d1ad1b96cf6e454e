// The plugin: the OpenAI API behind the api contract.
#include "api_error.hpp"
#include "front.hpp"
#include "server.hpp"

#include <dsv4/sdk/api.hpp>

#include <memory>
#include <string>

namespace dsv4::openai {
namespace {

struct Read final : sdk::Translation {
    std::unique_ptr<Call> call;
};

class OpenAi final : public sdk::Api {
  public:
    OpenAi(const sdk::Host& host, const sdk::Options& options)
        : front_(host, read_settings(host, options)), server_(front_) {}

    std::unique_ptr<sdk::Translation> translate(std::string_view route, std::string_view body) const override {
        auto out = std::make_unique<Read>();
        try {
            const Route which = match_route(route).route;
            if (which != Route::chat && which != Route::completions) throw Refusal{unknown_path(route)};
            if (body.size() > front_.settings().max_body_bytes)
                throw Refusal{too_large(front_.settings().max_body_bytes)};
            out->call = front_.read(which, std::string(body));
            for (const dsv4_generate_request& request : out->call->requests) out->requests.push_back(&request);
        } catch (...) {
            const ApiError error = front_.as_error();
            out->http_status = error.status;
            out->error_json = to_json(error);
        }
        return out;
    }
    void start() override { server_.start(); }
    std::string_view endpoint() const override { return server_.endpoint(); }
    void drain(std::uint64_t deadline_us) override { server_.drain(deadline_us); }
    void stop() noexcept override { server_.stop(); }

  private:
    Front front_;
    Server server_;
};

} // namespace
} // namespace dsv4::openai

DSV4_PLUGIN((dsv4::sdk::About{.version = DSV4_API_OPENAI_VERSION,
                              .licence = "Apache-2.0",
                              .status = DSV4_STATUS_STABLE,
                              .posture = DSV4_POSTURE_UNTRUSTED_INPUT}),
            dsv4::openai::OpenAi)
