// Document to serving plan: nothing is judged here, only copied into its place.
#include "dsl/lower.hpp"

#include <filesystem>

namespace dsv4::dsl {
namespace {

class Lowering {
  public:
    Lowering(const Schema& schema, const Node& root, const SourceMap& sources, const std::string& source_name)
        : schema_(schema),
          root_(root),
          sources_(sources),
          directory_(std::filesystem::path(source_name).parent_path()) {}

    plan::ServingPlan run(const std::string& source_name) {
        plan::ServingPlan out;
        out.source = source_name;
        read("schema", out.schema);
        out.runtime.name = text("runtime.name");
        out.runtime.version = text("runtime.version");
        out.checkpoint = checkpoint("checkpoint");
        out.draft = checkpoint("draft");
        out.hardware.platform = text("hardware.platform");
        read("hardware.devices", out.hardware.devices);
        read("hardware.nodes", out.hardware.nodes);
        topology(out.topology);
        kv(out.kv);
        out.spec.method = text("spec.method");
        read("spec.tokens", out.spec.tokens);
        out.spec.draft_sample_method = text("spec.draft_sample_method");
        if (const Node* length = at("context.max_model_len"); length && length->kind == Node::Kind::integer)
            out.context.max_model_len = length->integer;
        read("context.max_num_seqs", out.context.max_num_seqs);
        read("context.max_num_batched_tokens", out.context.max_num_batched_tokens);
        read("context.chunked_prefill", out.context.chunked_prefill);
        read("reasoning.thinking", out.reasoning.thinking);
        out.reasoning.effort = text("reasoning.effort");
        read("reasoning.max_output_tokens", out.reasoning.max_output_tokens);
        read("reasoning.preserve_reasoning", out.reasoning.preserve_reasoning);
        read("sampling.temperature", out.sampling.temperature);
        read("sampling.top_p", out.sampling.top_p);
        read("sampling.top_k", out.sampling.top_k);
        read("sampling.min_p", out.sampling.min_p);
        out.sampling.workload = text("sampling.workload");
        out.parser.plugin = text("parser.plugin");
        out.parser.options = options(at("parser.options"));
        api(out.api);
        out.engine.backend = text("engine.backend");
        out.engine.precision = text("engine.precision") == "score" ? plan::Precision::score : plan::Precision::serve;
        read("engine.deterministic", out.engine.deterministic);
        out.engine.options = options(at("engine.options"));
        plugins(out.plugins);
        out.log.level = text("log.level");
        out.log.format = text("log.format");
        read("log.content", out.log.content);
        workload(out.workload);
        requirements(out.requirements);
        origins(root_, {}, out.origins);
        return out;
    }

  private:
    const Node* at(std::string_view path) const { return find(root_, path); }

    std::string text(std::string_view path) const {
        const Node* node = at(path);
        return node ? node->text : std::string();
    }
    static void take(const Node& node, std::int64_t& out) { out = node.integer; }
    static void take(const Node& node, bool& out) { out = node.boolean; }
    static void take(const Node& node, double& out) {
        out = node.kind == Node::Kind::integer ? static_cast<double>(node.integer) : node.number;
    }
    template <class T> static void take(const Node& node, std::optional<T>& out) { take(node, out.emplace()); }
    template <class T> void read(std::string_view path, T& out) const {
        if (const Node* node = at(path)) take(*node, out);
    }

    std::string resolved(const Node& node) const {
        const std::filesystem::path path(node.text);
        const bool from_file = node.origin == plan::OriginKind::file && path.is_relative();
        return (from_file ? directory_ / path : path).lexically_normal().generic_string();
    }
    std::string resolved(std::string_view path) const {
        const Node* node = at(path);
        return node && !node->text.empty() ? resolved(*node) : std::string();
    }

    plan::Checkpoint checkpoint(const std::string& section) const {
        return {text(section + ".id"), text(section + ".revision"), resolved(section + ".path"),
                text(section + ".format")};
    }

    void topology(plan::Topology& out) const {
        const std::string mode = text("topology.mode");
        for (const auto candidate : {plan::TopologyMode::tp, plan::TopologyMode::tep, plan::TopologyMode::dep,
                                     plan::TopologyMode::tp_dp, plan::TopologyMode::pd})
            if (plan::to_string(candidate) == mode) out.mode = candidate;
        read("topology.tp", out.tp);
        read("topology.dp", out.dp);
        read("topology.pp", out.pp);
        read("topology.ep", out.ep);
        read("topology.ep_size", out.ep_size);
        read("topology.redundant_experts", out.redundant_experts);
        out.moe_backend = text("topology.moe_backend");
    }

