// Builds the parts that a serving plan names.
#include "core/runtime/deployment.hpp"

#include "core/checkpoint/resolve.hpp"
#include "core/lower/deepseek_v4.hpp"
#include "core/tokenizer/tokenizer.hpp"
#include "dsv4/sdk/error.hpp"

#include <array>
#include <map>
#include <mutex>

namespace dsv4::runtime {
namespace {

[[noreturn]] void unsupported(std::string what, std::string fix) {
    throw Failure(Code::unsupported, std::move(what), std::move(fix));
}

// What the compiler accepts and this engine cannot run yet.
void refuse_what_cannot_run(const plan::ServingPlan& plan) {
    if (plan.runtime.name != "dsv4")
        unsupported("the pipeline runs on '" + plan.runtime.name + "', not on this engine",
                    "remove runtime.name or start that engine");
    if (plan.topology.mode == plan::TopologyMode::pd)
        unsupported("prefill and decode in separate pools cannot be started by this command",
                    "give topology.shape without pools");
    if (plan.topology.world() != 1)
        unsupported("the topology has " + std::to_string(plan.topology.world()) +
                        " ranks, and this command runs one rank in one process",
                    "use topology.shape = \"tp1\"");
    if (plan.spec.method != "none")
        unsupported("speculation by '" + plan.spec.method + "' needs a speculation plugin, and none is built",
                    "set spec.method = \"none\"");
    if (!plan.requirements.empty())
        unsupported("the pipeline has [[require]] conditions, which this program cannot evaluate",
                    "remove them, or check them where they are evaluated");
}

std::string backend_name(const plan::ServingPlan& plan) {
    if (!plan.engine.backend.empty()) return plan.engine.backend;
    if (plan.hardware.platform == "cpu") return "backend-cpu";
    unsupported("no backend is known for platform '" + plan.hardware.platform + "'",
                "name one: [engine] backend = \"backend-...\"; `dsv4 plugins list` shows what is there");
}

tokenizer::Tokenizer load_tokenizer(const checkpoint::Checkpoint& checkpoint) {
    return tokenizer::Tokenizer::load(checkpoint.directory() / "tokenizer.json",
                                      {std::size_t(checkpoint.card().geometry.vocab_size)})
        .value();
}

// What the pipeline says to its api plugin, under the option names that this plugin declares.
plan::Options api_options(const plan::ServingPlan& plan, const plugin::Manifest& manifest, bool any_model) {
    plan::Options options = plan.api.options;
    auto offer = [&](const char* name, auto value) {
        if (manifest.option(name)) options.emplace(name, plan::Option{std::move(value)});
    };
    if (any_model) offer("ignore_model", true);
    offer("host", plan.api.host);
    offer("port", plan.api.port);
    offer("tools", plan.api.tools);
    offer("auto_tool_choice", plan.api.auto_tool_choice);
    offer("default_thinking", std::string(plan.reasoning.thinking ? "on" : "off"));
    offer("default_effort", plan.reasoning.effort);
    if (plan.reasoning.max_output_tokens) offer("default_max_tokens", *plan.reasoning.max_output_tokens);
    return options;
}

} // namespace

// The engine's counters in the host's registry.
class Deployment::Metrics final : public engine::Metrics {
  public:
    explicit Metrics(host::Metrics& registry) : registry_(registry) {}

    void update(engine::Metric metric, double value, std::string_view value_of_label) override {
        const engine::MetricInfo& info = engine::info(metric);
        if (info.label.empty()) {
            host::Metrics::update(plain(metric, info), value);
            return;
        }
        host::Metrics::update(
            registry_.metric(info.kind, info.name, info.help, {{std::string(info.label), std::string(value_of_label)}}),
            value);
    }

  private:
    dsv4_metric* plain(engine::Metric metric, const engine::MetricInfo& info) {
        auto& slot = plain_[std::size_t(metric)];
        dsv4_metric* known = slot.load(std::memory_order_acquire);
        if (!known) {
            known = registry_.metric(info.kind, info.name, info.help, {});
            slot.store(known, std::memory_order_release);
        }
        return known;
    }

    host::Metrics& registry_;
    std::array<std::atomic<dsv4_metric*>, std::size_t(engine::Metric::count_)> plain_{};
};

// The engine as the host's generation service.
class Deployment::Generate final : public host::Generate {
  public:
    explicit Generate(engine::Engine& engine) : engine_(engine), table_(engine::Engine::service()) {}

    dsv4_request_handle* submit(const dsv4_generate_request& request) override {
        dsv4_request_handle* handle = nullptr;
        sdk::check(table_.submit(&engine_, &request, &handle));
        return handle;
    }
    void on_events(dsv4_request_handle* request, void (*wake)(void* arg), void* arg) noexcept override {
        table_.on_events(&engine_, request, wake, arg);
    }
    const dsv4_event* next(dsv4_request_handle* request, std::uint64_t timeout_us) override {
        const dsv4_event* event = nullptr;
        sdk::check(table_.next(&engine_, request, timeout_us, &event));
        return event;
    }
    void cancel(dsv4_request_handle* request) noexcept override { table_.cancel(&engine_, request); }
    void release(dsv4_request_handle* request) noexcept override { table_.release(&engine_, request); }
    std::vector<std::int32_t> tokenize(const dsv4_chat_request& chat) override { return engine_.tokenize(chat); }
    std::string describe() override { return engine_.describe(); }

