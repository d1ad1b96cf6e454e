// The serving plan: what a checked pipeline file means, as pure data. The compiler builds it once; everything that
// serves reads it as const and asks nothing of the file again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dsv4::plan {

// Where a value came from, strongest first.
enum class OriginKind {
    override_, // --set on the command line
    file,      // the pipeline file
    default_,  // the schema's default
};
std::string_view to_string(OriginKind kind) noexcept;

struct Origin {
    OriginKind kind = OriginKind::default_;
    std::string file;         // name of the text the value stands in; empty for defaults
    std::uint32_t line = 0;   // from 1; 0 for defaults
    std::uint32_t column = 0; // from 1, in code points; 0 for defaults
};

// A plugin's option as the plugin receives it; its manifest says what is legal.
struct Option;
using OptionList = std::vector<Option>;
struct Option {
    std::variant<bool, std::int64_t, double, std::string, OptionList> value;
};
using Options = std::map<std::string, Option, std::less<>>;

// An empty string or optional means "not stated": whoever needs the value derives it or refuses.
struct Checkpoint {
    std::string id;       // hub id, "owner/name"; empty where only a path is given
    std::string revision; // commit of the id
    std::string path;     // directory or file on this machine, resolved against the pipeline file's directory
    std::string format;   // "safetensors" or "gguf"
};

// The engine that runs the plan: "dsv4" is this one, any other name needs its engine plugin.
struct Runtime {
    std::string name = "dsv4";
    std::string version;
};

struct Hardware {
    std::string platform;
    std::int64_t devices = 1; // all nodes together
    std::int64_t nodes = 1;
};

enum class TopologyMode { tp, tep, dep, tp_dp, pd };
std::string_view to_string(TopologyMode mode) noexcept;

struct Topology {
    TopologyMode mode = TopologyMode::tp;
    std::int64_t tp = 1; // ranks that split one layer
    std::int64_t dp = 1; // replicas of attention and cache
    std::int64_t pp = 1; // pipeline stages
    bool ep = false;     // experts spread over ep_size ranks instead of split by tp
    std::int64_t ep_size = 1;
    std::int64_t redundant_experts = 0;
    std::string moe_backend;
    std::int64_t world() const noexcept { return tp * dp * pp; }
};

struct KvPolicy {
    std::string dtype;
    std::int64_t block_size = 256; // tokens
    bool fp4_indexer_cache = false;
    std::optional<std::int64_t> cache_bytes; // per rank; absent: derived from utilization
    double utilization = 0.9;                // part of the device memory that weights and cache may use
    bool prefix_caching = true;
};

struct Speculation {
    std::string method = "none";
    std::int64_t tokens = 0; // drafted a step
    std::string draft_sample_method;
};

// All limits are per data-parallel rank.
struct Context {
    std::optional<std::int64_t> max_model_len; // tokens; absent: `auto`, the planner picks what fits
    std::int64_t max_num_seqs = 0;
    std::int64_t max_num_batched_tokens = 0;
    bool chunked_prefill = true;
};

struct Reasoning {
    bool thinking = true;
    std::string effort;
    std::optional<std::int64_t> max_output_tokens;
    bool preserve_reasoning = true;
};

// Defaults for requests that do not state their own.
struct Sampling {
    double temperature = 1.0;
    double top_p = 1.0;
    std::int64_t top_k = 0; // 0: off
    double min_p = 0.0;
    std::string workload; // "chat" or "agentic"
};

struct Parser {
    std::string plugin;
    Options options;
};

struct Api {
    std::string plugin;
    std::string host;
    std::int64_t port = 0;
    std::string tokenizer_mode; // these three name formats that the parser plugin offers
    std::string tool_parser;
    std::string reasoning_parser;
    bool tools = true;
    bool auto_tool_choice = true;
    Options options; // server options under the plugin's own names
};

enum class Precision { serve, score };
std::string_view to_string(Precision precision) noexcept;

struct Engine {
    std::string backend; // plugin name; empty: chosen from the platform
    Precision precision = Precision::serve;
    bool deterministic = false;
    Options options;
};

struct Plugins {
    std::vector<std::string> paths; // directories, resolved against the pipeline file's directory
    std::map<std::string, Options, std::less<>> options;
};

struct Log {
    std::string level;
    std::string format;
    bool content = false; // whether prompt and answer text may be logged
};

// A length is one number or a distribution; tokens.
struct Length {
    std::optional<std::int64_t> p50, p95, max; // one number sets all three
};

struct Workload {
    std::optional<std::int64_t> concurrency;
    std::optional<Length> prompt_tokens;
    std::optional<Length> output_tokens;
    std::optional<double> request_rate;   // requests a second
    std::optional<double> tool_call_rate; // calls a request
    std::string effort;
    std::map<std::string, double, std::less<>> objectives;
};

// A site's own condition; the planner evaluates `that`.
struct Requirement {
    std::string that;
    std::string why;
};

struct ServingPlan {
    std::int64_t schema = 1;
    std::string source; // name of the pipeline file
    Runtime runtime;
    Checkpoint checkpoint;
    Checkpoint draft; // a separate draft artifact; all empty where the target brings its own
    Hardware hardware;
    Topology topology;
    KvPolicy kv;
    Speculation spec;
    Context context;
    Reasoning reasoning;
    Sampling sampling;
    Parser parser;
    Api api;
    Engine engine;
    Plugins plugins;
    Log log;
    Workload workload;
    std::vector<Requirement> requirements;
    std::map<std::string, Origin, std::less<>> origins; // by dotted path, such as "kv.block_size"
};

// What clients call the model: the hub id, else the name of the directory.
std::string model_name(const ServingPlan& plan);

// Canonical JSON, two spaces of indent, keys in the order of the structs above, maps sorted, one newline at the end.
// Equal plans give equal bytes. What is not stated is left out. `source` and `origins` say how the plan came about, not
// what it is, so they appear only when asked for.
struct JsonOptions {
    bool origins = false;
};
std::string to_json(const ServingPlan& plan, JsonOptions options = {});

} // namespace dsv4::plan
