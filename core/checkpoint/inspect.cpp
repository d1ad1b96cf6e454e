// Renders a checkpoint for people and for programs.
#include "core/checkpoint/inspect.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace dsv4::checkpoint {
namespace {

using nlohmann::ordered_json;

std::string with_separators(std::int64_t value) {
    const std::string digits = std::to_string(value);
    std::string out;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

std::string gibibytes(std::int64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f GiB", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
    return text;
}

std::string left(std::string_view text, std::size_t width) {
    std::string out(text);
    out.resize(std::max(width, out.size()), ' ');
    return out;
}

std::string right(const std::string& text, std::size_t width) {
    return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string total_line(std::string_view name, const model::Total& total) {
    return "  " + left(name, 18) + right(with_separators(total.tensors), 8) +
           right(with_separators(total.parameters), 18) + right(with_separators(total.bytes), 18) + "  " +
           right(gibibytes(total.bytes), 12) + "\n";
}

// "2 of ratio 0, 2 of ratio 4, 1 of ratio 128".
std::string ratio_counts(const model::Geometry& g) {
    std::string text;
    for (const int ratio : {0, 4, 128}) {
        const auto count = std::count(g.compress_ratios.begin(), g.compress_ratios.end(), ratio);
        if (count > 0)
            text += (text.empty() ? "" : ", ") + std::to_string(count) + " of ratio " + std::to_string(ratio);
    }
    return text;
}

std::string_view severity_name(Severity severity) { return severity == Severity::error ? "error" : "note"; }

std::string geometry_lines(const model::Geometry& g) {
    const auto n = [](std::int64_t v) { return std::to_string(v); };
    std::string out;
    out += "  layers             " + n(g.num_hidden_layers) + " (" + ratio_counts(g) + "; " + n(g.num_hash_layers) +
           " hash-routed)\n";
    out += "  hidden             " + n(g.hidden_size) + " x " + n(g.hc_mult) + " streams, vocabulary " +
           n(g.vocab_size) + "\n";
    out += "  attention          " + n(g.num_attention_heads) + " heads of " + n(g.head_dim) + ", window " +
           n(g.sliding_window) + ", index top " + n(g.index_topk) + "\n";
    out += "  experts            " + n(g.num_experts_per_tok) + " of " + n(g.n_routed_experts) + " and " +
           n(g.n_shared_experts) + " shared, width " + n(g.moe_intermediate_size) + "\n";
    out += "  context            " + n(g.max_position_embeddings) + " tokens\n";
    return out;
}

ordered_json total_json(const model::Total& t) {
    return {{"tensors", t.tensors}, {"parameters", t.parameters}, {"bytes", t.bytes}};
}

ordered_json geometry_json(const model::Geometry& g) {
    ordered_json j{{"hidden_size", g.hidden_size},
                   {"num_hidden_layers", g.num_hidden_layers},
                   {"vocab_size", g.vocab_size},
                   {"hc_mult", g.hc_mult},
                   {"num_attention_heads", g.num_attention_heads},
                   {"head_dim", g.head_dim},
                   {"qk_rope_head_dim", g.qk_rope_head_dim},
                   {"q_lora_rank", g.q_lora_rank},
                   {"o_groups", g.o_groups},
                   {"o_lora_rank", g.o_lora_rank},
                   {"sliding_window", g.sliding_window},
                   {"compress_ratios", g.compress_ratios},
                   {"draft_ratios", g.draft_ratios},
                   {"max_position_embeddings", g.max_position_embeddings},
                   {"index_n_heads", g.index_n_heads},
                   {"index_head_dim", g.index_head_dim},
                   {"index_topk", g.index_topk},
                   {"n_routed_experts", g.n_routed_experts},
                   {"n_shared_experts", g.n_shared_experts},
                   {"num_experts_per_tok", g.num_experts_per_tok},
                   {"moe_intermediate_size", g.moe_intermediate_size},
                   {"num_hash_layers", g.num_hash_layers}};
    if (g.dspark)
        j["dspark"] = {{"block_size", g.dspark->block_size},
                       {"noise_token_id", g.dspark->noise_token_id},
                       {"target_layer_ids", g.dspark->target_layer_ids},
                       {"markov_rank", g.dspark->markov_rank}};
    return j;
}

ordered_json model_json(const model::ModelCard& card) {
    return {{"lineage", model::lineage_name(card.lineage)},
            {"lineage_reason", card.lineage_reason},
            {"draft", model::draft_kind_name(card.draft)},
            {"draft_stages", card.draft_stages},
            {"draft_reason", card.draft_reason},
            {"experts", model::expert_precision_name(card.experts)},
            {"draft_experts", model::expert_precision_name(card.draft_experts)},
            {"encoding", model::encoding_name(card.encoding)},
            {"encoding_reason", card.encoding_reason},
            {"config_sha256", card.config_sha256}};
}

} // namespace

std::string inspect_text(const Checkpoint& checkpoint, std::size_t most_findings) {
    const model::ModelCard& card = checkpoint.card();
    std::string out = "checkpoint " + checkpoint.directory().string() + "\n";
    const auto fact = [&](std::string_view name, std::string_view value, const std::string& reason) {
        out += "  " + left(name, 19) + std::string(value) + (reason.empty() ? "" : " (" + reason + ")") + "\n";
    };
    fact("lineage", model::lineage_name(card.lineage), card.lineage_reason);
    fact("draft", model::draft_kind_name(card.draft), card.draft_reason);
    fact("experts", model::expert_precision_name(card.experts), "");
    if (card.draft != model::DraftKind::none)
        fact("draft experts", model::expert_precision_name(card.draft_experts), "");
    fact("encoding", model::encoding_name(card.encoding), card.encoding_reason);
    out += "\ngeometry\n" + geometry_lines(card.geometry);
    out += "\n  " + left("group", 18) + right("tensors", 8) + right("parameters", 18) + right("bytes", 18) + "\n";
    for (std::size_t i = 0; i < model::group_count; ++i)
        if (card.by_group[i].tensors > 0)
            out += total_line(model::group_name(static_cast<model::Group>(i)), card.by_group[i]);
    out += total_line("total", card.total);
    out += "\nshards\n";
    for (const Shard& s : checkpoint.shards())
        out += "  " + left(s.name, 36) + right(with_separators(static_cast<std::int64_t>(s.file.tensors().size())), 8) +
               " tensors" + right(with_separators(static_cast<std::int64_t>(s.file.file().size_bytes())), 18) +
               " bytes\n";
    out += "\nfindings\n";
    const auto& findings = checkpoint.findings();
    for (std::size_t i = 0; i < std::min(most_findings, findings.size()); ++i) {
        out += "  " + std::string(severity_name(findings[i].severity)) + ": " + findings[i].message + "\n";
        if (!findings[i].fix.empty()) out += "    fix: " + findings[i].fix + "\n";
    }
    if (findings.size() > most_findings) out += "  and " + std::to_string(findings.size() - most_findings) + " more\n";
    if (findings.empty()) out += "  none: every tensor of this geometry is here, with its type and shape\n";
    return out;
}

std::string inspect_json(const Checkpoint& checkpoint) {
    const model::ModelCard& card = checkpoint.card();
    ordered_json totals = ordered_json::object();
    for (std::size_t i = 0; i < model::group_count; ++i)
        totals[std::string(model::group_name(static_cast<model::Group>(i)))] = total_json(card.by_group[i]);
    totals["total"] = total_json(card.total);
    ordered_json shards = ordered_json::array();
    for (const Shard& s : checkpoint.shards())
        shards.push_back(
            {{"name", s.name}, {"tensors", s.file.tensors().size()}, {"bytes", s.file.file().size_bytes()}});
    ordered_json findings = ordered_json::array();
    for (const Finding& f : checkpoint.findings())
        findings.push_back({{"severity", severity_name(f.severity)}, {"message", f.message}, {"fix", f.fix}});
    const ordered_json report{{"directory", checkpoint.directory().string()},
                              {"loadable", checkpoint.loadable().ok()},
                              {"model", model_json(card)},
                              {"geometry", geometry_json(card.geometry)},
                              {"totals", totals},
                              {"shards", shards},
                              {"findings", findings}};
    return report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace dsv4::checkpoint
