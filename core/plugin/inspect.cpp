// Prints plugins as text and as JSON.
#include "core/plugin/inspect.hpp"

#include "core/plugin/options.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace dsv4::plugin {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string_view state_of(const Found& f) {
    return f.candidate.refusal ? "refused" : f.shadowed ? "shadowed" : "loadable";
}

std::string kinds_of(const Manifest& m) {
    std::string text;
    for (const auto kind : m.kinds) text += fmt::format("{}{}", text.empty() ? "" : ",", to_string(kind));
    return text;
}

std::string abi_of(const Manifest& m) { return fmt::format("{}.{}", m.abi_major, m.abi_minor); }

// "int, 1 to 64, default 8"
std::string describe(const OptionSpec& o) {
    std::string text(to_string(o.type));
    if (o.type == OptionType::enumeration) text += fmt::format(" ({})", fmt::join(o.values, ", "));
    if (o.min && o.max)
        text += fmt::format(", {} to {}", print(*o.min), print(*o.max));
    else if (o.min)
        text += fmt::format(", {} or more", print(*o.min));
    else if (o.max)
        text += fmt::format(", {} or less", print(*o.max));
    text += o.default_value ? fmt::format(", default {}", print(*o.default_value)) : ", must be set";
    return text;
}

Json json_of(const OptionValue& value) {
    return std::visit([](const auto& v) { return Json(v); }, value);
}

Json error_json(const Error& e) { return {{"code", int(e.code)}, {"message", e.message}, {"fix", e.fix}}; }

Json identity_json(const Candidate& c) {
    Json j{{"name", c.name}, {"path", c.path.string()}};
    if (const auto& m = c.manifest) {
        Json kinds = Json::array();
        for (const auto kind : m->kinds) kinds.push_back(to_string(kind));
        j["version"] = m->version;
        j["kinds"] = kinds;
        j["status"] = to_string(m->status);
        j["security"] = to_string(m->security);
        j["abi"] = abi_of(*m);
        j["licence"] = m->licence;
    }
    if (c.refusal) j["refused"] = error_json(*c.refusal);
    return j;
}

using Row = std::vector<std::string>;

std::string table(const std::vector<Row>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i)
            line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], widths[i]) : row[i];
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

// Words after two spaces, broken before column `width`; later lines are indented as far as the first word.
std::string wrapped(const std::vector<std::string>& words, std::size_t indent, std::size_t width) {
    std::string text(2, ' ');
    std::size_t column = indent + 2;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i && column + 1 + words[i].size() > width) {
            text += "\n" + std::string(indent + 2, ' ');
            column = indent + 2;
        } else if (i) {
            text += ' ';
            ++column;
        }
        text += words[i];
        column += words[i].size();
    }
    return text;
}

void append_refusal(std::string& text, const Error& e, std::string_view indent) {
    text += fmt::format("{}refused: {}\n", indent, e.message);
    if (!e.fix.empty()) text += fmt::format("{}fix: {}\n", indent, e.fix);
}

} // namespace

std::string list_text(const std::vector<Found>& found, const SearchPath& search) {
    std::string text;
    if (found.empty()) {
        text = "no plugins in\n";
        for (const auto& d : search.directories) text += fmt::format("  {}\n", d.string());
    } else {
        std::vector<Row> rows{{"NAME", "VERSION", "KINDS", "STATE", "STATUS", "SECURITY", "ABI", "PATH"}};
        for (const auto& f : found) {
            const auto& c = f.candidate;
            const auto& m = c.manifest;
            rows.push_back({c.name, m ? m->version : "-", m ? kinds_of(*m) : "-", std::string(state_of(f)),
                            m ? std::string(to_string(m->status)) : "-", m ? std::string(to_string(m->security)) : "-",
                            m ? abi_of(*m) : "-", c.path.string()});
        }
        text = table(rows);
    }
    for (const auto& f : found) {
        if (!f.candidate.refusal) continue;
        text += fmt::format("\n{}\n", f.candidate.name);
        append_refusal(text, *f.candidate.refusal, "  ");
    }
    for (const auto& sentence : search.ignored) text += fmt::format("\nnote: {}\n", sentence);
    return text;
}

