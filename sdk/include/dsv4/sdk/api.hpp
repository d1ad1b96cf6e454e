// Base class of an api plugin. See dsv4/api.h.
#pragma once

#include "dsv4/api.h"
#include "dsv4/sdk/host.hpp"
#include "dsv4/sdk/plugin.hpp"

#include <memory>
#include <vector>

namespace dsv4::sdk {

// What a body means. Derive from it to keep alive what `requests` point to.
class Translation {
  public:
    virtual ~Translation() = default;
    int http_status = 200;
    std::vector<const dsv4_generate_request*> requests; // one, or one a prompt; empty unless http_status is 200
    std::string error_json;
};

// Errors are Failure exceptions. Threads as in dsv4/api.h.
class Api {
  public:
    using Interface = Api;
    static constexpr std::int32_t kind = DSV4_KIND_API;
    virtual ~Api() = default;
    virtual std::unique_ptr<Translation> translate(std::string_view route, std::string_view body) const = 0;
    virtual void start() = 0;
    virtual std::string_view endpoint() const = 0;
    virtual void drain(std::uint64_t deadline_us) = 0;
    virtual void stop() noexcept = 0;

    static const dsv4_api_table& table();
};

namespace detail {

inline Api& api(void* self) { return *static_cast<Api*>(self); }

struct TranslationHolder : dsv4_translation {
    std::unique_ptr<Translation> content;
    explicit TranslationHolder(std::unique_ptr<Translation> t) : dsv4_translation{}, content(std::move(t)) {
        struct_size = sizeof(dsv4_translation);
        http_status = content->http_status;
        requests = content->requests.data();
        request_count = std::uint32_t(content->requests.size());
        request = content->requests.empty() ? nullptr : content->requests.front();
        error_json = str(content->error_json);
    }
};

} // namespace detail

inline const dsv4_api_table& Api::table() {
    using namespace detail;
    static const dsv4_api_table t = [] {
        dsv4_api_table a{};
        a.struct_size = sizeof a;
        a.translate = [](void* self, dsv4_str route, dsv4_str body, const dsv4_translation** out) noexcept {
            return contain([&] { *out = new TranslationHolder(api(self).translate(view(route), view(body))); });
        };
        a.translation_release = [](void*, const dsv4_translation* translation) noexcept {
            delete static_cast<const TranslationHolder*>(translation);
        };
        a.start = [](void* self) noexcept { return contain([&] { api(self).start(); }); };
        a.endpoint = [](void* self) noexcept { return str(api(self).endpoint()); };
        a.drain = [](void* self, std::uint64_t deadline_us) noexcept {
            return contain([&] { api(self).drain(deadline_us); });
        };
        a.stop = [](void* self) noexcept { api(self).stop(); };
        return a;
    }();
    return t;
}

} // namespace dsv4::sdk
