// The paths that this server answers.
#pragma once

#include <cstdint>
#include <string_view>

namespace dsv4::openai {

enum class Route : std::uint8_t {
    unknown,
    chat,
    chat_render,
    completions,
    tokenize,
    detokenize,
    models,
    model,
    health,
    version,
    load,
    metrics,
};

struct RouteMatch {
    Route route = Route::unknown;
    std::string_view argument; // the model's name, for Route::model; a slice of the target
    bool needs_key = true;
    bool is_post() const noexcept { return route >= Route::chat && route <= Route::detokenize; }
    std::string_view name() const noexcept; // for metrics: few and fixed
};

// `target` is a request target; what follows '?' is ignored.
RouteMatch match_route(std::string_view target) noexcept;

} // namespace dsv4::openai
