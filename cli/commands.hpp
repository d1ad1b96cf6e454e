// The commands of the program: their options as plain data, and one function each that returns the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsv4::cli {

// 0 clean, 1 findings (a file or plugin that is not right), 2 usage, 3 environment, 4 internal.
enum ExitCode : int { clean = 0, findings = 1, usage = 2, environment = 3, internal = 4 };

struct RunOptions {
    std::string pipeline;
    std::string prompt;
    std::string messages_file; // an array of messages or a chat-completions body; "-": standard input
    std::optional<double> temperature;
    std::optional<std::int64_t> max_tokens;
    std::optional<std::int64_t> seed;
    std::vector<std::string> set; // path=value
    std::string precision;        // "", "serve" or "score"
    bool json = false;
};
int run(const RunOptions& options);

struct PipelineOptions {
    std::string pipeline;
    std::vector<std::string> set;
    std::uint32_t drain_timeout_s = 30; // how long running requests may take to end
};
int pipeline(const PipelineOptions& options);

// Runs the program of that benchmark with the arguments that follow its name.
int bench(const std::vector<std::string>& arguments);

struct ScoreCommand {
    std::string checkpoint;
    std::string tokens_file;
    std::string out_file;
    std::string backend = "backend-cpu";
    std::vector<std::string> backend_options; // name=value
    std::string precision = "score";
    std::uint32_t chunk_tokens = 256;
    bool streams = false;
};
int score(const ScoreCommand& options);

struct CodecOptions {
    std::string vector_file;
    std::string split; // "", "every" or "codepoint"
    std::string tokenizer;
    std::string parser = "parser-deepseek-v4";
};
int codec(const CodecOptions& options);

struct PlanOptions {
    std::string pipeline;
    std::vector<std::string> set;
    bool json = false;
    bool program = false;
    bool origins = false;
};
int plan(const PlanOptions& options);

struct CheckpointOptions {
    std::string directory;
    bool json = false;
};
int checkpoint_inspect(const CheckpointOptions& options);

struct PluginsOptions {
    std::vector<std::string> names; // names or files
    std::vector<std::string> paths; // more directories to search
    std::vector<std::string> geometries;
    bool json = false;
};
int plugins_list(const PluginsOptions& options);
int plugins_inspect(const PluginsOptions& options);
int plugins_check(const PluginsOptions& options);

} // namespace dsv4::cli
