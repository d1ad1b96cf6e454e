// Sums and distributions over the answered requests of a run.
#include "bench/measures.hpp"

namespace dsv4::bench {

namespace {

double ms(std::int64_t us) { return double(us) / 1000; }

} // namespace

std::optional<std::uint64_t> output_tokens(const Sample& sample) {
    if (sample.usage) return sample.usage->completion_tokens;
    if (sample.streamed) return sample.outputs_us.size();
    return {};
}

Latencies latencies(const Sample& s) {
    Latencies l;
    if (s.scheduled_us) l.queue_ms = ms(s.sent_us - *s.scheduled_us);
    l.e2e_ms = ms(s.end_us - s.sent_us);
    if (s.outputs_us.empty()) return l;
    l.ttft_ms = ms(s.outputs_us.front() - s.sent_us);
    const std::uint64_t tokens = output_tokens(s).value_or(0);
    if (tokens >= 2) l.tpot_ms = (l.e2e_ms - *l.ttft_ms) / double(tokens - 1);
    for (std::size_t i = 1; i < s.outputs_us.size(); ++i) l.itl_ms.push_back(ms(s.outputs_us[i] - s.outputs_us[i - 1]));
    return l;
}

Measures measure(const Run& run) {
    Measures m;
    m.elapsed_s = double(run.elapsed_us) / 1e6;
    m.interrupted = run.interrupted;
    std::vector<double> queue, ttft, tpot, itl, e2e, prompt, output;
    std::uint64_t prompt_sum = 0, output_sum = 0;
    for (const Sample& s : run.samples) {
        if (s.outcome != Outcome::ok) {
            ++m.failed;
            ++m.failures[s.outcome];
            if (s.outcome == Outcome::http_status) ++m.http_statuses[s.http_status];
            m.first_message.emplace(s.outcome, s.message);
            continue;
        }
        ++m.answered;
        const Latencies l = latencies(s);
        if (l.queue_ms) queue.push_back(*l.queue_ms);
        if (l.ttft_ms) ttft.push_back(*l.ttft_ms);
        if (l.tpot_ms) tpot.push_back(*l.tpot_ms);
        itl.insert(itl.end(), l.itl_ms.begin(), l.itl_ms.end());
        e2e.push_back(l.e2e_ms);
        if (s.streamed && s.outputs_us.empty()) ++m.without_output;
        if (s.usage) {
            ++m.with_usage;
            prompt.push_back(double(s.usage->prompt_tokens));
            prompt_sum += s.usage->prompt_tokens;
        }
        if (const auto tokens = output_tokens(s)) {
            output.push_back(double(*tokens));
            output_sum += *tokens;
        }
    }
    if (m.answered > 0 && prompt.size() == m.answered) m.prompt_tokens = prompt_sum;
    if (m.answered > 0 && output.size() == m.answered) m.output_tokens = output_sum;
    if (m.elapsed_s > 0) {
        m.requests_per_s = double(m.answered) / m.elapsed_s;
        if (m.prompt_tokens) m.prompt_tokens_per_s = double(prompt_sum) / m.elapsed_s;
        if (m.output_tokens) m.output_tokens_per_s = double(output_sum) / m.elapsed_s;
    }
    m.queue_ms = distribution(std::move(queue));
    m.ttft_ms = distribution(std::move(ttft));
    m.tpot_ms = distribution(std::move(tpot));
    m.itl_ms = distribution(std::move(itl));
    m.e2e_ms = distribution(std::move(e2e));
    m.prompt_length_tokens = distribution(std::move(prompt));
    m.output_length_tokens = distribution(std::move(output));
    return m;
}

} // namespace dsv4::bench
