// The `dsv4-bench-serve` program: its options, and what it prints. The only file of it that knows CLI11.
#include "bench/answer.hpp"
#include "bench/client.hpp"
#include "bench/report.hpp"
#include "dsv4/sdk/result.hpp"
#include "dsv4_commit.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

namespace {

using namespace dsv4;
using namespace dsv4::bench;

enum ExitCode : int { clean = 0, some_failed = 1, usage = 2, unreachable = 3, internal = 4 };

struct Options {
    std::string url;
    std::string api_key; // env:NAME
    std::string json_file;
    std::uint64_t warmup = 0;
    Server server;
    LoadSettings load;
    RequestSettings request;
};

void add_options(CLI::App& app, Options& o) {
    app.add_option("--url", o.url, "The server: http://host[:port][/prefix], host an IP address or localhost")
        ->required();
    const std::map<std::string, Api> apis{{"chat", Api::chat}, {"completions", Api::completions}};
    app.add_option("--endpoint", o.request.api, "chat or completions; chat when not given")
        ->transform(CLI::CheckedTransformer(apis).description(""))
        ->type_name("NAME");
    app.add_option("--model", o.request.model, "Name of the model; the first of /v1/models when not given");
    app.add_option("--api-key", o.api_key, "env:NAME, the environment variable that holds the key");

    const char* load = "Load";
    app.add_option("--concurrency", o.load.concurrency,
                   "Closed loop: requests at once, 1 when not given. Open loop: most at once, no limit when not given")
        ->check(CLI::Range(std::uint64_t(1), std::uint64_t(100000)))
        ->group(load);
    app.add_option("--requests", o.load.requests, "Number of requests; 100 when no duration is given either")
        ->group(load);
    app.add_option("--duration", o.load.duration_s, "Seconds in which requests start")->group(load);
    app.add_option("--rate", o.load.rate_per_s, "Open loop: requests a second on average, Poisson arrivals")
        ->group(load);
    app.add_option("--seed", o.load.seed, "Of arrival times and random words")->capture_default_str()->group(load);
    app.add_option("--warmup", o.warmup, "Requests before the load that are not measured")
        ->capture_default_str()
        ->check(CLI::Range(std::uint64_t(0), std::uint64_t(1000000)))
        ->group(load);

    const char* what = "Requests";
    app.add_option("--prompt", o.request.prompt, "The same text in each request")->group(what);
    app.add_option("--prompts", o.request.prompts_file,
                   "JSON file: an array of texts or of message arrays, asked in turn")
        ->group(what);
    app.add_option("--random-words", o.request.random_words, "Prompts of that many random words, each another")
        ->group(what);
    app.add_option("--max-tokens", o.request.max_tokens, "Most tokens of an answer")->group(what);
    app.add_option("--temperature", o.request.temperature, "0 takes the most likely token each time")->group(what);
    app.add_option("--extra-body", o.request.extra_body, "JSON object whose members are added to each request")
        ->group(what);
    app.add_flag("--stream,!--no-stream", o.request.stream,
                 "Whether answers are streamed; without, TTFT, TPOT and ITL are not measured")
        ->group(what);
    app.add_flag("!--no-usage", o.request.include_usage, "Do not ask a stream for its usage: count events as tokens")
        ->group(what);

    const CLI::Range some_time(0.001, 1e6);
    app.add_option("--timeout", o.server.request_timeout_s, "Seconds for one request")
        ->capture_default_str()
        ->check(some_time);
    app.add_option("--connect-timeout", o.server.connect_timeout_s, "Seconds for a connection")
        ->capture_default_str()
        ->check(some_time);
    app.add_option("--json", o.json_file, "Also write the report with every sample to this file");
    app.footer("Exit codes: 0 all answered, 1 some failed or the run was interrupted, 2 usage, 3 cannot reach the\n"
               "server or write the report, 4 internal. Ctrl-C prints what was measured so far.\n\n"
               "  dsv4 bench serve --url http://127.0.0.1:8000 --random-words 512 --max-tokens 128 --concurrency 8\n"
               "  dsv4 bench serve --url http://127.0.0.1:8000 --prompts prompts.json --rate 4 --duration 60\n");
}

std::string read_key(const std::string& source) {
    if (source.empty()) return {};
    if (!source.starts_with("env:"))
        throw Failure(Code::invalid, "the API key is not given as env:NAME",
                      "put the key in an environment variable, and its name here: others can read command lines");
    const char* key = std::getenv(source.c_str() + 4);
    if (!key || !*key)
        throw Failure(Code::invalid, "the environment variable '" + source.substr(4) + "' of the API key is not set");
    for (const char* c = key; *c; ++c)
        if (static_cast<unsigned char>(*c) <= ' ' || static_cast<unsigned char>(*c) >= 0x7f)
            throw Failure(Code::invalid, "the API key has a space or a character that is not printable ASCII");
    return key;
}

// One line on standard error, at most ten times a second; nothing where that is not a terminal.
class ProgressLine {
  public:
    ~ProgressLine() {
        if (drawn_) std::fputs("\r\033[K", stderr);
    }
    void show(const Progress& p) {
        const auto now = std::chrono::steady_clock::now();
        if (!visible_ || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
        last_ = now;
        drawn_ = true;
        fmt::print(stderr, "\r{}started {}  answered {}  failed {}\033[K", p.warming_up ? "warm-up: " : "", p.started,
                   p.answered, p.failed);
        std::fflush(stderr);
    }

  private:
    bool visible_ = isatty(STDERR_FILENO) == 1;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point last_{};
};

struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void cannot_write(const std::string& path, Code code) {
    throw Failure(code, "cannot write the report '" + path + "': " + std::strerror(errno));
}

int run(Options& o, const std::vector<std::string>& command, bool concurrency_given) {
    o.server.url = parse_url(o.url);
    o.server.api_key = read_key(o.api_key);
    if (o.load.rate_per_s && !concurrency_given) o.load.concurrency = 0;
    if (!o.load.requests && !o.load.duration_s) o.load.requests = 100;
    o.request.seed = o.load.seed;
    check(o.load);
    Requests(o.request); // what is wrong with the prompts shows before the server is asked anything
    // The report's file is opened first: a run of an hour shall not end with a path that cannot be written. What it
    // holds stays until there is a new report.
    File file;
    if (!o.json_file.empty()) {
        file.reset(std::fopen(o.json_file.c_str(), "a"));
        if (!file) cannot_write(o.json_file, Code::invalid);
    }
    if (o.request.model.empty()) o.request.model = first_model(get_models(o.server));

    Conditions conditions{command,        o.url,  utc_now(), DSV4_VERSION, DSV4_COMMIT,
                          this_machine(), o.load, o.request, o.warmup,     o.server.request_timeout_s};
    Run result;
    {
        ProgressLine line;
        result = run_load(o.server, o.load, o.warmup, Requests(o.request), [&](const Progress& p) { line.show(p); });
    }
    const Measures measures = measure(result);
    std::fputs(table(conditions, result, measures).c_str(), stdout);
    if (file) {
        const std::string text = json_report(conditions, result, measures);
        (void)ftruncate(fileno(file.get()), 0); // pipes and terminals have no length
        if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() || std::fflush(file.get()) != 0)
            cannot_write(o.json_file, Code::environment);
    }
    return measures.failed || result.warmup_failures || result.stopped_by_user || result.gave_up ? some_failed : clean;
}

int report(const Error& error) {
    const char* no_color = std::getenv("NO_COLOR");
    const bool color = isatty(STDERR_FILENO) == 1 && (!no_color || !*no_color);
    fmt::print(stderr, "{}: {}\n", color ? "\033[1;31merror\033[0m" : "error", error.message);
    if (!error.fix.empty()) fmt::print(stderr, "  {}: {}\n", color ? "\033[1mfix\033[0m" : "fix", error.fix);
    switch (error.code) {
    case Code::invalid:
    case Code::not_found:
    case Code::unsupported: return usage;
    case Code::internal: return internal;
    default: return unreachable;
    }
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app{"Loads an OpenAI-compatible endpoint and reports its latency and throughput.", "dsv4 bench serve"};
    app.set_version_flag("--version", "dsv4-bench-serve " DSV4_VERSION " " DSV4_COMMIT);
    Options options;
    add_options(app, options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? int(clean) : int(usage);
    }
    const std::vector<std::string> command(argv, argv + argc);
    const auto result = guard([&] { return run(options, command, app.count("--concurrency") > 0); });
    return result.ok() ? result.value() : report(result.error());
}