std::string list_json(const std::vector<Found>& found, const SearchPath& search) {
    Json plugins = Json::array();
    for (const auto& f : found) {
        auto j = identity_json(f.candidate);
        j["state"] = state_of(f);
        plugins.push_back(std::move(j));
    }
    Json directories = Json::array();
    for (const auto& d : search.directories) directories.push_back(d.string());
    return dump({{"plugins", plugins}, {"directories", directories}, {"ignored", search.ignored}});
}

std::string inspect_text(const Candidate& c) {
    std::string text;
    if (c.manifest) {
        const auto& m = *c.manifest;
        text += fmt::format("{} {}\n{}\n\n", m.name, m.version, m.summary);
        text += table({{"kinds", kinds_of(m)},
                       {"status", std::string(to_string(m.status))},
                       {"security", std::string(to_string(m.security))},
                       {"licence", m.licence},
                       {"ABI", abi_of(m)},
                       {"threads", std::to_string(m.threads)},
                       {"path", c.path.string()},
                       {"manifest", "sha256:" + c.manifest_sha256}});
    } else {
        text += fmt::format("{}\n\n{}", c.name, table({{"path", c.path.string()}}));
    }
    if (c.refusal) {
        text += "\n";
        append_refusal(text, *c.refusal, "");
    }
    if (!c.manifest) return text;
    const auto& m = *c.manifest;
    if (!m.options.empty()) {
        text += fmt::format("\noptions, set in [plugins.options.{}]\n", m.name);
        std::vector<Row> rows;
        for (const auto& o : m.options) rows.push_back({"  " + o.name, describe(o)}), rows.push_back({"", o.help});
        text += table(rows);
    }
    if (!m.provides.empty()) {
        text += "\nprovides\n";
        std::vector<Row> rows;
        for (const auto& p : m.provides) rows.push_back({"  " + p.what, p.name});
        text += table(rows);
    }
    for (const auto& t : m.targets) {
        text += fmt::format("\ntarget {} ({})\n", t.arch, to_string(t.status));
        const std::array<std::pair<std::string_view, const std::vector<std::string>*>, 3> lists{
            {{"capabilities", &t.capabilities}, {"ops", &t.ops}, {"types", &t.types}}};
        for (const auto& [name, list] : lists)
            if (!list->empty()) text += fmt::format("  {:<12}{}\n", name, wrapped(*list, 14, 100));
    }
    return text;
}

std::string inspect_json(const Candidate& c) {
    auto j = identity_json(c);
    if (!c.manifest) return dump(j);
    const auto& m = *c.manifest;
    j["summary"] = m.summary;
    j["threads"] = m.threads;
    j["manifest_sha256"] = c.manifest_sha256;
    j["options"] = Json::array();
    for (const auto& o : m.options) {
        Json option{{"name", o.name}, {"type", to_string(o.type)}, {"help", o.help}};
        if (o.default_value) option["default"] = json_of(*o.default_value);
        if (!o.values.empty()) option["values"] = o.values;
        if (o.min) option["min"] = json_of(*o.min);
        if (o.max) option["max"] = json_of(*o.max);
        j["options"].push_back(std::move(option));
    }
    j["provides"] = Json::array();
    for (const auto& p : m.provides) j["provides"].push_back({{"what", p.what}, {"name", p.name}});
    j["targets"] = Json::array();
    for (const auto& t : m.targets)
        j["targets"].push_back({{"arch", t.arch},
                                {"status", to_string(t.status)},
                                {"capabilities", t.capabilities},
                                {"ops", t.ops},
                                {"types", t.types}});
    return dump(j);
}

std::string check_text(const CheckReport& report) {
    std::string text = fmt::format("{} ({})\n", report.candidate.name, report.candidate.path.string());
    std::vector<Row> rows;
    for (const auto& s : report.steps) {
        rows.push_back({"  " + std::string(to_string(s.result)), s.name, s.detail});
        if (!s.fix.empty()) rows.push_back({"", "", "fix: " + s.fix});
    }
    return text + table(rows);
}

std::string check_json(const CheckReport& report) {
    Json steps = Json::array();
    for (const auto& s : report.steps)
        steps.push_back({{"name", s.name}, {"result", to_string(s.result)}, {"detail", s.detail}, {"fix", s.fix}});
    return dump({{"name", report.candidate.name},
                 {"path", report.candidate.path.string()},
                 {"passed", report.passed()},
                 {"steps", steps}});
}

} // namespace dsv4::plugin
