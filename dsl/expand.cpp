// Expansion of topology.shape, and derived topology values.
#include "dsl/expand.hpp"

#include "dsl/expression.hpp"

#include <fmt/format.h>

namespace dsv4::dsl {
namespace {

Node integer_node(std::int64_t value, const Node& like) {
    Node node;
    node.kind = Node::Kind::integer;
    node.integer = value;
    node.range = like.range;
    node.origin = like.origin;
    return node;
}

Node boolean_node(bool value, const Node& like) {
    Node node = integer_node(0, like);
    node.kind = Node::Kind::boolean;
    node.boolean = value;
    return node;
}

Node text_node(std::string value, const Node& like) {
    Node node = integer_node(0, like);
    node.kind = Node::Kind::text;
    node.text = std::move(value);
    return node;
}

class Expander {
  public:
    Expander(Node& root, const SourceMap& sources, Diagnostics& diagnostics)
        : root_(root), sources_(sources), diagnostics_(diagnostics) {
        default_.origin = plan::OriginKind::default_;
        default_.range = root.range;
    }

    void run() {
        Node& topology = section("topology");
        if (topology.poisoned) return;
        if (const Member* shape = topology.member("shape")) {
            if (shape->value.poisoned) return;
            expand_shape(topology, *shape);
        }
        derive(topology);
        cache_budget();
    }

  private:
    Node& section(const char* key) {
        if (Member* member = root_.member(key)) return member->value;
        root_.members.push_back({key, {}, default_});
        return root_.members.back().value;
    }

    // `by` hides or contradicts `what`, which stands beside it.
    void report(DiagnosticCode code, const std::string& message, const SourceRange& what, const SourceRange& by,
                const std::string& help) {
        Diagnostic diagnostic;
        diagnostic.code = code;
        diagnostic.message = message;
        diagnostic.primary = {what, code.severity == Severity::error ? "contradicts it" : "has no effect"};
        diagnostic.secondary.push_back({by, "this stands"});
        diagnostic.helps.push_back(help);
        diagnostics_.push_back(std::move(diagnostic));
    }

    void expand_factor(Node& topology, const Member& shape, const char* key, Node value) {
        Member* stated = topology.member(key);
        if (stated == nullptr) {
            topology.members.push_back({key, {}, std::move(value)});
            return;
        }
        if (stated->value.poisoned || stated->value.origin < shape.value.origin) return; // an override of one factor
        const bool equal = stated->value.integer == value.integer && stated->value.boolean == value.boolean;
        if (stated->value.origin == shape.value.origin) {
            const Position first = sources_.position(shape.key_range.source, shape.key_range.begin);
            const Position again = sources_.position(stated->key_range.source, stated->key_range.begin);
            if (equal)
                report(codes::shadowed_setting, fmt::format("`topology.shape` overrides `topology.{}`", key),
                       stated->key_range, shape.key_range, fmt::format("remove `{}`", key));
            else
                report(codes::duplicate_key,
                       fmt::format("`topology.{}` is defined at {}:{} by `shape` and again at {}:{}", key, first.line,
                                   first.column, again.line, again.column),
                       stated->key_range, shape.key_range, fmt::format("keep `shape` or `{}`", key));
        }
        stated->value = std::move(value);
    }

    void expand_shape(Node& topology, const Member& shape_member) {
        const Member shape = shape_member; // the member list grows below
        const auto parsed = parse_topology(shape.value.text);
        const TopologyShape& factors = std::get<TopologyShape>(parsed);
        const std::pair<const char*, std::optional<std::int64_t>> axes[] = {
            {"tp", factors.tp}, {"dp", factors.dp}, {"pp", factors.pp}, {"pcp", factors.pcp}, {"dcp", factors.dcp}};
        for (const auto& [key, value] : axes)
            if (value) expand_factor(topology, shape, key, integer_node(*value, shape.value));
        if (factors.ep) expand_factor(topology, shape, "ep", boolean_node(true, shape.value));
    }

    void fill(Node& table, const char* key, Node value) {
        if (table.member(key) == nullptr) table.members.push_back({key, {}, std::move(value)});
    }

    void derive(Node& topology) {
        for (const char* key : {"tp", "dp", "pp"}) fill(topology, key, integer_node(1, default_));
        fill(topology, "ep", boolean_node(false, default_));
        for (const char* key : {"tp", "dp", "pp", "ep"})
            if (topology.member(key)->value.poisoned) return;
        const std::int64_t tp = topology.member("tp")->value.integer, dp = topology.member("dp")->value.integer,
                           pp = topology.member("pp")->value.integer;
        const bool ep = topology.member("ep")->value.boolean;
        fill(topology, "ep_size", integer_node(ep ? tp * dp : 1, default_));
        const Member* disagg = root_.member("disagg");
        const char* mode = disagg != nullptr ? "pd"
                           : ep && dp == 1   ? "tep"
                           : ep && tp == 1   ? "dep"
                           : dp > 1          ? "tp_dp"
                                             : "tp";
        fill(topology, "mode", text_node(mode, default_));
        fill(section("hardware"), "devices", integer_node(tp * dp * pp, default_));
    }

    void cache_budget() {
        Member* kv = root_.member("kv");
        if (kv == nullptr) return;
        const Member* bytes = kv->value.member("cache_bytes");
        const Member* utilization = kv->value.member("utilization");
        if (bytes == nullptr || utilization == nullptr || bytes->value.poisoned || utilization->value.poisoned) return;
        if (bytes->value.origin != utilization->value.origin) return;
        report(codes::shadowed_setting, "`kv.cache_bytes` overrides `kv.utilization`", utilization->key_range,
               bytes->key_range, "remove `utilization`");
    }

    Node& root_;
    const SourceMap& sources_;
    Diagnostics& diagnostics_;
    Node default_;
};

} // namespace

void expand(Node& root, const SourceMap& sources, Diagnostics& diagnostics) {
    Expander(root, sources, diagnostics).run();
}

} // namespace dsv4::dsl
