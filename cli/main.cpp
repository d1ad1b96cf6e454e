// The `dsv4` program: its command line, help and version. The only file that knows CLI11.
#include "cli/commands.hpp"
#include "cli/terminal.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <iostream>

namespace {

using namespace dsv4::cli;

constexpr const char* exit_codes = "Exit codes: 0 clean, 1 findings, 2 usage, 3 environment, 4 internal.";

void add_run(CLI::App& app, RunOptions& o, std::function<int()>& chosen) {
    auto* c = app.add_subcommand("run", "Answer one prompt from a pipeline, without a server");
    c->add_option("pipeline", o.pipeline, "Pipeline file (.toml)")->required();
    auto* prompt = c->add_option("-p,--prompt", o.prompt, "Text of one user message");
    auto* messages =
        c->add_option("-m,--messages", o.messages_file,
                      "JSON file: an array of messages or a chat-completions body; - reads standard input");
    prompt->excludes(messages);
    c->add_option("--temperature", o.temperature, "0 takes the most likely token each time");
    c->add_option("--max-tokens", o.max_tokens, "Stop after this many generated tokens")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
    c->add_option("--seed", o.seed, "Same seed, same answer");
    c->add_option("--set", o.set, "Override a value of the file: path=value, as kv.block_size=256")
        ->allow_extra_args(false);
    c->add_option("--precision", o.precision, "serve (the publisher's rounding) or score (float32)")
        ->check(CLI::IsMember({"serve", "score"}));
    c->add_flag("--json", o.json, "Print a chat.completion object");
    c->footer("Flags win over the file of messages, which wins over the pipeline.\n\n"
              "  dsv4 run pipelines/cpu_tiny.toml --prompt \"What is the capital of Norway?\"\n"
              "  dsv4 run pipelines/cpu_tiny.toml --messages request.json --json\n");
    c->callback([&, prompt, messages] {
        if (!*prompt && !*messages) throw CLI::RequiredError("--prompt or --messages");
        if (*messages && o.messages_file.empty()) throw CLI::ValidationError("--messages", "names no file");
        chosen = [&o] { return run(o); };
    });
}

void add_pipeline(CLI::App& app, PipelineOptions& o, std::function<int()>& chosen) {
    auto* c = app.add_subcommand("pipeline", "Serve what a pipeline file describes");
    c->add_option("pipeline", o.pipeline, "Pipeline file (.toml)")->required();
    c->add_option("--set", o.set, "Override a value of the file: path=value, as api.port=8001")
        ->allow_extra_args(false);
    c->add_option("--drain-timeout", o.drain_timeout_s, "Seconds that running requests may take to end after SIGTERM")
        ->check(CLI::Range(0u, 86400u))
        ->capture_default_str();
    c->footer("SIGTERM and SIGINT let running requests end; a second one stops at once.\n\n"
              "  dsv4 pipeline pipelines/cpu_tiny.toml\n"
              "  curl http://127.0.0.1:8000/v1/chat/completions -H 'content-type: application/json' \\\n"
              "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"What is the capital of Norway?\"}]}'\n");
    c->callback([&] { chosen = [&o] { return pipeline(o); }; });
}

void add_bench(CLI::App& app, std::vector<std::string>& arguments, std::function<int()>& chosen) {
    auto* c = app.add_subcommand("bench", "Measure a server under load: dsv4 bench serve --help");
    c->prefix_command();
    c->set_help_flag();
    c->callback([&, c] {
        arguments = c->remaining();
        chosen = [&arguments] { return bench(arguments); };
    });
}

void add_score(CLI::App& app, ScoreCommand& o, std::function<int()>& chosen) {
    auto* c = app.add_subcommand("score", "Logits for every position of a token sequence");
    c->add_option("--checkpoint", o.checkpoint, "Checkpoint directory")->required();
    c->add_option("--tokens", o.tokens_file, "JSON array of token ids")->required();
    c->add_option("--out", o.out_file, "safetensors file to write: logits f32 [T,V], argmax i32 [T]")->required();
    c->add_option("--backend", o.backend, "Backend plugin")->capture_default_str();
    c->add_option("--backend-option", o.backend_options, "Option of the backend: name=value")->allow_extra_args(false);
    c->add_option("--precision", o.precision, "score (float32) or serve (the publisher's rounding)")
        ->check(CLI::IsMember({"serve", "score"}))
        ->capture_default_str();
    c->add_option("--chunk", o.chunk_tokens, "Tokens a batch; the result does not depend on it")
        ->check(CLI::Range(1u, 1u << 20))
        ->capture_default_str();
    c->add_flag("--streams", o.streams, "Also write streams.L f32 [T,n,D] and picks.L i32 [T,K] of every layer");
    c->callback([&] { chosen = [&o] { return score(o); }; });
}

void add_codec(CLI::App& app, CodecOptions& o, std::function<int()>& chosen) {
    auto* c = app.add_subcommand("codec", "Run one encoding, parsing or tokenize vector and print what came out");
    c->add_option("vector", o.vector_file, "Vector file (.json)")->required();
    c->add_option("--split", o.split, "Feed a completion at every split point, or code point by code point")
        ->check(CLI::IsMember({"every", "codepoint"}));
    c->add_option("--tokenizer", o.tokenizer, "tokenizer.json for tokenize vectors");
    c->add_option("--parser", o.parser, "Parser plugin")->capture_default_str();
    c->callback([&] { chosen = [&o] { return codec(o); }; });
}

void add_plan(CLI::App& app, PlanOptions& o, std::function<int()>& chosen) {
    auto* c = app.add_subcommand("plan", "Check a pipeline file and print what it means");
    c->add_option("pipeline", o.pipeline, "Pipeline file (.toml)")->required();
    c->add_option("--set", o.set, "Override a value of the file: path=value")->allow_extra_args(false);
    c->add_flag("--json", o.json, "Canonical JSON");
    c->add_flag("--program", o.program, "The Program that the model is lowered to");
    c->add_flag("--origins", o.origins, "Where each value came from");
    c->callback([&] { chosen = [&o] { return plan(o); }; });
}

void add_checkpoint(CLI::App& app, CheckpointOptions& o, std::function<int()>& chosen) {
    auto* c = app.add_subcommand("checkpoint", "Look at checkpoints");
    c->require_subcommand(1);
    auto* inspect = c->add_subcommand("inspect", "Card, totals, shards and findings of a checkpoint directory");
    inspect->add_option("directory", o.directory, "Directory with config.json and safetensors files")->required();
    inspect->add_flag("--json", o.json, "One JSON object");
    inspect->callback([&] { chosen = [&o] { return checkpoint_inspect(o); }; });
}

void add_plugins(CLI::App& app, PluginsOptions& o, std::function<int()>& chosen) {
    auto* c = app.add_subcommand("plugins", "Look at plugins");
    c->require_subcommand(1);
    auto common = [&](CLI::App* s, int (*command)(const PluginsOptions&)) {
        s->add_option("--path", o.paths, "Another directory to search")->allow_extra_args(false);
        s->add_flag("--json", o.json, "JSON instead of a table");
        s->callback([&o, &chosen, command] { chosen = [&o, command] { return command(o); }; });
    };
    common(c->add_subcommand("list", "Every plugin on the search path, with the reason where one is refused"),
           plugins_list);
    auto* inspect = c->add_subcommand("inspect", "Options, targets and capabilities of one plugin");
    inspect->add_option("plugin", o.names, "Name or file")->required()->expected(1);
    common(inspect, plugins_inspect);
    auto* check = c->add_subcommand("check", "Hold a plugin against its contract; a backend against the CPU reference");
    check->add_option("plugin", o.names, "Names or files")->required();
    check->add_option("--geometry", o.geometries, "tiny, golden, flash, pro (backends)")
        ->delimiter(',')
        ->check(CLI::IsMember({"tiny", "golden", "flash", "pro"}));
    common(check, plugins_check);
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "dsv4: a serving engine for DeepSeek-V4-Flash.\n"
        "A pipeline file names checkpoint, hardware, topology and cache policy; the compiler checks it before a\n"
        "byte of weights is read.",
        "dsv4"};
    app.set_version_flag("--version", "dsv4 " DSV4_VERSION);
    app.require_subcommand(1);
    app.set_help_all_flag("--help-all", "Help of every command");
    app.footer(exit_codes);

    RunOptions run_options;
    PipelineOptions pipeline_options;
    std::vector<std::string> bench_arguments;
    ScoreCommand score_options;
    CodecOptions codec_options;
    PlanOptions plan_options;
    CheckpointOptions checkpoint_options;
    PluginsOptions plugins_options;
    std::function<int()> chosen;
    add_run(app, run_options, chosen);
    add_pipeline(app, pipeline_options, chosen);
    add_bench(app, bench_arguments, chosen);
    add_plan(app, plan_options, chosen);
    add_score(app, score_options, chosen);
    add_codec(app, codec_options, chosen);
    add_checkpoint(app, checkpoint_options, chosen);
    add_plugins(app, plugins_options, chosen);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? int(clean) : int(usage);
    }
    const int code = chosen();
    // A full disk or a closed pipe is no success. The stream's error flag stays, so one look covers every command.
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
        const int status = report({dsv4::Code::environment, "cannot write standard output", {}});
        return code == clean ? status : code;
    }
    return code;
}
