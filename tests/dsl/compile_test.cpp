// From a pipeline file to a plan: goldens, overrides, origins, paths.
#include "dsl/compile.hpp"
#include "dsl/plan_table.hpp"
#include "tests/support/catch.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

using namespace dsv4;

namespace {

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file);
    return {std::istreambuf_iterator<char>(file), {}};
}

plan::ServingPlan compile(std::string text, std::vector<std::string> overrides = {}, std::string name = "dir/x.toml") {
    dsl::Compilation result = dsl::compile_text(std::move(name), std::move(text), {std::move(overrides)});
    INFO(dsl::render_human(result.diagnostics, result.sources));
    REQUIRE(result.plan);
    return *result.plan;
}

const std::string complete =
    "schema = 1\n[checkpoint]\nid = \"a/b\"\n[hardware]\nplatform = \"cpu\"\n[topology]\nshape = \"tp2 x dp4\"\n";

} // namespace

TEST_CASE("the plan of cpu_tiny is the golden one") {
    const std::string text = read_file(DSV4_SOURCE_DIR "/pipelines/cpu_tiny.toml");
    const auto result = dsl::compile_text("pipelines/cpu_tiny.toml", text);
    CHECK(dsl::render_human(result.diagnostics, result.sources).empty());
    REQUIRE(result.plan);
    CHECK(plan::to_json(*result.plan) == read_file(DSV4_SOURCE_DIR "/tests/dsl/golden/cpu_tiny.plan.json"));
}

TEST_CASE("cpu_tiny finds its checkpoint from anywhere") {
    const auto result = dsl::compile_file(DSV4_SOURCE_DIR "/pipelines/cpu_tiny.toml");
    REQUIRE(result);
    REQUIRE(result.value().plan);
    CHECK(std::filesystem::exists(std::filesystem::path(result.value().plan->checkpoint.path) / "config.json"));
}

TEST_CASE("a deployment on four devices") {
    const plan::ServingPlan p = compile(R"(
schema = 1
[checkpoint]
id       = "deepseek-ai/DeepSeek-V4-Flash-0731"
revision = "7872f01b1d1f"
[hardware]
platform = "b200"
devices  = 4
[topology]
shape       = "tp1 x dp4 + ep"
moe_backend = "mega"
[kv]
dtype             = "fp8"
block_size        = 256
fp4_indexer_cache = true
[spec]
method              = "dspark"
tokens              = 5
draft_sample_method = "probabilistic"
[context]
max_model_len = "auto"
max_num_seqs  = 256
[api]
plugin = "api-openai"
host   = "127.0.0.1"
port   = 8000
queue_timeout = "1.5 s"
max_body_bytes = "64 MiB"
api_key = "env:KEY"
[workload]
concurrency   = 40
prompt_tokens = "32Ki"
output_tokens = { p50 = "8Ki", max = 10000 }
effort        = "high"
objectives    = { ttft_p95_ms = 4000 }
[[require]]
that = "sessions_that_fit >= workload.concurrency"
why  = "no agent may wait for memory"
)");
    CHECK(p.checkpoint.id == "deepseek-ai/DeepSeek-V4-Flash-0731");
    CHECK(p.checkpoint.path.empty());
    CHECK(p.hardware.devices == 4);
    CHECK(p.topology.mode == plan::TopologyMode::dep);
    CHECK(p.topology.tp == 1);
    CHECK(p.topology.dp == 4);
    CHECK(p.topology.ep);
    CHECK(p.topology.ep_size == 4);
    CHECK(p.topology.moe_backend == "mega");
    CHECK(p.kv.fp4_indexer_cache);
    CHECK(!p.kv.cache_bytes);
    CHECK(p.spec.method == "dspark");
    CHECK(p.spec.tokens == 5);
    CHECK(!p.context.max_model_len);
    CHECK(std::get<double>(p.api.options.at("queue_timeout").value) == 1.5);
    CHECK(std::get<std::int64_t>(p.api.options.at("max_body_bytes").value) == 67108864);
    CHECK(std::get<plan::OptionList>(p.api.options.at("api_key").value).size() == 1);
    CHECK(p.workload.prompt_tokens->p50 == 32768);
    CHECK(p.workload.prompt_tokens->p95 == 32768);
    CHECK(p.workload.prompt_tokens->max == 32768);
    CHECK(p.workload.output_tokens->p50 == 8192);
    CHECK(!p.workload.output_tokens->p95);
    CHECK(p.workload.output_tokens->max == 10000);
    CHECK(p.workload.objectives.at("ttft_p95_ms") == 4000.0);
    REQUIRE(p.requirements.size() == 1);
    CHECK(p.requirements[0].why == "no agent may wait for memory");
}

TEST_CASE("shapes, their modes and devices") {
    struct Row {
        const char* shape;
        plan::TopologyMode mode;
        std::int64_t tp, dp, ep_size, devices;
    };
    const Row rows[] = {{"tp8", plan::TopologyMode::tp, 8, 1, 1, 8},
                        {"tp8 + ep", plan::TopologyMode::tep, 8, 1, 8, 8},
                        {"tp1 x dp4 + ep", plan::TopologyMode::dep, 1, 4, 4, 4},
                        {"dp4", plan::TopologyMode::tp_dp, 1, 4, 1, 4},
                        {"tp2 x dp4 + ep", plan::TopologyMode::tp_dp, 2, 4, 8, 8},
                        {"tp2 x dp2 x pp3", plan::TopologyMode::tp_dp, 2, 2, 1, 12}};
    for (const Row& row : rows) {
        INFO(row.shape);
        const plan::ServingPlan p = compile(complete, {std::string("topology.shape=") + row.shape});
        CHECK(p.topology.mode == row.mode);
        CHECK(p.topology.tp == row.tp);
        CHECK(p.topology.dp == row.dp);
        CHECK(p.topology.ep_size == row.ep_size);
        CHECK(p.hardware.devices == row.devices);
    }
}

