// A plugin's manifest: what it offers, which options it takes, what it can do on which architecture. Pure data, read
// from TOML without running the plugin; docs/plugins.md describes the schema.
#pragma once

#include "core/plugin/kind.hpp"
#include "dsv4/sdk/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dsv4::plugin {

enum class Maturity { wip = DSV4_STATUS_WIP, beta = DSV4_STATUS_BETA, stable = DSV4_STATUS_STABLE };
std::string_view to_string(Maturity m) noexcept;

enum class Posture {
    unknown = DSV4_POSTURE_UNKNOWN,
    trusted_input = DSV4_POSTURE_TRUSTED_INPUT,
    untrusted_input = DSV4_POSTURE_UNTRUSTED_INPUT
};
std::string_view to_string(Posture p) noexcept;

enum class OptionType { string, integer, real, boolean, size, enumeration };
std::string_view to_string(OptionType t) noexcept; // as the manifest spells it: "string", "int", ...

enum class TargetStatus { verified, compiled, wip };
std::string_view to_string(TargetStatus s) noexcept;

// string, enumeration: text; integer: int64; size: int64 bytes; real: double; boolean: bool.
using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

struct OptionSpec {
    std::string name;
    OptionType type = OptionType::string;
    std::optional<OptionValue> default_value; // none: must be set
    std::string help;
    std::vector<std::string> values;     // enumeration
    std::optional<OptionValue> min, max; // integer, size: int64; real: double; inclusive
};

struct Provides {
    std::string what; // "reasoning_parser", ...
    std::string name;
};

struct Target {
    std::string arch;
    TargetStatus status = TargetStatus::wip;
    std::vector<std::string> capabilities;
    std::vector<std::string> ops; // "name/version"
    std::vector<std::string> types;
};

struct Manifest {
    std::string name;
    std::string version;
    std::string summary;
    std::string licence;
    Maturity status = Maturity::wip;
    Posture security = Posture::unknown;
    std::vector<Kind> kinds;
    std::uint16_t abi_major = 0, abi_minor = 0;
    std::int64_t threads = 0;
    std::vector<OptionSpec> options;
    std::vector<Provides> provides;
    std::vector<Target> targets;

    bool offers(Kind kind) const noexcept;
    const OptionSpec* option(std::string_view option_name) const noexcept;
};

struct ManifestProblem {
    std::string message;      // stands alone but for the file's name
    std::uint32_t line = 0;   // from 1; 0: the file as a whole
    std::uint32_t column = 0; // from 1, in code points
};

// What reading found. With problems there is no manifest; all of them are listed, by place.
struct ManifestReading {
    std::optional<Manifest> manifest;
    std::vector<ManifestProblem> problems;
};
ManifestReading read_manifest(std::string_view toml);

// The same as one Result: invalid, the message listing every problem. `source` names the text.
Result<Manifest> parse_manifest(std::string_view toml, std::string_view source);

// "20 GiB", "384Ki", "1 MB" or plain digits to bytes; nothing for other texts, negative numbers and overflow.
std::optional<std::int64_t> parse_size(std::string_view text);

} // namespace dsv4::plugin
