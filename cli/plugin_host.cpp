// Makes plugin instances for commands.
#include "cli/plugin_host.hpp"

#include <charconv>

namespace dsv4::cli {
namespace {

host::HostOptions quiet() {
    host::HostOptions options;
    options.log.level = host::LogLevel::warning;
    return options;
}

} // namespace

PluginHost::PluginHost(const std::vector<std::string>& more_paths)
    : host_(quiet()), registry_(plugin::standard_search_path(more_paths)) {}

plugin::Instance PluginHost::make(const std::string& name, plugin::Kind kind, const plan::Options& options) {
    auto library = registry_.load(name).value();
    return plugin::Instance::create(std::move(library), kind, options, host_).value();
}

plan::Options parse_options(const std::vector<std::string>& texts) {
    plan::Options options;
    for (const std::string& text : texts) {
        const auto at = text.find('=');
        if (at == std::string::npos || at == 0)
            throw Failure(Code::invalid, "'" + text + "' is not of the form name=value");
        const std::string name = text.substr(0, at), value = text.substr(at + 1);
        const char* end = value.data() + value.size();
        std::int64_t integer = 0;
        double real = 0;
        plan::Option option;
        if (value == "true" || value == "false")
            option.value = value == "true";
        else if (auto r = std::from_chars(value.data(), end, integer); r.ec == std::errc{} && r.ptr == end)
            option.value = integer;
        else if (auto f = std::from_chars(value.data(), end, real); f.ec == std::errc{} && f.ptr == end)
            option.value = real;
        else
            option.value = value;
        if (!options.emplace(name, std::move(option)).second)
            throw Failure(Code::invalid, "option '" + name + "' is given twice");
    }
    return options;
}

} // namespace dsv4::cli
