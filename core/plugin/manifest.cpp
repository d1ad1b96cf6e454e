// Reads a manifest with toml++ and reports every mistake at once.
#include "core/plugin/manifest.hpp"

#include "core/plugin/elf_manifest.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <set>
#include <utility>

namespace dsv4::plugin {
namespace {

template <class E> struct Named {
    E value;
    std::string_view name;
};
template <class E, std::size_t N> std::string_view name_of(const Named<E> (&table)[N], E value) {
    for (const auto& e : table)
        if (e.value == value) return e.name;
    return "?";
}

constexpr Named<Maturity> maturities[] = {
    {Maturity::wip, "wip"}, {Maturity::beta, "beta"}, {Maturity::stable, "stable"}};
constexpr Named<Posture> postures[] = {{Posture::unknown, "unknown"},
                                       {Posture::trusted_input, "trusted-input"},
                                       {Posture::untrusted_input, "untrusted-input"}};
constexpr Named<OptionType> option_types[] = {{OptionType::string, "string"}, {OptionType::integer, "int"},
                                              {OptionType::real, "float"},    {OptionType::boolean, "bool"},
                                              {OptionType::size, "size"},     {OptionType::enumeration, "enum"}};
constexpr Named<TargetStatus> target_statuses[] = {
    {TargetStatus::verified, "verified"}, {TargetStatus::compiled, "compiled"}, {TargetStatus::wip, "wip"}};
constexpr std::string_view provided_things[] = {"reasoning_parser", "tool_parser", "tokenizer_mode", "spec_method",
                                                "connector",        "moe_backend", "platform"};

constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "<kind>-<rest>"
bool is_plugin_name(std::string_view s) {
    const auto dash = s.find('-');
    return dash != s.npos && kind_of(s.substr(0, dash)) && dash + 1 < s.size() && s[dash + 1] != '-' &&
           std::all_of(s.begin(), s.end(), [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}
bool is_option_name(std::string_view s) {
    return !s.empty() && is_lower(s[0]) &&
           std::all_of(s.begin(), s.end(), [](char c) { return is_lower(c) || is_digit(c) || c == '_'; });
}

// `count` numbers with dots between them.
std::optional<std::vector<std::uint32_t>> dotted(std::string_view s, std::size_t count) {
    std::vector<std::uint32_t> numbers;
    while (true) {
        std::uint32_t n = 0;
        const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
        if (error != std::errc{}) return std::nullopt;
        numbers.push_back(n);
        s.remove_prefix(std::size_t(end - s.data()));
        if (s.empty()) break;
        if (s[0] != '.') return std::nullopt;
        s.remove_prefix(1);
    }
    if (numbers.size() != count) return std::nullopt;
    return numbers;
}

// "name/version"
bool is_op(std::string_view s) {
    const auto slash = s.find('/');
    return slash != s.npos && is_option_name(s.substr(0, slash)) && dotted(s.substr(slash + 1), 1);
}

class Reader {
  public:
    ManifestReading read(std::string_view text) {
        toml::table root;
        try {
            root = toml::parse(text, std::string_view("manifest"));
        } catch (const toml::parse_error& e) {
            problem(std::string(e.description()), e.source());
            return finish();
        }
        if (const auto* schema = find(root, "manifest", root.source(), true)) {
            if (schema->value_exact<std::int64_t>() != 1)
                problem("`manifest` is the version of the schema; this program knows version 1", schema->source());
        }
        keys(root, "a manifest",
             {"manifest", "name", "version", "summary", "licence", "status", "security", "kinds", "abi", "threads",
              "option", "provides", "target"});
        identity(root);
        for_each(root, "option", [&](const toml::table& t) { option(t); });
        for_each(root, "provides", [&](const toml::table& t) { provides(t); });
        for_each(root, "target", [&](const toml::table& t) { target(t); });
        return finish();
    }

  private:
    void problem(std::string message, const toml::source_region& where) {
        problems_.push_back({std::move(message), where.begin.line, where.begin.column});
    }

    ManifestReading finish() {
        ManifestReading reading;
        std::stable_sort(problems_.begin(), problems_.end(), [](const auto& a, const auto& b) {
            return std::pair(a.line, a.column) < std::pair(b.line, b.column);
        });
        reading.problems = std::move(problems_);
        if (reading.problems.empty()) reading.manifest = std::move(manifest_);
        return reading;
    }

    void keys(const toml::table& t, std::string_view owner, std::initializer_list<std::string_view> known) {
        for (auto&& [key, value] : t)
            if (std::find(known.begin(), known.end(), key.str()) == known.end())
                problem(fmt::format("`{}` is not a key of {}", key.str(), owner), key.source());
    }

    const toml::node* find(const toml::table& t, std::string_view key, const toml::source_region& where,
                           bool required) {
        const auto* node = t.get(key);
        if (!node && required) problem(fmt::format("`{}` is missing", key), where);
        return node;
    }

    std::string text(const toml::table& t, std::string_view key, bool required) {
        const auto* node = find(t, key, t.source(), required);
        if (!node) return {};
        if (auto s = node->value_exact<std::string>()) {
            if (required && s->empty()) problem(fmt::format("`{}` is empty", key), node->source());
            if (s->find_first_of(std::string_view("\0\n\r\x1b", 4)) != s->npos)
                problem(fmt::format("`{}` has control characters", key), node->source());
            return *s;
        }
        problem(fmt::format("`{}` must be a string", key), node->source());
        return {};
    }

    template <class E, std::size_t N> E choice(const toml::table& t, std::string_view key, const Named<E> (&table)[N]) {
        const auto before = problems_.size();
        const auto s = text(t, key, true);
        for (const auto& e : table)
            if (e.name == s) return e.value;
        if (problems_.size() == before) {
            std::string all;
            for (const auto& e : table) all += fmt::format("{}{}", all.empty() ? "" : ", ", e.name);
            problem(fmt::format("`{}` is \"{}\"; it must be one of {}", key, s, all), t.get(key)->source());
        }
        return table[0].value;
    }

    std::vector<std::pair<std::string, toml::source_region>> texts(const toml::table& t, std::string_view key,
                                                                   bool required) {
        std::vector<std::pair<std::string, toml::source_region>> list;
        const auto* node = find(t, key, t.source(), required);
        if (!node) return list;
        const auto* array = node->as_array();
        if (!array) {
            problem(fmt::format("`{}` must be a list of strings", key), node->source());
            return list;
        }
        if (required && array->empty()) problem(fmt::format("`{}` is empty", key), node->source());
        std::set<std::string> seen;
        for (const auto& element : *array) {
            auto s = element.value_exact<std::string>();
            if (!s || s->empty())
                problem(fmt::format("`{}` must be a list of non-empty strings", key), element.source());
            else if (!seen.insert(*s).second)
                problem(fmt::format("`{}` repeats \"{}\"", key, *s), element.source());
            else
                list.emplace_back(*s, element.source());
        }
        return list;
    }

    template <class F> void for_each(const toml::table& t, std::string_view key, F&& f) {
        const auto* node = t.get(key);
        if (!node) return;
        const auto* array = node->as_array();
        if (!array) return problem(fmt::format("`{0}` must be written as [[{0}]]", key), node->source());
        for (const auto& element : *array) {
            if (const auto* table = element.as_table())
                f(*table);
            else
                problem(fmt::format("`{0}` must be written as [[{0}]]", key), element.source());
        }
    }

    void identity(const toml::table& t) {
        auto& m = manifest_;
        m.name = text(t, "name", true);
        if (!m.name.empty() && !is_plugin_name(m.name))
            problem(fmt::format("`name` is \"{}\"; it must be <kind>-<rest> in lower case, such as \"parser-echo\"",
                                m.name),
                    t.get("name")->source());
        m.version = text(t, "version", true);
        if (!m.version.empty() && !dotted(m.version, 3))
            problem(fmt::format("`version` is \"{}\"; it must be MAJOR.MINOR.PATCH", m.version),
                    t.get("version")->source());
        m.summary = text(t, "summary", true);
        m.licence = text(t, "licence", true);
        m.status = choice(t, "status", maturities);
        m.security = choice(t, "security", postures);
        for (const auto& [name, where] : texts(t, "kinds", true)) {
            if (const auto kind = kind_of(name))
                m.kinds.push_back(*kind);
            else
                problem(
                    fmt::format("`kinds` has \"{}\"; kinds are backend, spec, parser, transport, api, engine", name),
                    where);
        }
        if (is_plugin_name(m.name) && !m.kinds.empty() &&
            !m.offers(*kind_of(std::string_view(m.name).substr(0, m.name.find('-')))))
            problem(fmt::format("`kinds` lacks the kind that the name \"{}\" begins with", m.name),
                    t.get("kinds")->source());
        if (const auto abi = text(t, "abi", true); !abi.empty()) {
            const auto numbers = dotted(abi, 2);
            if (!numbers || (*numbers)[0] > 65535 || (*numbers)[1] > 65535)
                problem(fmt::format("`abi` is \"{}\"; it must be MAJOR.MINOR, such as \"{}.{}\"", abi, DSV4_ABI_MAJOR,
                                    DSV4_ABI_MINOR),
                        t.get("abi")->source());
            else
                m.abi_major = std::uint16_t((*numbers)[0]), m.abi_minor = std::uint16_t((*numbers)[1]);
        }
        if (const auto* node = t.get("threads")) {
            const auto n = node->value_exact<std::int64_t>();
            if (n && *n >= 0 && *n <= 4096)
                m.threads = *n;
            else
                problem("`threads` must be a whole number from 0 to 4096", node->source());
        }
    }

    // A value of the option's type; `key` names it in the problem.
    std::optional<OptionValue> typed(const toml::table& t, std::string_view key, const OptionSpec& o) {
        const auto* node = t.get(key);
        if (!node) return std::nullopt;
        switch (o.type) {
        case OptionType::string:
            if (auto s = node->value_exact<std::string>()) return *s;
            break;
        case OptionType::enumeration:
            if (auto s = node->value_exact<std::string>()) {
                if (std::find(o.values.begin(), o.values.end(), *s) == o.values.end())
                    problem(fmt::format("`{}` of option \"{}\" is not among its `values`", key, o.name),
                            node->source());
                return *s;
            }
            break;
        case OptionType::integer:
            if (auto n = node->value_exact<std::int64_t>()) return *n;
            break;
        case OptionType::size:
            if (auto n = node->value_exact<std::int64_t>(); n && *n >= 0) return *n;
            if (auto s = node->value_exact<std::string>())
                if (auto n = parse_size(*s)) return *n;
            break;
        case OptionType::real:
            if (auto n = node->value_exact<std::int64_t>()) return double(*n);
            if (auto n = node->value_exact<double>(); n && std::isfinite(*n)) return *n;
            break;
        case OptionType::boolean:
            if (auto b = node->value_exact<bool>()) return *b;
            break;
        }
        problem(fmt::format("`{}` of option \"{}\" must be a value of its type {}", key, o.name, to_string(o.type)),
                node->source());
        return std::nullopt;
    }

    void option(const toml::table& t) {
        keys(t, "[[option]]", {"name", "type", "default", "help", "values", "min", "max"});
        OptionSpec o;
        const auto before = problems_.size();
        o.name = text(t, "name", true);
        if (!o.name.empty() && !is_option_name(o.name))
            problem(fmt::format("option \"{}\" must be named in lower_snake", o.name), t.get("name")->source());
        if (manifest_.option(o.name))
            problem(fmt::format("option \"{}\" is declared twice", o.name), t.get("name")->source());
        o.type = choice(t, "type", option_types);
        o.help = text(t, "help", true);
        for (auto& [value, where] : texts(t, "values", false)) o.values.push_back(value);
        if (problems_.size() != before) return;
        const bool ordered = o.type == OptionType::integer || o.type == OptionType::real || o.type == OptionType::size;
        if (o.type == OptionType::enumeration && o.values.empty())
            problem(fmt::format("option \"{}\" is an enum and has no `values`", o.name), t.source());
        if (o.type != OptionType::enumeration && t.get("values"))
            problem(fmt::format("option \"{}\" has `values` and is no enum", o.name), t.get("values")->source());
        for (std::string_view key : {"min", "max"})
            if (!ordered && t.get(key))
                problem(fmt::format("option \"{}\" has `{}`, which only int, float and size may have", o.name, key),
                        t.get(key)->source());
        if (ordered) {
            o.min = typed(t, "min", o);
            o.max = typed(t, "max", o);
            if (o.min && o.max && *o.min > *o.max)
                problem(fmt::format("`min` of option \"{}\" is above its `max`", o.name), t.get("min")->source());
        }
        o.default_value = typed(t, "default", o);
        if (ordered && o.default_value &&
            ((o.min && *o.default_value < *o.min) || (o.max && *o.default_value > *o.max)))
            problem(fmt::format("`default` of option \"{}\" is outside `min` to `max`", o.name),
                    t.get("default")->source());
        manifest_.options.push_back(std::move(o));
    }

    void provides(const toml::table& t) {
        keys(t, "[[provides]]", {"what", "name"});
        Provides p{text(t, "what", true), text(t, "name", true)};
        if (!p.what.empty() &&
            std::find(std::begin(provided_things), std::end(provided_things), p.what) == std::end(provided_things))
            problem(fmt::format("`what` is \"{}\"; it must be one of {}", p.what, fmt::join(provided_things, ", ")),
                    t.get("what")->source());
        for (const auto& other : manifest_.provides)
            if (other.what == p.what && other.name == p.name)
                problem(fmt::format("{} \"{}\" is provided twice", p.what, p.name), t.source());
        manifest_.provides.push_back(std::move(p));
    }

    void target(const toml::table& t) {
        keys(t, "[[target]]", {"arch", "status", "capabilities", "ops", "types"});
        Target target;
        target.arch = text(t, "arch", true);
        for (const auto& other : manifest_.targets)
            if (!target.arch.empty() && other.arch == target.arch)
                problem(fmt::format("target \"{}\" is described twice", target.arch), t.get("arch")->source());
        target.status = choice(t, "status", target_statuses);
        for (auto& [s, where] : texts(t, "capabilities", false)) target.capabilities.push_back(s);
        for (auto& [s, where] : texts(t, "ops", false)) {
            if (!is_op(s)) problem(fmt::format("op \"{}\" must be written as name/version", s), where);
            target.ops.push_back(s);
        }
        for (auto& [s, where] : texts(t, "types", false)) target.types.push_back(s);
        manifest_.targets.push_back(std::move(target));
    }

    Manifest manifest_;
    std::vector<ManifestProblem> problems_;
};

} // namespace

std::string_view to_string(Maturity m) noexcept { return name_of(maturities, m); }
std::string_view to_string(Posture p) noexcept { return name_of(postures, p); }
std::string_view to_string(OptionType t) noexcept { return name_of(option_types, t); }
std::string_view to_string(TargetStatus s) noexcept { return name_of(target_statuses, s); }

bool Manifest::offers(Kind kind) const noexcept { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }

const OptionSpec* Manifest::option(std::string_view option_name) const noexcept {
    for (const auto& o : options)
        if (o.name == option_name) return &o;
    return nullptr;
}

ManifestReading read_manifest(std::string_view toml) {
    if (toml.size() > max_manifest_bytes)
        return {std::nullopt,
                {{fmt::format("the manifest has {} bytes, more than the limit of {}", toml.size(), max_manifest_bytes),
                  0, 0}}};
    return Reader().read(toml);
}

Result<Manifest> parse_manifest(std::string_view toml, std::string_view source) {
    auto reading = read_manifest(toml);
    if (reading.manifest) return std::move(*reading.manifest);
    std::string list;
    for (const auto& p : reading.problems) {
        list += list.empty() ? "" : "; ";
        if (p.line) list += fmt::format("line {}: ", p.line);
        list += p.message;
    }
    return Error{Code::invalid, fmt::format("the manifest of {} is wrong: {}", source, list),
                 "correct the manifest; docs/plugins.md describes it"};
}

std::optional<std::int64_t> parse_size(std::string_view text) {
    std::uint64_t digits = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), digits);
    if (error != std::errc{}) return std::nullopt;
    auto unit = text.substr(std::size_t(end - text.data()));
    while (!unit.empty() && unit[0] == ' ') unit.remove_prefix(1);
    if (!unit.empty() && unit.back() == 'B') unit.remove_suffix(1);
    static constexpr Named<std::uint64_t> units[] = {{1, ""},
                                                     {1'000, "K"},
                                                     {1'000'000, "M"},
                                                     {1'000'000'000, "G"},
                                                     {1'000'000'000'000, "T"},
                                                     {std::uint64_t{1} << 10, "Ki"},
                                                     {std::uint64_t{1} << 20, "Mi"},
                                                     {std::uint64_t{1} << 30, "Gi"},
                                                     {std::uint64_t{1} << 40, "Ti"}};
    for (const auto& u : units) {
        if (u.name != unit) continue;
        if (digits > std::uint64_t(std::numeric_limits<std::int64_t>::max()) / u.value) return std::nullopt;
        return std::int64_t(digits * u.value);
    }
    return std::nullopt;
}

} // namespace dsv4::plugin
