// Renders a run.
#include "bench/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dsv4::bench {

namespace {

using nlohmann::ordered_json;

std::string printable(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    return text;
}

const char* api_name(Api api) { return api == Api::chat ? "chat" : "completions"; }

const char* token_source(const Measures& m) {
    if (m.answered == 0 || !m.output_tokens) return "none";
    if (m.with_usage == m.answered) return "usage";
    return m.with_usage == 0 ? "events" : "mixed";
}

std::string load_text(const LoadSettings& load) {
    std::string text = load.rate_per_s ? fmt::format("open loop, {} requests/s, Poisson arrivals with seed {}",
                                                     *load.rate_per_s, load.seed)
                                       : "closed loop";
    if (load.concurrency) text += fmt::format(", {}{} at once", load.rate_per_s ? "at most " : "", load.concurrency);
    return text;
}

std::string prompt_text(const RequestSettings& r) {
    if (r.random_words) return fmt::format("random prompts of {} words, seed {}", *r.random_words, r.seed);
    if (r.prompts_file) return "prompts of " + printable(*r.prompts_file);
    return "one prompt";
}

template <class T> ordered_json maybe(const std::optional<T>& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json to_json(const Distribution& d) {
    if (d.count == 0) return nullptr;
    return {{"count", d.count}, {"mean", d.mean}, {"min", d.min}, {"p50", d.p50},
            {"p95", d.p95},     {"p99", d.p99},   {"max", d.max}};
}

ordered_json to_json(const LoadSettings& load) {
    ordered_json out;
    out["kind"] = load.rate_per_s ? "open" : "closed";
    out["concurrency"] = load.concurrency ? ordered_json(load.concurrency) : ordered_json(nullptr);
    out["rate_per_s"] = maybe(load.rate_per_s);
    out["arrivals"] = load.rate_per_s ? ordered_json("poisson") : ordered_json(nullptr);
    out["seed"] = load.seed;
    out["requests"] = maybe(load.requests);
    out["duration_s"] = maybe(load.duration_s);
    return out;
}

ordered_json to_json(const RequestSettings& r) {
    ordered_json prompts;
    if (r.random_words)
        prompts = {{"kind", "random_words"}, {"words", *r.random_words}, {"seed", r.seed}};
    else if (r.prompts_file)
        prompts = {{"kind", "file"}, {"file", *r.prompts_file}};
    else
        prompts = {{"kind", "text"}, {"text", r.prompt.value_or("")}};
    ordered_json out;
    out["prompts"] = prompts;
    out["stream"] = r.stream;
    out["include_usage"] = r.stream && r.include_usage;
    out["max_tokens"] = maybe(r.max_tokens);
    out["temperature"] = maybe(r.temperature);
    out["extra_body"] = r.extra_body.empty() ? ordered_json(nullptr) : ordered_json::parse(r.extra_body);
    return out;
}

ordered_json failures_json(const Measures& m) {
    ordered_json out;
    ordered_json statuses = ordered_json::object();
    for (const auto& [status, count] : m.http_statuses) statuses[std::to_string(status)] = count;
    out["http_status"] = statuses;
    for (const Outcome kind : {Outcome::connection, Outcome::timeout, Outcome::malformed, Outcome::stream_error}) {
        const auto at = m.failures.find(kind);
        out[outcome_name(kind)] = at == m.failures.end() ? 0 : at->second;
    }
    ordered_json messages = ordered_json::object();
    for (const auto& [kind, message] : m.first_message) messages[outcome_name(kind)] = message;
    out["first_messages"] = messages;
    return out;
}

ordered_json to_json(const Sample& s) {
    ordered_json out;
    out["index"] = s.index;
    out["outcome"] = outcome_name(s.outcome);
    out["http_status"] = s.http_status ? ordered_json(s.http_status) : ordered_json(nullptr);
    out["scheduled_ms"] = s.scheduled_us ? ordered_json(double(*s.scheduled_us) / 1000) : ordered_json(nullptr);
    out["sent_ms"] = double(s.sent_us) / 1000;
    out["end_ms"] = double(s.end_us) / 1000;
    const Latencies l = s.outcome == Outcome::ok ? latencies(s) : Latencies{};
    out["ttft_ms"] = maybe(l.ttft_ms);
    out["tpot_ms"] = maybe(l.tpot_ms);
    out["prompt_tokens"] = s.usage ? ordered_json(s.usage->prompt_tokens) : ordered_json(nullptr);
    out["output_tokens"] = maybe(output_tokens(s));
    out["output_events"] = s.outputs_us.size();
    return out;
}

} // namespace

std::string table(const Conditions& c, const Run& run, const Measures& m) {
    std::string out = fmt::format("{}  {}  model {}\n{}; {}\n", printable(c.url), api_name(c.request.api),
                                  printable(c.request.model), load_text(c.load), prompt_text(c.request));
    if (c.warmup) out += fmt::format("warm-up {} requests, {} failed\n", run.warmup_requests, run.warmup_failures);
    out += fmt::format("{} answered, {} failed", m.answered, m.failed);
    if (m.interrupted) out += fmt::format(", {} interrupted", m.interrupted);
    out += fmt::format(" in {:.2f} s over {} connections{}\n\n", m.elapsed_s, run.connections,
                       run.stopped_by_user ? "; stopped by the user"
                       : run.gave_up       ? "; gave up, as the server could not be reached any more"
                                           : "");

    const auto rate = [&](const char* name, const std::optional<double>& value, const std::string& note) {
        out += value ? fmt::format("{:<17}{:>12.2f}{}{}\n", name, *value, note.empty() ? "" : "  ", note)
                     : fmt::format("{:<17}{:>12}\n", name, "-");
    };
    const std::string source = token_source(m);
    rate("requests/s", m.requests_per_s, "");
    rate("prompt tokens/s", m.prompt_tokens_per_s, fmt::format("{} tokens", m.prompt_tokens.value_or(0)));
    rate("output tokens/s", m.output_tokens_per_s,
         fmt::format("{} tokens, {}", m.output_tokens.value_or(0),
                     source == "usage"    ? "as the server reported"
                     : source == "events" ? "counted as events"
                                          : "partly reported, partly counted as events"));

    out +=
        fmt::format("\n{:<17}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}\n", "", "mean", "p50", "p95", "p99", "max", "count");
    const auto row = [&](const char* name, const Distribution& d) {
        if (d.count == 0)
            out += fmt::format("{:<17}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}\n", name, "-", "-", "-", "-", "-", 0);
        else
            out += fmt::format("{:<17}{:>12.2f}{:>12.2f}{:>12.2f}{:>12.2f}{:>12.2f}{:>10}\n", name, d.mean, d.p50,
                               d.p95, d.p99, d.max, d.count);
    };
    row("TTFT ms", m.ttft_ms);
    row("TPOT ms", m.tpot_ms);
    row("ITL ms", m.itl_ms);
    row("E2E ms", m.e2e_ms);
    if (c.load.rate_per_s) row("queue ms", m.queue_ms);
    row("prompt tokens", m.prompt_length_tokens);
    row("output tokens", m.output_length_tokens);

    if (m.without_output) out += fmt::format("\nanswers without output: {}\n", m.without_output);
    if (!m.failures.empty()) out += "\nfailures\n";
    for (const auto& [kind, count] : m.failures) {
        std::string name = outcome_name(kind);
        if (kind == Outcome::http_status)
            for (const auto& [status, times] : m.http_statuses) name += fmt::format(" {} ({}x)", status, times);
        out += fmt::format("  {:<7} {}: {}\n", count, name, printable(m.first_message.at(kind)));
    }
    return out;
}

std::string json_report(const Conditions& c, const Run& run, const Measures& m) {
    ordered_json out;
    out["schema"] = "dsv4.bench.serve";
    out["version"] = 1;
    out["command"] = c.command;
    out["url"] = c.url;
    out["endpoint"] = api_name(c.request.api);
    out["model"] = c.request.model;
    out["date"] = c.date;
    out["program"] = {{"version", c.version}, {"commit", c.commit}};
    out["client_machine"] = {{"cpu", c.machine.cpu}, {"cores", c.machine.cores}, {"system", c.machine.system}};
    out["load"] = to_json(c.load);
    out["request"] = to_json(c.request);
    out["request"]["timeout_s"] = c.request_timeout_s;
    out["warmup"] = {{"requests", run.warmup_requests}, {"failed", run.warmup_failures}};
    out["stopped_by_user"] = run.stopped_by_user;
    out["gave_up"] = run.gave_up;
    out["elapsed_s"] = m.elapsed_s;
    out["connections"] = run.connections;
    out["requests"] = {{"answered", m.answered},
                       {"failed", m.failed},
                       {"interrupted", m.interrupted},
                       {"without_output", m.without_output}};
    out["failures"] = failures_json(m);
    out["tokens"] = {
        {"source", token_source(m)}, {"prompt", maybe(m.prompt_tokens)}, {"output", maybe(m.output_tokens)}};
    out["throughput"] = {{"requests_per_s", maybe(m.requests_per_s)},
                         {"prompt_tokens_per_s", maybe(m.prompt_tokens_per_s)},
                         {"output_tokens_per_s", maybe(m.output_tokens_per_s)}};
    out["metrics"] = {{"ttft_ms", to_json(m.ttft_ms)},
                      {"tpot_ms", to_json(m.tpot_ms)},
                      {"itl_ms", to_json(m.itl_ms)},
                      {"e2e_ms", to_json(m.e2e_ms)},
                      {"queue_ms", to_json(m.queue_ms)},
                      {"prompt_tokens", to_json(m.prompt_length_tokens)},
                      {"output_tokens", to_json(m.output_length_tokens)}};
    out["samples"] = ordered_json::array();
    for (const Sample& s : run.samples) out["samples"].push_back(to_json(s));
    return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace dsv4::bench
