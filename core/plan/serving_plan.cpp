// Canonical JSON of a serving plan.
#include "core/plan/serving_plan.hpp"

#include <nlohmann/json.hpp>

namespace dsv4::plan {
namespace {

using Json = nlohmann::ordered_json;

void put(Json& out, const char* key, const std::string& value) {
    if (!value.empty()) out[key] = value;
}

template <class T> void put(Json& out, const char* key, const std::optional<T>& value) {
    if (value) out[key] = *value;
}

void put_section(Json& out, const char* key, Json section) {
    if (!section.empty()) out[key] = std::move(section);
}

Json option_json(const Option& option) {
    return std::visit(
        [](const auto& value) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, OptionList>) {
                Json list = Json::array();
                for (const Option& item : value) list.push_back(option_json(item));
                return list;
            } else {
                return value;
            }
        },
        option.value);
}

Json options_json(const Options& options) {
    Json out = Json::object();
    for (const auto& [name, option] : options) out[name] = option_json(option);
    return out;
}

Json checkpoint_json(const Checkpoint& checkpoint) {
    Json out = Json::object();
    put(out, "id", checkpoint.id);
    put(out, "revision", checkpoint.revision);
    put(out, "path", checkpoint.path);
    put(out, "format", checkpoint.format);
    return out;
}

Json topology_json(const Topology& topology) {
    Json out = Json::object();
    out["mode"] = to_string(topology.mode);
    out["tp"] = topology.tp;
    out["dp"] = topology.dp;
    out["pp"] = topology.pp;
    out["ep"] = topology.ep;
    out["ep_size"] = topology.ep_size;
    out["redundant_experts"] = topology.redundant_experts;
    put(out, "moe_backend", topology.moe_backend);
    return out;
}

Json kv_json(const KvPolicy& kv) {
    Json out = Json::object();
    put(out, "dtype", kv.dtype);
    out["block_size"] = kv.block_size;
    out["fp4_indexer_cache"] = kv.fp4_indexer_cache;
    put(out, "cache_bytes", kv.cache_bytes);
    out["utilization"] = kv.utilization;
    out["prefix_caching"] = kv.prefix_caching;
    return out;
}

Json spec_json(const Speculation& spec) {
    Json out = Json::object();
    out["method"] = spec.method;
    out["tokens"] = spec.tokens;
    put(out, "draft_sample_method", spec.draft_sample_method);
    return out;
}

Json context_json(const Context& context) {
    Json out = Json::object();
    out["max_model_len"] = context.max_model_len ? Json(*context.max_model_len) : Json("auto");
    out["max_num_seqs"] = context.max_num_seqs;
    out["max_num_batched_tokens"] = context.max_num_batched_tokens;
    out["chunked_prefill"] = context.chunked_prefill;
    return out;
}

Json reasoning_json(const Reasoning& reasoning) {
    Json out = Json::object();
    out["thinking"] = reasoning.thinking;
    put(out, "effort", reasoning.effort);
    put(out, "max_output_tokens", reasoning.max_output_tokens);
    out["preserve_reasoning"] = reasoning.preserve_reasoning;
    return out;
}

Json sampling_json(const Sampling& sampling) {
    Json out = Json::object();
    out["temperature"] = sampling.temperature;
    out["top_p"] = sampling.top_p;
    out["top_k"] = sampling.top_k;
    out["min_p"] = sampling.min_p;
    put(out, "workload", sampling.workload);
    return out;
}

Json parser_json(const Parser& parser) {
    Json out = Json::object();
    put(out, "plugin", parser.plugin);
    put_section(out, "options", options_json(parser.options));
    return out;
}

Json api_json(const Api& api) {
    Json out = Json::object();
    put(out, "plugin", api.plugin);
    put(out, "host", api.host);
    out["port"] = api.port;
    put(out, "tokenizer_mode", api.tokenizer_mode);
    put(out, "tool_parser", api.tool_parser);
    put(out, "reasoning_parser", api.reasoning_parser);
    out["tools"] = api.tools;
    out["auto_tool_choice"] = api.auto_tool_choice;
    put_section(out, "options", options_json(api.options));
    return out;
}

Json engine_json(const Engine& engine) {
    Json out = Json::object();
    put(out, "backend", engine.backend);
    out["precision"] = to_string(engine.precision);
    out["deterministic"] = engine.deterministic;
    put_section(out, "options", options_json(engine.options));
    return out;
}