TEST_CASE("overrides are stronger than the file and typed by the schema") {
    const plan::ServingPlan p = compile(complete + "[kv]\nblock_size = 256\n",
                                        {"kv.block_size=128", "checkpoint.revision=1e5", "kv.cache_bytes=20 GiB",
                                         "topology.tp=8", "context.max_model_len=384Ki", "log.content=true",
                                         "plugins.options.backend-cpu.threads=4", "api.served_model_name=flash"});
    CHECK(p.kv.block_size == 128);
    CHECK(p.checkpoint.revision == "1e5");
    CHECK(p.kv.cache_bytes == 21474836480);
    CHECK(p.topology.tp == 8);
    CHECK(p.topology.dp == 4);
    CHECK(p.context.max_model_len == 393216);
    CHECK(p.log.content);
    CHECK(std::get<std::int64_t>(p.plugins.options.at("backend-cpu").at("threads").value) == 4);
    const auto& names = std::get<plan::OptionList>(p.api.options.at("served_model_name").value);
    REQUIRE(names.size() == 1);
    CHECK(std::get<std::string>(names[0].value) == "flash");
}

TEST_CASE("every value knows where it came from") {
    const plan::ServingPlan p = compile(complete, {"kv.block_size=128"}, "dir/x.toml");
    const auto origin = [&](const char* path) { return p.origins.at(path); };
    CHECK(origin("kv.block_size").kind == plan::OriginKind::override_);
    CHECK(origin("kv.block_size").file == "--set #1");
    CHECK(origin("kv.block_size").column == 15);
    CHECK(origin("hardware.platform").kind == plan::OriginKind::file);
    CHECK(origin("hardware.platform").file == "dir/x.toml");
    CHECK(origin("hardware.platform").line == 5);
    CHECK(origin("hardware.platform").column == 12);
    CHECK(origin("topology.tp").line == 7); // from the shape
    CHECK(origin("api.port").kind == plan::OriginKind::default_);
    CHECK(origin("topology.mode").kind == plan::OriginKind::default_);

    const auto json = nlohmann::json::parse(plan::to_json(p, {.origins = true}));
    CHECK(json.at("origins").at("kv.block_size").at("from") == "override");
    CHECK(json.at("origins").at("api.port") == nlohmann::json::parse(R"({"from": "default"})"));
    CHECK(json.at("source") == "dir/x.toml");
    CHECK(!nlohmann::json::parse(plan::to_json(p)).contains("origins"));
}

TEST_CASE("paths are those of the file, or of the working directory in overrides") {
    const std::string text =
        complete + "[plugins]\npaths = [\"plug/../ins\", \"/opt/p\"]\n[draft]\npath = \"../d.gguf\"\n";
    const plan::ServingPlan p = compile(text, {"checkpoint.path=./w"}, "some/dir/x.toml");
    CHECK(p.plugins.paths == std::vector<std::string>{"some/dir/ins", "/opt/p"});
    CHECK(p.draft.path == "some/d.gguf");
    CHECK(p.checkpoint.path == "w");
}

TEST_CASE("equal plans have equal JSON, whatever the order of the file") {
    const std::string a = complete + "[kv]\ndtype = \"fp8\"\nblock_size = 128\n[log]\nlevel = \"debug\"\n";
    const std::string b = "log.level = \"debug\"\nkv = { block_size = 128, dtype = \"fp8\" }\n" + complete;
    CHECK(plan::to_json(compile(a)) == plan::to_json(compile(b)));
}

TEST_CASE("the table shows every value of the plan") {
    const plan::ServingPlan p = compile(complete + "[api]\nmax_queue = 7\n[[require]]\nthat = \"a > 1\"\n");
    const std::string table = dsl::render_plan(p, {.origins = true});
    CHECK_THAT(table, ContainsSubstring("\ntopology\n"));
    CHECK_THAT(table, ContainsSubstring("a > 1"));
    CHECK_THAT(table, ContainsSubstring("dir/x.toml:9:13")); // api.max_queue
    const auto json = nlohmann::ordered_json::parse(plan::to_json(p));
    std::size_t at = 0; // keys in the order of the JSON
    for (const auto& [section, values] : json.items()) {
        INFO(section);
        const std::size_t found = table.find(section, at);
        REQUIRE(found != std::string::npos);
        at = found;
        if (!values.is_object()) continue;
        for (const auto& [key, value] : values.items()) {
            INFO(key);
            REQUIRE(table.find(key, at) != std::string::npos);
        }
    }
    CHECK(dsl::render_plan(p).find("default") == std::string::npos);
}

TEST_CASE("a file that cannot be read is no diagnostic") {
    const auto missing = dsl::compile_file("/nonexistent/x.toml");
    REQUIRE(!missing);
    CHECK(missing.error().code == Code::not_found);
    CHECK_THAT(missing.error().message, ContainsSubstring("/nonexistent/x.toml"));
    const auto directory = dsl::compile_file(DSV4_SOURCE_DIR "/tests");
    REQUIRE(!directory);
    CHECK(directory.error().code == Code::environment);
    const auto endless = dsl::compile_file("/dev/zero");
    REQUIRE(endless);
    REQUIRE(endless.value().diagnostics.size() == 1);
    CHECK(endless.value().diagnostics[0].code == dsl::codes::does_not_parse);
}
