// The pipeline schema: one table from which files are checked, defaults filled in, suggestions made and pages written.
#pragma once

#include "dsl/diagnostic.hpp"
#include "dsl/document.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4::dsl {

enum class ValueKind {
    table,
    table_list,     // [[require]]
    options,        // any keys; values are booleans, numbers, strings or lists of them
    plugin_options, // a table of `options` for each plugin name
    boolean,
    integer,
    number,        // integers too
    text,          // names that plugins and knowledge extend are texts, never lists here
    choice,        // a text out of `choices`
    text_list,     // one text stands for a list of one
    integer_list,  // one integer stands for a list of one
    size,          // bytes: an integer, or "20 GiB"
    count,         // an integer, or "32Ki"
    count_or_auto, // a count, or "auto"
    length,        // a count, or { p50, p95, max } of counts
    duration,      // seconds: a number, or "30 s"
    path,          // relative to the pipeline file
    path_list,
    topology,  // "tp2 x dp4 + ep"
    version,   // "0.25.0"
    predicate, // "sessions_that_fit >= workload.concurrency"
    code,      // "DSV4-W0703", a warning or a note
};
// "an integer", "a size such as \"20 GiB\""
std::string_view describe(ValueKind kind) noexcept;
// Whether a value of this kind may be written as a string.
bool takes_text(ValueKind kind) noexcept;

struct Choice {
    std::string_view name;
    std::string_view meaning;
};

struct Limits {
    double least = 0;
    double most = 0;
    bool above_least = false; // least itself is outside
    bool limited = false;
    bool hold(double value) const noexcept {
        return !limited || ((above_least ? value > least : value >= least) && value <= most);
    }
};
// "1 to 65535", "above 0 and up to 1", "1 and up"
std::string describe(const Limits& limits);

struct Field {
    std::string_view path; // "kv.block_size"; elements of a table list: "require.that"
    ValueKind kind = ValueKind::text;
    std::string_view doc; // one sentence
    Limits limits = {};   // for integers, numbers, counts and sizes; of lists: each element
    std::span<const Choice> choices = {};
    std::string_view fallback = {}; // the default as a file would write it; empty: none
    std::string_view same_as = {};  // tables: children are those of this path
    bool server_option = false;     // handed to the api plugin under its name
    bool required = false;          // within its table
    std::string_view key() const noexcept { return path.substr(path.rfind('.') + 1); }
};

// A name that another server uses for one of our settings.
struct ForeignName {
    std::string_view foreign; // "gpu_memory_utilization"
    std::string_view native;  // "kv.utilization"
    std::string_view server;  // "vLLM"
};

class Schema {
  public:
    Schema(std::span<const Field> fields, std::span<const ForeignName> foreign);
    // The schema of pipeline files, version 1.
    static const Schema& pipeline();

    std::span<const Field> fields() const noexcept { return fields_; }
    // Null where there is no such path. Paths below a `same_as` table are found too.
    const Field* find(std::string_view path) const;
    // Null where the table has no such key; the key may hold any character.
    const Field* child(std::string_view table, std::string_view key) const;
    // Fields directly below a table, in the order of the table; "" stands for the root.
    std::span<const Field* const> children(std::string_view path) const;
    const ForeignName* foreign(std::string_view key) const noexcept;

  private:
    std::span<const Field> fields_;
    std::span<const ForeignName> foreign_;
    std::map<std::string, std::vector<const Field*>, std::less<>> children_;
};

inline constexpr std::int64_t schema_version = 1;

// Checks a document against the schema and makes it regular: sizes, counts and durations become numbers, one text where
// a list is wanted becomes a list, other servers' spellings become ours, and defaults are added (origin `default_`).
// What is wrong is reported (DSV4-E0101 in expressions, E0102, E0103, E0104, E0105, E0106, E0107, E0108, W0109, E0114,
// W0116) and poisoned.
void check_schema(const Schema& schema, Node& root, const SourceMap& sources, Diagnostics& diagnostics);

// The reference page of the schema: every section with its keys, types, defaults and meanings, as Markdown.
std::string schema_markdown(const Schema& schema);

} // namespace dsv4::dsl