Json plugins_json(const Plugins& plugins) {
    Json out = Json::object();
    if (!plugins.paths.empty()) out["paths"] = plugins.paths;
    Json options = Json::object();
    for (const auto& [name, values] : plugins.options) options[name] = options_json(values);
    put_section(out, "options", std::move(options));
    return out;
}

Json log_json(const Log& log) {
    Json out = Json::object();
    put(out, "level", log.level);
    put(out, "format", log.format);
    out["content"] = log.content;
    return out;
}

void put_length(Json& out, const char* key, const std::optional<Length>& length) {
    if (!length) return;
    Json value = Json::object();
    put(value, "p50", length->p50);
    put(value, "p95", length->p95);
    put(value, "max", length->max);
    out[key] = std::move(value);
}

Json workload_json(const Workload& workload) {
    Json out = Json::object();
    put(out, "concurrency", workload.concurrency);
    put_length(out, "prompt_tokens", workload.prompt_tokens);
    put_length(out, "output_tokens", workload.output_tokens);
    put(out, "request_rate", workload.request_rate);
    put(out, "tool_call_rate", workload.tool_call_rate);
    put(out, "effort", workload.effort);
    if (!workload.objectives.empty()) out["objectives"] = workload.objectives;
    return out;
}

Json requirements_json(const std::vector<Requirement>& requirements) {
    Json out = Json::array();
    for (const Requirement& requirement : requirements) {
        Json item = Json::object();
        item["that"] = requirement.that;
        put(item, "why", requirement.why);
        out.push_back(std::move(item));
    }
    return out;
}

Json origin_json(const Origin& origin) {
    Json out = Json::object();
    out["from"] = to_string(origin.kind);
    if (origin.kind != OriginKind::default_) {
        out["file"] = origin.file;
        out["line"] = origin.line;
        out["column"] = origin.column;
    }
    return out;
}

} // namespace

std::string_view to_string(OriginKind kind) noexcept {
    switch (kind) {
    case OriginKind::override_: return "override";
    case OriginKind::file: return "file";
    case OriginKind::default_: return "default";
    }
    return "default";
}

std::string_view to_string(TopologyMode mode) noexcept {
    switch (mode) {
    case TopologyMode::tp: return "tp";
    case TopologyMode::tep: return "tep";
    case TopologyMode::dep: return "dep";
    case TopologyMode::tp_dp: return "tp_dp";
    case TopologyMode::pd: return "pd";
    }
    return "tp";
}

std::string_view to_string(Precision precision) noexcept { return precision == Precision::score ? "score" : "serve"; }

std::string to_json(const ServingPlan& plan, JsonOptions options) {
    Json out = Json::object();
    out["schema"] = plan.schema;
    if (options.origins) out["source"] = plan.source;
    out["runtime"] = {{"name", plan.runtime.name}};
    put(out["runtime"], "version", plan.runtime.version);
    out["checkpoint"] = checkpoint_json(plan.checkpoint);
    put_section(out, "draft", checkpoint_json(plan.draft));
    out["hardware"] = {
        {"platform", plan.hardware.platform}, {"devices", plan.hardware.devices}, {"nodes", plan.hardware.nodes}};
    out["topology"] = topology_json(plan.topology);
    out["kv"] = kv_json(plan.kv);
    out["spec"] = spec_json(plan.spec);
    out["context"] = context_json(plan.context);
    out["reasoning"] = reasoning_json(plan.reasoning);
    out["sampling"] = sampling_json(plan.sampling);
    out["parser"] = parser_json(plan.parser);
    out["api"] = api_json(plan.api);
    out["engine"] = engine_json(plan.engine);
    put_section(out, "plugins", plugins_json(plan.plugins));
    out["log"] = log_json(plan.log);
    put_section(out, "workload", workload_json(plan.workload));
    put_section(out, "require", requirements_json(plan.requirements));
    if (options.origins) {
        Json origins = Json::object();
        for (const auto& [path, origin] : plan.origins) origins[path] = origin_json(origin);
        out["origins"] = std::move(origins);
    }
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string model_name(const ServingPlan& plan) {
    if (!plan.checkpoint.id.empty()) return plan.checkpoint.id;
    const auto last = plan.checkpoint.path.find_last_not_of('/');
    if (last == std::string::npos) return plan.checkpoint.path;
    const auto slash = plan.checkpoint.path.rfind('/', last);
    return plan.checkpoint.path.substr(slash + 1, last - slash); // npos + 1 is 0
}

} // namespace dsv4::plan
