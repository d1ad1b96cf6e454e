// `dsv4 score`: logits, and on request streams and picks, of a token sequence.
#include "core/runtime/score.hpp"
#include "cli/commands.hpp"
#include "cli/plugin_host.hpp"
#include "cli/terminal.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/write_safetensors.hpp"

#include <nlohmann/json.hpp>

namespace dsv4::cli {
namespace {

std::vector<std::int32_t> read_tokens(const std::string& path) {
    const auto json = nlohmann::json::parse(read_text(path, std::size_t{64} << 20), nullptr, false);
    if (!json.is_array()) throw Failure(Code::invalid, "'" + path + "' is not a JSON array of token ids");
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < json.size(); ++i) {
        if (!json[i].is_number_integer() || json[i].get<std::int64_t>() < 0 || json[i].get<std::int64_t>() > INT32_MAX)
            throw Failure(Code::invalid, "element " + std::to_string(i) + " of '" + path + "' is not a token id");
        tokens.push_back(json[i].get<std::int32_t>());
    }
    return tokens;
}

template <class T>
checkpoint::TensorView view(std::string name, model::Dtype dtype, std::vector<std::int64_t> shape,
                            const std::vector<T>& values) {
    return {std::move(name), dtype, std::move(shape), std::as_bytes(std::span(values))};
}

} // namespace

int score(const ScoreCommand& options) {
    return guarded([&] {
        const auto tokens = read_tokens(options.tokens_file);
        const auto checkpoint = checkpoint::Checkpoint::open(options.checkpoint).value();
        checkpoint.loadable().value();
        const model::Geometry& g = checkpoint.card().geometry;

        PluginHost plugins;
        const plugin::Instance backend =
            plugins.make(options.backend, plugin::Kind::backend, parse_options(options.backend_options));
        const runtime::BackendHandle handle{&backend.table<dsv4_backend_table>(), backend.self()};
        dsv4_session_config config{};
        config.struct_size = sizeof config;
        config.group.world = 1;
        config.deterministic = 1;
        runtime::BackendSession session(handle, config);
        const lower::WeightTable weights(checkpoint.weights());
        {
            ProgressBar bar("loading weights");
            session.load(checkpoint, weights, [&](const checkpoint::Progress& p) {
                bar.update(p.done_bytes, p.total_bytes);
                return true;
            });
        }
        runtime::ScoreOptions how;
        how.precision = options.precision == "serve" ? DSV4_SERVE : DSV4_SCORE;
        how.chunk_tokens = options.chunk_tokens;
        how.streams = options.streams;
        const runtime::Score result = runtime::score(session, g, weights, tokens, how);

        std::vector<checkpoint::TensorView> tensors;
        tensors.push_back(view("logits", model::Dtype::f32, {result.tokens, g.vocab_size}, result.logits));
        tensors.push_back(view("argmax", model::Dtype::i32, {result.tokens}, result.argmax));
        for (const auto& [layer, values] : result.streams)
            tensors.push_back(view("streams." + std::to_string(layer), model::Dtype::f32,
                                   {result.tokens, g.hc_mult, g.hidden_size}, values));
        for (const auto& [layer, values] : result.picks)
            tensors.push_back(
                view("picks." + std::to_string(layer), model::Dtype::i32, {result.tokens, g.index_topk}, values));
        checkpoint::write_safetensors(options.out_file, tensors,
                                      {{"precision", options.precision}, {"backend", options.backend}})
            .value();
        return int(clean);
    });
}

} // namespace dsv4::cli
