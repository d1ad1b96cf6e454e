// Every key of a pipeline file. Names are those of the deployment that rules read; a name means one thing everywhere.
#include "dsl/schema.hpp"

namespace dsv4::dsl {
namespace {

using enum ValueKind;

constexpr Limits from(double least) { return {least, 9007199254740992.0, false, true}; }
constexpr Limits within(double least, double most) { return {least, most, false, true}; }
constexpr Limits above(double least, double most) { return {least, most, true, true}; }

constexpr Field section(std::string_view path, std::string_view doc) {
    return {.path = path, .kind = table, .doc = doc};
}
constexpr Field key(std::string_view path, ValueKind kind, std::string_view doc, std::string_view fallback = {}) {
    return {.path = path, .kind = kind, .doc = doc, .fallback = fallback};
}
constexpr Field ranged(std::string_view path, ValueKind kind, Limits limits, std::string_view doc,
                       std::string_view fallback = {}) {
    return {.path = path, .kind = kind, .doc = doc, .limits = limits, .fallback = fallback};
}
constexpr Field one_of(std::string_view path, std::span<const Choice> choices, std::string_view doc,
                       std::string_view fallback = {}) {
    return {.path = path, .kind = choice, .doc = doc, .choices = choices, .fallback = fallback};
}
constexpr Field required(Field field) {
    field.required = true;
    return field;
}
constexpr Field server(std::string_view path, ValueKind kind, std::string_view doc, Limits limits = {}) {
    return {.path = path, .kind = kind, .doc = doc, .limits = limits, .server_option = true};
}

constexpr Choice formats[] = {{"safetensors", "the publisher's shards"}, {"gguf", "one or more GGUF files"}};
constexpr Choice draft_kinds[] = {
    {"none", "no draft weights"}, {"mtp", "a multi-token prediction head"}, {"dspark", "DSpark draft layers"}};
constexpr Choice modes[] = {{"tp", "tensor parallel"},
                            {"tep", "tensor parallel attention, expert parallel experts"},
                            {"dep", "data parallel attention, expert parallel experts"},
                            {"tp_dp", "tensor parallel groups, replicated"},
                            {"pd", "prefill and decode on separate devices"}};
constexpr Choice scopes[] = {{"rank", "for each data-parallel rank"}, {"global", "for all ranks together"}};
constexpr Choice draft_samples[] = {{"greedy", "the draft's most likely token"},
                                    {"probabilistic", "sampled from the draft's distribution"}};
constexpr Choice workloads[] = {{"chat", "conversation"}, {"agentic", "tool calls in a loop"}};
constexpr Choice routers[] = {{"round_robin", "ranks in turn"},
                              {"random", "a random rank"},
                              {"least_loaded", "the rank with the fewest tokens in flight"},
                              {"cache_aware", "the rank that holds most of the prefix"}};
constexpr Choice roles[] = {{"producer", "computes prompts"}, {"consumer", "generates"}, {"both", "does both"}};
constexpr Choice bases[] = {{"active", "active parameters"},
                            {"disk", "bytes on disk"},
                            {"total", "all parameters"},
                            {"measured", "measured residency"}};
constexpr Choice precisions[] = {{"serve", "the publisher's rounding"},
                                 {"score", "float32 activations on exactly dequantised weights"}};
constexpr Choice levels[] = {{"trace", "everything"},
                             {"debug", "for developers"},
                             {"info", "what operators need"},
                             {"warning", "what may be wrong"},
                             {"error", "what is wrong"}};
constexpr Choice log_formats[] = {{"text", "one line for people"}, {"json", "one JSON object a line"}};
constexpr Choice gates[] = {{"passed", "run, and passed"}, {"failed", "run, and failed"}, {"not-run", "nobody ran it"}};
constexpr Choice reasoning_fields[] = {{"both", "reasoning_content and reasoning"},
                                       {"reasoning_content", "as DeepSeek's API"},
                                       {"reasoning", "as newer vLLM"}};

constexpr double max_port = 65535;
constexpr double max_count = 1048576;

constexpr Field table_of_fields[] = {
    ranged("schema", integer, from(0), "Version of this schema.", "1"),
    key("title", text, "What this deployment is, in a few words."),
    key("evidence", text,
        "How well the deployment is supported: verified, documented, community or benchmark-required."),
    key("source", text_list, "Where its settings were published."),
    key("unspecified", text_list, "Paths that the source leaves open."),

    section("checkpoint", "The target weights."),
    key("checkpoint.id", text, "Hub id, \"owner/name\"."),
    key("checkpoint.path", path, "Directory or file on this machine; stands for the id where there is none."),
    key("checkpoint.revision", text, "Commit of the id; a pinned revision makes results comparable."),
    one_of("checkpoint.format", formats, "How the weights are stored."),
    key("checkpoint.lineage", text, "Release the weights are claimed to come from, such as preview or 0731."),
    key("checkpoint.expert_precision", text, "Number format the experts are claimed to have."),
    key("checkpoint.quant", text, "Name of the quantisation."),
    ranged("checkpoint.shards", integer, from(1), "Number of files."),
    key("checkpoint.bytes", size, "Bytes of all files together."),
    key("checkpoint.sha256", text_list, "Hashes of the files, in order; prefixes are enough."),

    section("draft", "A separate draft artifact; leave out where the target brings its own."),
    key("draft.id", text, "Hub id, \"owner/name\"."),
    key("draft.path", path, "Directory or file on this machine."),
    key("draft.revision", text, "Commit of the id."),
    one_of("draft.format", formats, "How the weights are stored."),
    key("draft.quant", text, "Name of the quantisation."),
    key("draft.bytes", size, "Bytes of all files together."),
    key("draft.sha256", text_list, "Hashes of the files, in order."),
    key("draft.lineage", text, "Release the draft was trained for."),

    section("identity", "What a checkpoint is, for one that has no card."),
    key("identity.lineage", text, "Release it derives from."),
    one_of("identity.draft", draft_kinds, "Draft weights it contains."),
    key("identity.expert", text, "Number format of the experts."),
    key("identity.min_runtime", version, "Oldest runtime that loads it."),
    key("identity.experts_bytes", size, "Bytes of the experts."),

    section("runtime", "The engine under the pipeline."),
    key("runtime.name", text, "Engine name; dsv4 is this one, any other needs its engine plugin.", "dsv4"),
    key("runtime.version", version, "Version, or oldest version, of the engine."),
    key("runtime.image", text, "Container image."),
    key("runtime.commit", text, "Source commit."),
    key("runtime.recipe_commit", text, "Commit of the recipe the settings come from."),
    key("runtime.build", text, "Name of a special build."),
    key("runtime.patches", text_list, "Patches on top of the commit."),
    key("runtime.driver", text, "Device driver version."),
    key("runtime.kernels", text, "Kernel library and version."),
    key("runtime.flashinfer", version, "FlashInfer version."),
    key("runtime.graph_mode", text, "Graph capture mode."),
    key("runtime.model_runner", text, "Model runner generation."),
    key("runtime.features", text_list, "Switches of the build that are on."),

    section("hardware", "What the pipeline runs on."),
    key("hardware.platform", text, "Platform id, such as b200, h200_sxm5 or cpu."),
    key("hardware.edition", text, "Edition of the card where one name covers several."),
    ranged("hardware.devices", integer, within(1, max_count),
           "Devices of all nodes together; the ranks where not stated."),
    ranged("hardware.nodes", integer, within(1, max_count), "Machines that the devices are in.", "1"),
    ranged("hardware.devices_per_node", integer, within(1, max_count), "Devices in one machine."),
    ranged("hardware.gb_per_device", number, above(0, 1e6),
           "Device memory in GiB where it differs from the platform's."),
    key("hardware.evidence", text, "Evidence class of the platform."),
    key("hardware.precision_path", text, "Kernel path the precision needs."),
    key("hardware.host", options, "Facts about the host: memory limits, swap, cores."),

    section("topology", "How ranks share the model."),
    key("topology.shape", topology, "All factors in one text, \"tp2 x dp4 + ep\"; expands to tp, dp, pp and ep."),
    one_of("topology.mode", modes, "Kind of the shape; follows from the factors where not stated."),
    ranged("topology.tp", integer, within(1, max_count), "Tensor-parallel ranks, which split each layer."),
    ranged("topology.dp", integer, within(1, max_count), "Data-parallel ranks, each with its own cache."),
    ranged("topology.pp", integer, within(1, max_count), "Pipeline stages."),
    ranged("topology.pcp", integer, within(1, max_count), "Prefill context-parallel ranks."),
    ranged("topology.dcp", integer, within(1, max_count), "Decode context-parallel ranks."),
    key("topology.ep", boolean, "Whether experts are spread over ranks whole."),
    ranged("topology.ep_size", integer, within(1, max_count),
           "Ranks that share the experts; tp times dp where not stated."),
    ranged("topology.redundant_experts", integer, within(0, max_count), "Extra copies of busy experts.", "0"),
    ranged("topology.dp_local", integer, within(1, max_count), "Data-parallel ranks on each node."),
    key("topology.moe_backend", text, "Expert kernels; the backend's own choice where not stated."),
    key("topology.mhc_kernel", text, "Kernel of the hyper-connections."),
    key("topology.all2all", text, "Exchange between expert-parallel ranks."),
    ranged("topology.dispatch_tokens", count, within(1, max_count),
           "Largest number of tokens a rank dispatches in a step."),
    key("topology.sequence_parallel", boolean, "Whether norms are split along the sequence."),
    ranged("topology.slots", integer, within(1, max_count), "Sequences that run at once, for engines that count so."),

    section("kv", "Cache policy."),
    key("kv.dtype", text, "Number format of cached rows, such as fp8 or bf16."),
    key("kv.k_type", text, "GGUF type of cached keys."),
    key("kv.v_type", text, "GGUF type of cached values."),
    ranged("kv.block_size", integer, within(1, max_count), "Tokens in one block.", "256"),
    key("kv.fp4_indexer_cache", boolean, "Whether index keys are cached in FP4.", "false"),
    ranged("kv.cache_bytes", size, from(1), "Cache budget of a rank; stands above utilization."),
    ranged("kv.utilization", number, above(0, 1), "Part of the device memory for weights and cache.", "0.9"),
    key("kv.prefix_caching", boolean, "Whether requests share the cache of equal prefixes.", "true"),
    one_of("kv.router", routers, "How requests are spread over data-parallel ranks."),
    key("kv.encoding", text, "Encoding of cached rows between machines."),
    key("kv.swa_store", text, "How the sliding window is kept for reuse."),
    section("kv.offload", "Second tier of the cache."),
    key("kv.offload.kind", text, "Tier, such as offloading_cpu or offloading_fs."),
    key("kv.offload.cpu_bytes", size, "Host memory of the tier."),
    key("kv.offload.hash_seed", text, "Fixed seed of the block hashes."),
    key("kv.offload.dir", path, "Directory of the tier."),

    section("context", "Lengths and limits, for each data-parallel rank."),
    ranged("context.max_model_len", count_or_auto, from(1), "Longest sequence in tokens; auto takes what fits.",
           "auto"),
    ranged("context.max_num_seqs", count, within(1, max_count), "Sequences that run at once.", "256"),
    one_of("context.max_num_seqs_scope", scopes, "What max_num_seqs counts.", "rank"),
    ranged("context.max_num_batched_tokens", count, within(1, 16777216), "Tokens in one step.", "8192"),
    key("context.chunked_prefill", boolean, "Whether a long prompt may take several steps.", "true"),

    section("spec", "Speculative decoding."),
    key("spec.method", text, "Method that a speculation plugin offers, or none.", "none"),
    ranged("spec.tokens", integer, within(0, 64), "Tokens drafted in a step.", "0"),
    one_of("spec.draft_sample_method", draft_samples, "How the draft picks its tokens."),
    key("spec.attention_backend", text, "Attention kernels of the draft."),
    key("spec.sm120_opt_in", boolean, "Accept speculation on sm_120 builds that are not released yet."),

    section("reasoning", "What a request gets that says nothing about thinking."),
    key("reasoning.thinking", boolean, "Whether the model thinks before it answers.", "true"),
    key("reasoning.effort", text, "Effort of thinking: low, high or max."),
    ranged("reasoning.max_output_tokens", count, from(1), "Output limit, thinking included."),
    ranged("reasoning.reserved_prompt", count, from(1), "Tokens kept free for the prompt."),
    key("reasoning.preserve_reasoning", boolean, "Whether thinking stays in the history of tool turns.", "true"),
    key("reasoning.effort_location", text, "Where requests carry the effort."),

    section("sampling", "Defaults of the sampling parameters."),
    ranged("sampling.temperature", number, within(0, 2), "0 picks the most likely token.", "1.0"),
    ranged("sampling.top_p", number, above(0, 1), "Smallest set of tokens with this probability.", "1.0"),
    ranged("sampling.top_k", integer, within(0, max_count), "Number of candidates; 0 takes all.", "0"),
    ranged("sampling.min_p", number, within(0, 1), "Least probability, as part of the largest.", "0.0"),
    one_of("sampling.workload", workloads, "What the defaults are for."),

    section("parser", "The plugin that encodes conversations and reads the model's output."),
    key("parser.plugin", text, "Parser plugin; api.tool_parser and api.reasoning_parser name formats that it offers.",
        "parser-deepseek-v4"),
    key("parser.options", options, "Options of the parser plugin."),

    section("api", "The endpoint."),
    key("api.plugin", text, "Plugin that listens and speaks the protocol.", "api-openai"),
    key("api.host", text, "Address to bind.", "127.0.0.1"),
    ranged("api.port", integer, within(0, max_port), "TCP port to listen on; 0 takes a free one.", "8000"),
    key("api.chat_template", text, "A Jinja template; this model has none."),
    key("api.tokenizer_mode", text, "Encoder of conversations, offered by the parser plugin.", "deepseek_v4"),
    key("api.tool_parser", text, "Format of tool calls, offered by the parser plugin.", "deepseek_v4"),
    key("api.reasoning_parser", text, "Format of thinking, offered by the parser plugin.", "deepseek_v4"),
    key("api.tools", boolean, "Whether requests may bring tools.", "true"),
    key("api.auto_tool_choice", boolean, "Whether the model may choose to call a tool.", "true"),
    key("api.auth", text, "How callers are authenticated in front of the endpoint, such as proxy."),
    key("api.multi_tenant", boolean, "Whether callers must not learn about each other."),
    key("api.cache_salt", text, "Where the salt of the prefix cache comes from."),
    key("api.public_roles", text_list, "Message roles that callers may use."),
    key("api.options", options, "Options of the api plugin that have no key of their own here."),
    server("api.api_key", text_list, "Keys, each as env:NAME or file:PATH."),
    server("api.metrics_without_key", boolean, "Whether metrics need no key."),
    server("api.cors", boolean, "Whether browsers of other origins may call."),
    server("api.allowed_origins", text_list, "Origins that may call."),
    server("api.served_model_name", text_list, "Model names that requests may use."),
    server("api.ignore_model", boolean, "Whether any model name is accepted."),
    server("api.max_body_bytes", size, "Largest request body.", from(1)),
    server("api.max_send_buffer", size, "Unsent bytes at which a slow reader is paused.", from(1)),
    server("api.max_n", integer, "Largest n of a request.", within(1, 1024)),
    server("api.max_queue", integer, "Waiting requests before others are turned away.", within(1, max_count)),
    server("api.queue_timeout", duration, "Longest wait in the queue, in seconds."),
    server("api.drain_timeout", duration, "Time for running requests at shutdown, in seconds."),
    server("api.sse_keepalive", duration, "Time between comments on a silent stream, in seconds."),
    server("api.default_max_tokens", count, "Output limit of requests that state none.", from(1)),
    server("api.answer_reserve", count, "Tokens kept for the answer when thinking uses the limit.",
           within(0, max_count)),
    server("api.agent_top_p", number, "top_p of requests with tools that state none.", above(0, 1)),
    server("api.strict_params", boolean, "Whether unknown parameters are errors."),
    server("api.strict_max_tokens", boolean, "Whether a limit beyond the context is an error."),
    server("api.strict_schema", boolean, "Whether unsupported schema keywords are errors."),
    server("api.deepseek_sampling", boolean, "Whether sampling parameters are ignored while thinking."),
    server("api.drop_unknown_tools", boolean, "Whether tools of other types are left out."),
    server("api.ignore_chat_template", boolean, "Whether a request's chat template is ignored."),
    server("api.ignore_half_close", boolean, "Whether a half-closed connection keeps its request."),
    server("api.always_include_usage", boolean, "Whether every stream ends with usage."),
    server("api.anthropic_thinking_default", boolean, "Thinking of Anthropic requests that do not say."),
    server("api.retry_empty", boolean, "Whether an empty answer is sampled once more."),
    {.path = "api.reasoning_field",
     .kind = choice,
     .doc = "Field that carries the thinking.",
     .choices = reasoning_fields,
     .server_option = true},

    section("engine", "How the model is computed."),
    key("engine.backend", text, "Backend plugin; follows from the platform where not stated."),
    one_of("engine.precision", precisions, "Rounding of activations and cache.", "serve"),
    key("engine.deterministic", boolean, "Whether results must not depend on what else runs.", "false"),
    key("engine.options", options, "Options of the backend plugin."),

    section("plugins", "Where plugins are found and what they are told."),
    key("plugins.paths", path_list, "Directories searched after the built-in one."),
    key("plugins.options", plugin_options, "Options by plugin name: one table for each."),

    section("log", "What is logged."),
    one_of("log.level", levels, "Least severity that is logged.", "info"),
    one_of("log.format", log_formats, "Form of a log line.", "text"),
    key("log.content", boolean, "Whether prompt and answer text may be logged.", "false"),

    section("workload", "What the deployment must serve; the planner answers with what fits."),
    ranged("workload.concurrency", integer, within(1, max_count), "Sessions at once."),
    ranged("workload.prompt_tokens", length, from(1), "Prompt length."),
    ranged("workload.output_tokens", length, from(1), "Output length, thinking included."),
    ranged("workload.request_rate", number, above(0, 1e9), "Requests a second."),
    ranged("workload.tool_call_rate", number, within(0, 1e6), "Tool calls a request."),
    key("workload.effort", text, "Effort of thinking."),
    key("workload.community_weights", boolean, "Whether weights of others than the publisher may be used."),
    section("workload.objectives", "What counts as fast enough."),
    ranged("workload.objectives.ttft_p95_ms", number, above(0, 1e12), "Time to the first token."),
    ranged("workload.objectives.tpot_p95_ms", number, above(0, 1e12), "Time per output token."),
    ranged("workload.objectives.itl_p95_ms", number, above(0, 1e12), "Time between tokens."),
    ranged("workload.objectives.tokens_per_s", number, above(0, 1e12),
           "Output tokens a second, all sessions together."),

    {.path = "require", .kind = table_list, .doc = "A condition of the site that the plan must meet."},
    required(key("require.that", predicate, "The condition.")),
    key("require.why", text, "What breaks otherwise; printed when it is not met."),

    section("lint", "Findings that are known and accepted."),
    {.path = "lint.allow", .kind = table_list, .doc = "A warning that does not count."},
    required(key("lint.allow.code", code, "Code of a warning or note; errors cannot be allowed.")),
    required(key("lint.allow.why", text, "Why it is acceptable here.")),

    section("qualification", "Which gates this deployment has passed."),
    one_of("qualification.status", gates, "All gates together."),
    one_of("qualification.identity", gates, "Target, draft, revisions and method are those named."),
    one_of("qualification.encoding", gates, "Prompts equal the encoder's."),
    one_of("qualification.parsers", gates, "Thinking and tool calls leave nothing raw."),
    one_of("qualification.continuity", gates, "Thinking survives tool rounds."),
    one_of("qualification.record", gates, "Effort, sampling and limits are recorded."),
    one_of("qualification.artifacts", gates, "Hashes, commit, driver and context are recorded."),
    one_of("qualification.timings", gates, "Prompt, decode, queue and transfer are measured apart."),
    one_of("qualification.retrieval", gates, "Keys are found at the claimed context."),
    one_of("qualification.control", gates, "The text equals that without speculation."),
    key("qualification.command", text, "Command that ran the gates."),
    key("qualification.date", text, "Day they were run."),

    section("disagg", "Prefill and decode on separate devices."),
    key("disagg.connector", text, "Transfer of the cache, offered by a transport plugin."),
    key("disagg.protocol", text, "Protocol under the connector."),
    section("disagg.prefill", "The pool that computes prompts; overrides the top level."),
    ranged("disagg.prefill.devices", integer_list, within(0, max_count), "Device numbers."),
    ranged("disagg.prefill.tp", integer, within(1, max_count), "Tensor-parallel ranks."),
    ranged("disagg.prefill.dp", integer, within(1, max_count), "Data-parallel ranks."),
    ranged("disagg.prefill.port", integer, within(1, max_port), "HTTP port to listen on."),
    ranged("disagg.prefill.side_port", integer, within(1, max_port), "Port of the transfer's control channel."),
    one_of("disagg.prefill.role", roles, "What the pool does."),
    key("disagg.prefill.checkpoint", text, "Hub id of the pool's weights."),
    key("disagg.prefill.revision", text, "Commit of the id."),
    key("disagg.prefill.dtype", text, "Number format of cached rows."),
    ranged("disagg.prefill.block_size", integer, within(1, max_count), "Tokens in one block."),
    key("disagg.prefill.fp4_indexer_cache", boolean, "Whether index keys are cached in FP4."),
    ranged("disagg.prefill.max_num_seqs", count, within(1, max_count), "Sequences that run at once."),
    ranged("disagg.prefill.max_num_batched_tokens", count, within(1, 16777216), "Tokens in one step."),
    key("disagg.prefill.enforce_eager", boolean, "Whether graphs are off."),
    {.path = "disagg.decode",
     .kind = table,
     .doc = "The pool that generates; its keys are those of disagg.prefill.",
     .same_as = "disagg.prefill"},
    section("disagg.router", "What spreads requests over the pools."),
    one_of("disagg.router.policy", routers, "How a rank is chosen."),
    ranged("disagg.router.port", integer, within(1, max_port), "HTTP port to listen on."),
    key("disagg.router.connector", text, "Connector the router expects."),
    ranged("disagg.router.intra_node_dp", integer, within(1, max_count), "Data-parallel ranks on each node."),
    key("disagg.hybrid_kv_manager", boolean, "Whether cache kinds are managed apart."),
    key("disagg.load_failure_policy", text, "What a failed transfer does."),

    section("network", "Several machines."),
    key("network.head_ip", text, "Address of the first node."),
    key("network.iface", text, "Socket interface."),
    key("network.per_node_iface", text_list, "Socket interface of each node."),
    key("network.ib", text, "RDMA device."),
    key("network.isolated", boolean, "Whether nobody else reaches the network."),
    {.path = "network.endpoints", .kind = table_list, .doc = "A socket between ranks."},
    key("network.endpoints.uri", text, "Address, such as tcp://10.0.0.1:5557."),
    key("network.endpoints.bind", boolean, "Whether this end binds."),
    key("network.endpoints.cross_node", boolean, "Whether it joins different machines."),
    key("network.memlock", text, "Limit of locked memory."),
    ranged("network.ranks", integer_list, within(-1, max_count), "Rank of each node."),
    key("network.runtime_per_node", text_list, "Engine version on each node."),

    section("sizing", "How the author sized memory."),
    one_of("sizing.basis", bases, "What the figure counts."),
    key("sizing.weight_bytes", size, "Bytes of weights."),
    key("sizing.kv_scope", text, "What the cache figure covers."),
    key("sizing.kv_formula", text, "How the cache figure was made."),

    section("security", "What the deployment exposes."),
    key("security.secrets_inline", text_list, "Paths at which a secret stands in the file."),
    key("security.plugin_paths", text_list, "Places plugins are loaded from."),
    key("security.trust_remote_code", boolean, "Whether code from the checkpoint may run."),
    key("security.privileged", boolean, "Whether the container is privileged."),
    key("security.admin_endpoints", boolean, "Whether control endpoints are on."),

    section("benchmark", "What a published result states."),
    key("benchmark.tuple", text_list, "Facts that the result names."),
    one_of("benchmark.correctness_gate", gates, "Whether the output was checked."),
    key("benchmark.dataset", text, "Data set of the run."),
    key("benchmark.lineages", text_list, "Releases compared."),
    key("benchmark.efforts", text_list, "Efforts compared."),
    {.path = "benchmark.claims", .kind = table_list, .doc = "A claim of the result."},
    key("benchmark.claims.kind", text, "What is claimed."),
    key("benchmark.claims.measured", text, "Platform it was measured on."),
    key("benchmark.claims.claimed", text, "Platform it is claimed for."),
    key("benchmark.claims.acceptance", boolean, "Whether drafted and accepted tokens are given."),
    key("benchmark.claims.control", boolean, "Whether a run without speculation is given."),
    key("benchmark.claims.per_dp_concurrency", boolean, "Whether concurrency is given for each rank."),
    key("benchmark.claims.distributions", boolean, "Whether lengths are given as distributions."),
    key("benchmark.claims.queue_time", boolean, "Whether time in the queue is given."),
    ranged("benchmark.claims.hosts", integer, from(1), "Number of hosts measured."),
    key("benchmark.claims.observed_allocation", boolean, "Whether the allocation was observed."),
    key("benchmark.claims.random_routing", boolean, "Whether a run with random routing is given."),
};

constexpr ForeignName foreign_names[] = {
    {"tensor_parallel_size", "topology.tp", "vLLM"},
    {"data_parallel_size", "topology.dp", "vLLM"},
    {"pipeline_parallel_size", "topology.pp", "vLLM"},
    {"enable_expert_parallel", "topology.ep", "vLLM"},
    {"gpu_memory_utilization", "kv.utilization", "vLLM"},
    {"kv_cache_dtype", "kv.dtype", "vLLM"},
    {"kv_cache_memory_bytes", "kv.cache_bytes", "vLLM"},
    {"use_fp4_indexer_cache", "kv.fp4_indexer_cache", "vLLM"},
    {"enable_prefix_caching", "kv.prefix_caching", "vLLM"},
    {"enable_chunked_prefill", "context.chunked_prefill", "vLLM"},
    {"num_speculative_tokens", "spec.tokens", "vLLM"},
    {"tool_call_parser", "api.tool_parser", "vLLM"},
    {"enable_auto_tool_choice", "api.auto_tool_choice", "vLLM"},
    {"model", "checkpoint.id", "vLLM"},
    {"mem_fraction_static", "kv.utilization", "SGLang"},
    {"context_length", "context.max_model_len", "SGLang"},
    {"max_running_requests", "context.max_num_seqs", "SGLang"},
    {"chunked_prefill_size", "context.max_num_batched_tokens", "SGLang"},
    {"ctx_size", "context.max_model_len", "llama.cpp"},
    {"cache_type_k", "kv.k_type", "llama.cpp"},
    {"cache_type_v", "kv.v_type", "llama.cpp"},
};

} // namespace

const Schema& Schema::pipeline() {
    static const Schema schema(table_of_fields, foreign_names);
    return schema;
}

} // namespace dsv4::dsl
