// Loads the plugin and a checkpoint.
#include "tests/numerics/model.hpp"

#include <bit>
#include <cstring>

namespace dsv4::numerics {
namespace {

host::HostOptions host_options(std::uint32_t threads) {
    host::HostOptions options;
    options.threads = threads;
    options.log.level = host::LogLevel::warning;
    return options;
}

plugin::Instance make_backend(const char* accumulate, host::Host& host) {
    plan::Options options;
    options["accumulate"].value = std::string(accumulate);
    auto library = plugin::Library::load(std::filesystem::path(DSV4_PLUGIN_DIR "/backend-cpu.so")).value();
    return plugin::Instance::create(std::move(library), plugin::Kind::backend, options, host).value();
}

checkpoint::Checkpoint open(const std::string& directory) {
    auto checkpoint = checkpoint::Checkpoint::open(directory).value();
    checkpoint.loadable().value();
    return checkpoint;
}

dsv4_session_config session_config() {
    dsv4_session_config config{};
    config.struct_size = sizeof config;
    config.group.world = 1;
    config.deterministic = 1;
    return config;
}

} // namespace

Model::Model(const std::string& directory, const Numbers& numbers, std::uint32_t threads)
    : numbers_(numbers),
      host_(host_options(threads)),
      backend_(make_backend(numbers.accumulate, host_)),
      checkpoint_(open(directory)),
      weights_(checkpoint_.weights()),
      session_({&backend_.table<dsv4_backend_table>(), backend_.self()}, session_config()) {
    session_.load(checkpoint_, weights_);
}

runtime::Score Model::score(const std::vector<std::int32_t>& tokens, runtime::ScoreOptions options) {
    options.precision = numbers_.precision;
    return runtime::score(session_, geometry(), weights_, tokens, options);
}

std::vector<float> Model::embedded(const std::vector<std::int32_t>& tokens) const {
    const checkpoint::Tensor* table = checkpoint_.find("embed.weight");
    if (!table || table->entry->dtype != model::Dtype::bf16)
        throw Failure(Code::invalid, "the checkpoint has no embedding in bf16");
    const auto bytes = checkpoint_.bytes(*table);
    const auto width = std::size_t(geometry().hidden_size);
    std::vector<float> streams;
    for (const std::int32_t token : tokens)
        for (std::int64_t copy = 0; copy < geometry().hc_mult; ++copy)
            for (std::size_t i = 0; i < width; ++i) {
                std::uint16_t high = 0;
                std::memcpy(&high, bytes.data() + 2 * (std::size_t(token) * width + i), 2);
                streams.push_back(std::bit_cast<float>(std::uint32_t(high) << 16));
            }
    return streams;
}

} // namespace dsv4::numerics
