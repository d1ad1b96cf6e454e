// `dsv4 plugins list | inspect | check`.
#include "cli/commands.hpp"
#include "cli/plugin_host.hpp"
#include "cli/terminal.hpp"
#include "core/conformance/check.hpp"
#include "core/plugin/check.hpp"
#include "core/plugin/inspect.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace dsv4::cli {
namespace {

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

// Every op that some target of the manifest claims.
std::vector<std::string> claimed_ops(const plugin::Manifest& manifest) {
    std::vector<std::string> ops;
    for (const auto& target : manifest.targets)
        if (target.status != plugin::TargetStatus::wip) ops.insert(ops.end(), target.ops.begin(), target.ops.end());
    return ops;
}

plan::Options strict_reference() {
    plan::Options options;
    options["accumulate"].value = std::string("f64");
    return options;
}

// The backend's numbers against backend-cpu with double accumulators. With --json the report goes into `entry`.
int check_backend(const plugin::Candidate& candidate, const PluginsOptions& options, nlohmann::ordered_json& entry) {
    PluginHost plugins(options.paths);
    const plugin::Instance reference = plugins.make("backend-cpu", plugin::Kind::backend, strict_reference());
    const plugin::Instance checked = plugins.make(candidate.path.string(), plugin::Kind::backend);
    conformance::CheckOptions check;
    if (!options.geometries.empty()) check.geometries = options.geometries;
    const bool terminal = isatty(STDERR_FILENO) == 1;
    check.progress = [&](const std::string& what) {
        if (terminal) std::fputs(("\r" + what + "\033[K").c_str(), stderr);
    };
    auto handle = [](const plugin::Instance& i) {
        return runtime::BackendHandle{&i.table<dsv4_backend_table>(), i.self()};
    };
    if (handle(checked).devices().empty()) {
        const std::string why = "no device for " + candidate.name + " on this machine: its numbers are not verified";
        if (options.json)
            entry["backend"] = {
                {"passed", false}, {"lines", nlohmann::json::array()}, {"unverified", nlohmann::json::array({why})}};
        else
            print(why + "\n");
        return environment;
    }
    const auto report =
        conformance::check_backend(handle(checked), handle(reference), claimed_ops(*candidate.manifest), check);
    if (terminal) std::fputs("\r\033[K", stderr);
    if (options.json)
        entry["backend"] = nlohmann::ordered_json::parse(conformance::report_json(report));
    else
        print(conformance::report_text(report));
    return report.passed() ? clean : findings;
}

} // namespace

int plugins_list(const PluginsOptions& options) {
    return guarded([&] {
        const plugin::Registry registry(plugin::standard_search_path(options.paths));
        const auto found = registry.scan();
        print(options.json ? plugin::list_json(found, registry.search_path())
                           : plugin::list_text(found, registry.search_path()));
        return int(clean);
    });
}

int plugins_inspect(const PluginsOptions& options) {
    return guarded([&] {
        const plugin::Registry registry(plugin::standard_search_path(options.paths));
        const auto candidate = registry.find(options.names.front()).value();
        print(options.json ? plugin::inspect_json(candidate) : plugin::inspect_text(candidate));
        return int(candidate.refusal ? findings : clean);
    });
}

int plugins_check(const PluginsOptions& options) {
    return guarded([&] {
        int worst = clean;
        auto entries = nlohmann::ordered_json::array();
        for (const std::string& name : options.names) {
            const plugin::Registry registry(plugin::standard_search_path(options.paths));
            const auto candidate = registry.find(name).value();
            const auto report = plugin::check(candidate);
            nlohmann::ordered_json entry;
            if (options.json)
                entry = nlohmann::ordered_json::parse(plugin::check_json(report));
            else
                print(plugin::check_text(report));
            if (!report.passed())
                worst = findings;
            else if (candidate.manifest->offers(plugin::Kind::backend))
                worst = std::max(worst, check_backend(candidate, options, entry));
            entries.push_back(std::move(entry));
        }
        if (options.json) print(nlohmann::ordered_json{{"plugins", entries}}.dump(2) + "\n");
        return worst;
    });
}

} // namespace dsv4::cli
