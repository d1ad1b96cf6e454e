// Paths to routes, with the prefixes that other servers' clients use.
#include "route.hpp"

#include <array>

namespace dsv4::openai {
namespace {

struct Entry {
    std::string_view path;
    Route route;
    bool needs_key = true;
};

constexpr auto table = std::to_array<Entry>({
    {"/chat/completions", Route::chat},
    {"/chat/completions/render", Route::chat_render},
    {"/completions", Route::completions},
    {"/models", Route::models},
    {"/tokenize", Route::tokenize},
    {"/detokenize", Route::detokenize},
    {"/health", Route::health, false},
    {"/ready", Route::health, false},
    {"/ping", Route::health, false},
    {"/version", Route::version, false},
    {"/load", Route::load, false},
    {"/metrics", Route::metrics},
});

} // namespace

RouteMatch match_route(std::string_view target) noexcept {
    std::string_view path = target.substr(0, target.find_first_of("?#"));
    if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    for (const std::string_view prefix : {"/v1", "/beta"})
        if (path.starts_with(prefix) && path.substr(prefix.size()).starts_with('/')) {
            path.remove_prefix(prefix.size());
            break;
        }
    for (const Entry& entry : table)
        if (entry.path == path) return {entry.route, {}, entry.needs_key};
    constexpr std::string_view models = "/models/";
    if (path.starts_with(models) && path.size() > models.size())
        return {Route::model, path.substr(models.size()), true};
    return {};
}

std::string_view RouteMatch::name() const noexcept {
    switch (route) {
    case Route::chat: return "chat_completions";
    case Route::chat_render: return "render";
    case Route::completions: return "completions";
    case Route::tokenize: return "tokenize";
    case Route::detokenize: return "detokenize";
    case Route::models:
    case Route::model: return "models";
    case Route::health: return "health";
    case Route::version: return "version";
    case Route::load: return "load";
    case Route::metrics: return "metrics";
    default: return "other";
    }
}

} // namespace dsv4::openai