    void kv(plan::KvPolicy& out) const {
        out.dtype = text("kv.dtype");
        read("kv.block_size", out.block_size);
        read("kv.fp4_indexer_cache", out.fp4_indexer_cache);
        read("kv.cache_bytes", out.cache_bytes);
        read("kv.utilization", out.utilization);
        read("kv.prefix_caching", out.prefix_caching);
    }

    void api(plan::Api& out) const {
        out.plugin = text("api.plugin");
        out.host = text("api.host");
        read("api.port", out.port);
        out.tokenizer_mode = text("api.tokenizer_mode");
        out.tool_parser = text("api.tool_parser");
        out.reasoning_parser = text("api.reasoning_parser");
        read("api.tools", out.tools);
        read("api.auto_tool_choice", out.auto_tool_choice);
        out.options = options(at("api.options"));
        for (const Field* field : schema_.children("api"))
            if (const Node* node = field->server_option ? at(field->path) : nullptr)
                out.options[std::string(field->key())] = option(*node);
    }

    void plugins(plan::Plugins& out) const {
        if (const Node* paths = at("plugins.paths"))
            for (const Node& path : paths->items) out.paths.push_back(resolved(path));
        if (const Node* named = at("plugins.options"))
            for (const Member& member : named->members) out.options[member.key] = options(&member.value);
    }

    static plan::Option option(const Node& node) {
        switch (node.kind) {
        case Node::Kind::boolean: return {node.boolean};
        case Node::Kind::integer: return {node.integer};
        case Node::Kind::number: return {node.number};
        case Node::Kind::list: {
            plan::OptionList list;
            for (const Node& item : node.items) list.push_back(option(item));
            return {std::move(list)};
        }
        default: return {node.text};
        }
    }
    static plan::Options options(const Node* table) {
        plan::Options out;
        if (table)
            for (const Member& member : table->members) out[member.key] = option(member.value);
        return out;
    }

    std::optional<plan::Length> length(std::string_view path) const {
        const Node* node = at(path);
        if (node == nullptr) return std::nullopt;
        plan::Length out;
        if (node->kind == Node::Kind::integer) {
            out.p50 = out.p95 = out.max = node->integer;
        } else {
            if (const Member* p50 = node->member("p50")) out.p50 = p50->value.integer;
            if (const Member* p95 = node->member("p95")) out.p95 = p95->value.integer;
            if (const Member* max = node->member("max")) out.max = max->value.integer;
        }
        return out;
    }

    void workload(plan::Workload& out) const {
        read("workload.concurrency", out.concurrency);
        out.prompt_tokens = length("workload.prompt_tokens");
        out.output_tokens = length("workload.output_tokens");
        read("workload.request_rate", out.request_rate);
        read("workload.tool_call_rate", out.tool_call_rate);
        out.effort = text("workload.effort");
        if (const Node* objectives = at("workload.objectives"))
            for (const Member& member : objectives->members) take(member.value, out.objectives[member.key]);
    }

    void requirements(std::vector<plan::Requirement>& out) const {
        const Node* list = at("require");
        if (list == nullptr) return;
        for (const Node& item : list->items) {
            const Member* why = item.member("why");
            out.push_back({item.member("that")->value.text, why ? why->value.text : std::string()});
        }
    }

    void origins(const Node& table, const std::string& path, auto& out) const {
        for (const Member& member : table.members) {
            const std::string inner = child_path(path, member.key);
            if (member.value.kind == Node::Kind::table) {
                origins(member.value, inner, out);
                continue;
            }
            plan::Origin origin;
            origin.kind = member.value.origin;
            if (origin.kind != plan::OriginKind::default_) {
                const Position position = sources_.position(member.value.range.source, member.value.range.begin);
                origin.file = sources_.name(member.value.range.source);
                origin.line = position.line;
                origin.column = position.column;
            }
            out[inner] = std::move(origin);
        }
    }

    const Schema& schema_;
    const Node& root_;
    const SourceMap& sources_;
    std::filesystem::path directory_;
};

} // namespace

plan::ServingPlan lower(const Schema& schema, const Node& root, const SourceMap& sources,
                        const std::string& source_name) {
    return Lowering(schema, root, sources, source_name).run(source_name);
}

} // namespace dsv4::dsl