  private:
    engine::Engine& engine_;
    const dsv4_generate_service& table_;
};

Deployment::Deployment(plan::ServingPlan plan, DeploymentOptions options)
    : plan_(std::move(plan)),
      any_model_(options.any_model),
      host_({0, std::move(options.log)}),
      registry_(plugin::standard_search_path(plan_.plugins.paths)) {
    refuse_what_cannot_run(plan_);
    const auto directory = checkpoint::resolve({plan_.checkpoint.path, plan_.checkpoint.id, plan_.checkpoint.revision},
                                               checkpoint::Environment::of_process())
                               .value();
    checkpoint_ = std::make_unique<checkpoint::Checkpoint>(checkpoint::Checkpoint::open(directory).value());
    checkpoint_->loadable().value();
    host_.set_tokenizer(load_tokenizer(*checkpoint_));
    parser_ = std::make_unique<plugin::Instance>(make_parser());
    backend_ =
        std::make_unique<plugin::Instance>(make(backend_name(plan_), plugin::Kind::backend, plan_.engine.options));
    open_engine(options.progress);
}

Deployment::~Deployment() {
    api_.reset();
    generate_.reset();
}

const plugin::Instance& Deployment::api() {
    if (!api_) {
        if (plan_.api.plugin.empty())
            throw Failure(Code::invalid, "the pipeline names no api plugin", "set api.plugin = \"api-openai\"");
        const auto library = registry_.load(plan_.api.plugin).value();
        api_ = std::make_unique<plugin::Instance>(
            make(plan_.api.plugin, plugin::Kind::api, api_options(plan_, library->manifest(), any_model_)));
    }
    return *api_;
}

plugin::Instance Deployment::make(const std::string& name, plugin::Kind kind, plan::Options options) {
    if (auto it = plan_.plugins.options.find(name); it != plan_.plugins.options.end())
        for (const auto& [key, value] : it->second) options.insert_or_assign(key, value);
    auto library = registry_.load(name).value();
    return plugin::Instance::create(std::move(library), kind, options, host_).value();
}

plugin::Instance Deployment::make_parser() {
    plan::Options options = plan_.parser.options;
    // The checkpoint decides the prompt format unless the pipeline does.
    options.emplace("encoding", plan::Option{std::string(model::encoding_name(checkpoint_->card().encoding))});
    plugin::Instance parser = make(plan_.parser.plugin, plugin::Kind::parser, std::move(options));
    const auto& table = parser.table<dsv4_parser_table>();
    const dsv4_str* names = nullptr;
    std::uint32_t count = 0;
    sdk::check(table.control_names(parser.self(), &names, &count));
    for (std::uint32_t i = 0; i < count; ++i)
        if (!host_.tokenizer()->control_id(sdk::view(names[i])))
            throw Failure(Code::invalid,
                          "the tokenizer of '" + checkpoint_->directory().string() + "' lacks the control token '" +
                              std::string(sdk::view(names[i])) + "' that " + plan_.parser.plugin + " writes",
                          "use the tokenizer.json that came with the weights");
    return parser;
}

void Deployment::open_engine(const std::function<bool(const checkpoint::Progress&)>& progress) {
    const BackendHandle handle{&backend_->table<dsv4_backend_table>(), backend_->self()};
    const auto devices = handle.devices();
    if (devices.empty())
        throw Failure(Code::environment, "backend '" + backend_->name() + "' finds no device on this machine");
    if (devices.front().unusable.size)
        throw Failure(Code::environment, "device " + std::string(sdk::view(devices.front().name)) +
                                             " cannot be used: " + std::string(sdk::view(devices.front().unusable)));
    dsv4_session_config config{};
    config.struct_size = sizeof config;
    config.device = devices.front().index;
    config.group.world = 1;
    config.deterministic = plan_.engine.deterministic;
    session_ = std::make_unique<BackendSession>(handle, config);

    const model::Geometry& geometry = checkpoint_->card().geometry;
    const lower::WeightTable weights(checkpoint_->weights());
    lower::Options lowering;
    lowering.precision = plan_.engine.precision == plan::Precision::score ? DSV4_SCORE : DSV4_SERVE;
    const program::Program program = lower::lower(geometry, weights, lowering);
    handle.supports(program).value();
    session_->load(*checkpoint_, weights, progress);

    engine::EngineConfig engine_config = engine::config_from(plan_, geometry);
    dsv4_memory_report in_use{};
    in_use.struct_size = sizeof in_use;
    sdk::check(handle.table->memory(session_->raw(), &in_use));
    engine_config.cache_bytes = engine::cache_budget(plan_.kv, devices.front(), in_use);
    metrics_ = std::make_unique<Metrics>(host_.metrics());
    engine_ = std::make_unique<engine::Engine>(
        engine::EngineParts{*session_,
                            program,
                            *host_.tokenizer(),
                            {&parser_->table<dsv4_parser_table>(), parser_->self()},
                            {},
                            metrics_.get(),
                            [this](dsv4_log_level level, std::string_view message) {
                                host_.log().write(host::LogLevel(int(level)), "engine", message);
                            },
                            {}},
        std::move(engine_config));
    generate_ = std::make_unique<Generate>(*engine_);
    host_.set_generate(generate_.get());
}

} // namespace dsv4::runtime
