// Looks at plugins for the command line.
#include "core/plugin/commands.hpp"

#include "core/plugin/inspect.hpp"

#include <charconv>

namespace dsv4::plugin {
namespace {

Registry registry_for(const CommandRequest& request) { return Registry(standard_search_path(request.paths)); }

CommandOutput environment_error(const Error& e) {
    CommandOutput output;
    output.exit_code = 3;
    output.err = "error: " + e.message + "\n" + (e.fix.empty() ? "" : "fix: " + e.fix + "\n");
    return output;
}

template <class T> bool parse_whole(const std::string& text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
}

} // namespace

CommandOutput list_command(const CommandRequest& request) {
    const auto registry = registry_for(request);
    const auto found = registry.scan();
    CommandOutput output;
    output.out = request.json ? list_json(found, registry.search_path()) : list_text(found, registry.search_path());
    for (const auto& f : found)
        if (f.candidate.refusal) output.exit_code = 1;
    return output;
}

CommandOutput inspect_command(const std::string& name, const CommandRequest& request) {
    const auto candidate = registry_for(request).find(name);
    if (!candidate) return environment_error(candidate.error());
    CommandOutput output;
    output.out = request.json ? inspect_json(*candidate) : inspect_text(*candidate);
    output.exit_code = candidate->refusal ? 1 : 0;
    return output;
}

CommandOutput check_command(const std::string& name, const CommandRequest& request, const plan::Options& options) {
    const auto candidate = registry_for(request).find(name);
    if (!candidate) return environment_error(candidate.error());
    CheckOptions check_options;
    check_options.options = options;
    const auto report = check(*candidate, check_options);
    CommandOutput output;
    output.out = request.json ? check_json(report) : check_text(report);
    output.exit_code = report.passed() ? 0 : 1;
    return output;
}

plan::Options parse_options(const std::vector<std::string>& pairs) {
    plan::Options options;
    for (const auto& pair : pairs) {
        const auto equals = pair.find('=');
        if (equals == pair.npos || equals == 0)
            throw Failure(Code::invalid, "the plugin option \"" + pair + "\" is not written as name=value",
                          "write --option name=value");
        const auto text = pair.substr(equals + 1);
        plan::Option option;
        std::int64_t whole = 0;
        double real = 0;
        if (text == "true" || text == "false")
            option.value = text == "true";
        else if (parse_whole(text, whole))
            option.value = whole;
        else if (parse_whole(text, real))
            option.value = real;
        else
            option.value = text;
        if (!options.emplace(pair.substr(0, equals), std::move(option)).second)
            throw Failure(Code::invalid, "the plugin option \"" + pair.substr(0, equals) + "\" is given twice");
    }
    return options;
}

} // namespace dsv4::plugin
