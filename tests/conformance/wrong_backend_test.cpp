// Each mistake of backend-wrong is reported on the line of what is wrong, and on no line of what is right.
#include "core/conformance/check.hpp"
#include "core/host/host.hpp"
#include "core/plugin/instance.hpp"
#include "tests/support/catch.hpp"

#include <set>

using namespace dsv4;
using namespace dsv4::conformance;

namespace {

using Failed = std::set<std::string>; // "serve attend/1"

struct Backends {
    host::Host host{[] {
        host::HostOptions o;
        o.log.level = host::LogLevel::warning;
        return o;
    }()};
    const std::string cpu_path = DSV4_PLUGIN_DIR "/backend-cpu.so";
    plugin::Instance reference = make(cpu_path, {{"accumulate", "f64"}}, {});

    plugin::Instance make(const std::string& path, const std::map<std::string, std::string>& texts,
                          std::optional<std::int64_t> slot) {
        plan::Options options;
        for (const auto& [name, value] : texts) options[name].value = value;
        if (slot) options["slot"].value = *slot;
        auto library = plugin::Library::load(std::filesystem::path(path)).value();
        return plugin::Instance::create(std::move(library), plugin::Kind::backend, options, host).value();
    }

    Report check(std::map<std::string, std::string> mistake, std::optional<std::int64_t> slot = {}) {
        mistake["inner"] = cpu_path;
        const auto wrong = make(DSV4_WRONG_PLUGIN_DIR "/backend-wrong.so", mistake, slot);
        auto handle = [](const plugin::Instance& i) {
            return runtime::BackendHandle{&i.table<dsv4_backend_table>(), i.self()};
        };
        CheckOptions options;
        options.geometries = {"tiny"};
        options.row_counts = {0, 1, 3, 17, 70};
        return check_backend(handle(wrong), handle(reference), {}, options);
    }

    static Failed failed(const Report& report) {
        Failed lines;
        for (const Line& l : report.lines) {
            if (l.outcome == Outcome::failed) lines.insert(l.precision + " " + l.op);
            if (l.outcome == Outcome::failed) UNSCOPED_INFO(l.precision << " " << l.op << ": " << l.detail);
        }
        return lines;
    }
};

// Both precisions of each line.
Failed both(const std::vector<std::string>& lines) {
    Failed all;
    for (const auto& line : lines) all.insert({"score " + line, "serve " + line});
    return all;
}

bool contains(const Failed& all, const Failed& some) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

} // namespace

TEST_CASE_METHOD(Backends, "the wrapper without a mistake passes") {
    const Report report = check({});
    CHECK(failed(report).empty());
    CHECK(report.passed());
    CHECK(report.lines.size() > 50);
}

TEST_CASE_METHOD(Backends, "noise in the outputs of one op fails the line of that op alone") {
    const std::string op = GENERATE("linear", "attend", "head_norm_rope", "experts", "route", "index_select", "hc_pre",
                                    "hc_post", "kv_rows", "group_linear", "norm", "embed", "head", "combine");
    INFO(op);
    // Layers hand out what these two write; cuts and transfers are compared with themselves.
    Failed expected = both({op + "/1"});
    const Failed got = failed(check({{"mistake", "noise"}, {"op", op}}));
    CHECK(contains(got, expected));
    if (op == "index_select" || op == "hc_post") expected.merge(both({"layer"}));
    CHECK(contains(expected, got));
}

TEST_CASE_METHOD(Backends, "a mistake in one precision fails in that one") {
    const std::string precision = GENERATE("score", "serve");
    for (const std::string op : {"linear", "experts", "attend"}) {
        INFO(op);
        CHECK(failed(check({{"mistake", "noise"}, {"op", op}, {"precision", precision}})) ==
              Failed{precision + " " + op + "/1"});
    }
}

TEST_CASE_METHOD(Backends, "a mistake at an edge is found among many right rows") {
    const auto [rows, op] = GENERATE(table<std::string, std::string>({
        {"position_127", "attend"},
        {"window_of_4", "attend"},
        {"decode", "attend"},
        {"last_of_batch", "attend"},
        {"last_of_batch", "linear"},
        {"last_of_batch", "index_query"},
        {"decode", "experts"},
        {"window_of_4", "index_select"},
    }));
    INFO(rows << ", " << op);
    CHECK(contains(failed(check({{"mistake", "gross"}, {"op", op}, {"rows", rows}})), both({op + "/1"})));
}

TEST_CASE_METHOD(Backends, "a result that depends on the size of the batch fails the cut of a Program") {
    const Failed got = failed(check({{"mistake", "ulp"}, {"op", "head"}, {"rows", "of_large_batches"}}));
    CHECK(contains(got, both({"program, cut"})));
    CHECK(!contains(got, {"serve head/1"})); // one bit is within the op's tolerance
}

TEST_CASE_METHOD(Backends, "outputs that are broken, missed or overrun") {
    const std::string mistake = GENERATE("nan", "unwritten", "outside", "refuses_empty");
    for (const std::string op : {"attend", "linear"}) {
        INFO(mistake << ", " << op);
        if (mistake == "refuses_empty" && op == "attend") continue; // its cases are sequences
        CHECK(failed(check({{"mistake", mistake}, {"op", op}})) == both({op + "/1"}));
    }
}

TEST_CASE_METHOD(Backends, "a sampler that is wrong for one setting") {
    // Slots of the case hold one setting each.
    const std::int64_t slot = GENERATE(0, 2, 3, 5, 9);
    INFO("slot " << slot);
    CHECK(failed(check({{"mistake", "shifted_token"}, {"op", "sample"}}, slot)).count("serve sample/1") == 1);
}

TEST_CASE_METHOD(Backends, "masks that come late must be heeded") {
    CHECK(failed(check({{"mistake", "ignores_masks"}})) == both({"sample/1"}));
}

TEST_CASE_METHOD(Backends, "a verify that accepts one draft too many") {
    CHECK(failed(check({{"mistake", "accepts_more"}, {"op", "verify"}})) == both({"verify/1"}));
}

TEST_CASE_METHOD(Backends, "rows that must not commit") {
    CHECK(contains(failed(check({{"mistake", "commits_drafts"}})), both({"program, draft rows"})));
    CHECK(contains(failed(check({{"mistake", "commits_verifies"}})), both({"program, rejected rows"})));
}

TEST_CASE_METHOD(Backends, "transfers that lose a page or look at no header") {
    const std::string mistake = GENERATE("loses_page", "accepts_any_blob");
    INFO(mistake);
    CHECK(failed(check({{"mistake", mistake}})) == both({"state, export and import"}));
}

TEST_CASE_METHOD(Backends, "a claimed op that no case runs fails the check") {
    const runtime::BackendHandle handle{&reference.table<dsv4_backend_table>(), reference.self()};
    CheckOptions options;
    options.geometries = {"tiny"};
    options.row_counts = {1};
    CHECK(check_backend(handle, handle, {"attend/1", "mask/1", "tap/1"}, options).passed());
    const Report report = check_backend(handle, handle, {"teleport/1"}, options);
    CHECK(!report.passed());
    CHECK(report.lines.back().op == "teleport/1");
}
