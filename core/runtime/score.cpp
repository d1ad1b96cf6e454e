// Runs a sequence in chunks and collects the Program's outputs.
#include "core/runtime/score.hpp"

#include "core/lower/deepseek_v4.hpp"
#include "core/runtime/batch.hpp"
#include "core/state/pages.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dsv4::runtime {
namespace {

// Values of activation type, from and to float32.
class ActivationBuffer {
  public:
    ActivationBuffer(dsv4_precision precision, std::size_t elements)
        : narrow_(precision == DSV4_SERVE), bytes_(elements * (narrow_ ? 2 : 4)) {}
    void* data() { return bytes_.data(); }
    std::uint64_t size() const { return bytes_.size(); }
    void store(const float* from, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const auto bits = std::bit_cast<std::uint32_t>(from[i]);
            if (narrow_) {
                if (bits & 0xFFFFu)
                    throw Failure(Code::invalid, "input streams for serve must be exact in bf16, but element " +
                                                     std::to_string(i) + " is not");
                const auto high = std::uint16_t(bits >> 16);
                std::memcpy(bytes_.data() + 2 * i, &high, 2);
            } else
                std::memcpy(bytes_.data() + 4 * i, &bits, 4);
        }
    }
    void load(float* to, std::size_t count) const {
        for (std::size_t i = 0; i < count; ++i) {
            std::uint32_t bits = 0;
            if (narrow_) {
                std::uint16_t high = 0;
                std::memcpy(&high, bytes_.data() + 2 * i, 2);
                bits = std::uint32_t(high) << 16;
            } else
                std::memcpy(&bits, bytes_.data() + 4 * i, 4);
            to[i] = std::bit_cast<float>(bits);
        }
    }

  private:
    bool narrow_;
    std::vector<unsigned char> bytes_;
};

} // namespace

Score score(BackendSession& session, const model::Geometry& geometry, const lower::WeightTable& weights,
            const std::vector<std::int32_t>& tokens, const ScoreOptions& options) {
    const auto total = std::int64_t(tokens.size());
    if (tokens.empty()) throw Failure(Code::invalid, "there are no tokens to score");
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] < 0 || tokens[i] >= geometry.vocab_size)
            throw Failure(Code::invalid, "token " + std::to_string(i) + " is " + std::to_string(tokens[i]) +
                                             ", outside the vocabulary of " + std::to_string(geometry.vocab_size));
    if (total > geometry.max_position_embeddings)
        throw Failure(Code::invalid, std::to_string(total) + " tokens exceed the model's context of " +
                                         std::to_string(geometry.max_position_embeddings));
    const int end_layer = options.end_layer < 0 ? int(geometry.num_hidden_layers) : options.end_layer;
    const bool head = end_layer == geometry.num_hidden_layers;
    const std::size_t stream_width = std::size_t(geometry.hc_mult * geometry.hidden_size);
    const std::size_t vocab = std::size_t(geometry.vocab_size), topk = std::size_t(geometry.index_topk);
    if (!options.input_streams.empty() && options.input_streams.size() != tokens.size() * stream_width)
        throw Failure(Code::invalid, "input streams must hold tokens x streams x width elements");

    lower::Options lowering;
    lowering.precision = options.precision;
    lowering.first_layer = options.first_layer;
    lowering.end_layer = end_layer;
    lowering.streams_input = !options.input_streams.empty();
    lowering.head = head;
    lowering.sample = false;
    lowering.logits_output = head;
    lowering.streams_output = lowering.picks_output = options.streams;
    const program::Program program = lower::lower(geometry, weights, lowering);

    std::vector<state::PagePool> pools;
    std::vector<dsv4_state_pool> pool_sizes;
    for (const state::KindRule& rule :
         state::kind_rules(session.backend().state_layouts(program), geometry.sliding_window)) {
        const auto pages = std::uint32_t((total + rule.positions_per_page - 1) / rule.positions_per_page);
        pools.emplace_back(rule, pages);
        pool_sizes.push_back({rule.kind, pages});
    }
    session.allocate(program, pool_sizes, 1);
    const std::uint32_t chunk =
        std::max<std::uint32_t>(1, std::min<std::uint32_t>(options.chunk_tokens, std::uint32_t(total)));
    dsv4_executable* executable = session.compile(program, chunk, 1);
    state::SequencePages pages(pools);
    if (!pages.reserve(total)) throw Failure(Code::internal, "pages for a whole sequence were sized too small");

    Score result;
    result.tokens = total;
    if (head) {
        result.logits.resize(tokens.size() * vocab);
        result.argmax.resize(tokens.size());
    }
    struct Collected {
        std::string name;
        int layer;
        bool is_picks;
    };
    std::vector<Collected> collected;
    if (options.streams)
        for (auto id : program.outputs) {
            const std::string& name = program.values[id].name;
            if (name == "logits") continue;
            const bool is_picks = name.starts_with("picks.");
            const int layer = std::stoi(name.substr(name.find('.') + 1));
            collected.push_back({name, layer, is_picks});
            if (is_picks)
                result.picks[layer].resize(tokens.size() * topk);
            else
                result.streams[layer].resize(tokens.size() * stream_width);
        }

    for (std::int64_t begin = 0; begin < total; begin += chunk) {
        const auto count = std::size_t(std::min<std::int64_t>(chunk, total - begin));
        Batch batch;
        dsv4_batch_slot& slot = batch.slot(0, pages.tables());
        if (begin == 0) slot.flags = DSV4_SLOT_RESET;
        for (std::size_t i = 0; i < count; ++i)
            batch.row(begin + std::int64_t(i), DSV4_INPUT_GIVEN, tokens[std::size_t(begin) + i],
                      head ? DSV4_ROW_LOGITS : 0u);
        ActivationBuffer in(options.precision, count * stream_width);
        if (lowering.streams_input) {
            in.store(options.input_streams.data() + std::size_t(begin) * stream_width, count * stream_width);
            batch.input("streams.in", in.data(), in.size());
        }
        if (head)
            batch.output("logits", result.logits.data() + std::size_t(begin) * vocab, count * vocab * sizeof(float));
        std::map<int, ActivationBuffer> streams;
        for (const Collected& c : collected)
            if (c.is_picks)
                batch.output(c.name, result.picks[c.layer].data() + std::size_t(begin) * topk,
                             count * topk * sizeof(std::int32_t));
            else {
                auto& buffer =
                    streams.emplace(c.layer, ActivationBuffer(options.precision, count * stream_width)).first->second;
                batch.output(c.name, buffer.data(), buffer.size());
            }
        const TicketResult done = session.run(executable, batch.view());
        if (!done.errors.empty())
            throw Failure(Code::internal, "row " + std::to_string(done.errors[0].row) + " failed in " +
                                              done.errors[0].op + ": " + done.errors[0].message);
        for (auto& [layer, buffer] : streams)
            buffer.load(result.streams[layer].data() + std::size_t(begin) * stream_width, count * stream_width);
    }
    for (auto& [layer, picks] : result.picks)
        for (std::size_t t = 0; t < tokens.size(); ++t)
            std::sort(picks.data() + t * topk, picks.data() + (t + 1) * topk);
    for (std::size_t t = 0; t < result.argmax.size(); ++t) {
        const float* row = result.logits.data() + t * vocab;
        result.argmax[t] = std::int32_t(std::max_element(row, row + vocab) - row);
    }
    session.backend().table->executable_release(session.raw(), executable);
    return result;
}

} // namespace dsv4::runtime
