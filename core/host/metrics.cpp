// Metrics through prometheus-cpp, with bounded label sets.
#include "core/host/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

struct dsv4_metric {
    prometheus::Counter* counter = nullptr;
    prometheus::Gauge* gauge = nullptr;
    prometheus::Histogram* histogram = nullptr;
};

namespace dsv4::host {
namespace {

bool is_name(std::string_view s, bool colon) {
    const auto letter = [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':');
    };
    return !s.empty() && s.size() <= 200 && letter(s[0]) &&
           std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

bool is_label_name(std::string_view s) { return is_name(s, false) && s.substr(0, 2) != "__" && s != "le"; }

prometheus::Histogram::BucketBoundaries buckets_for(std::string_view name) {
    if (name.find("seconds") != name.npos)
        return {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600};
    if (name.find("bytes") != name.npos) {
        prometheus::Histogram::BucketBoundaries b;
        for (double x = 1024; x <= 68719476736.0; x *= 4) b.push_back(x); // 1 KiB .. 64 GiB
        return b;
    }
    if (name.find("tokens") != name.npos) {
        prometheus::Histogram::BucketBoundaries b;
        for (double x = 1; x <= 1048576; x *= 2) b.push_back(x);
        return b;
    }
    return {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
}

// One name: its kind, label names and series.
struct Family {
    dsv4_metric_kind kind{};
    std::vector<std::string> label_names;
    prometheus::Family<prometheus::Counter>* counters = nullptr;
    prometheus::Family<prometheus::Gauge>* gauges = nullptr;
    prometheus::Family<prometheus::Histogram>* histograms = nullptr;
    std::map<std::map<std::string, std::string>, dsv4_metric> series;
};

} // namespace

struct Metrics::State {
    std::mutex mutex;
    std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
    std::map<std::string, Family, std::less<>> families;

    Family* family(dsv4_metric_kind kind, std::string_view name, std::string_view help,
                   std::vector<std::string> label_names) {
        if (const auto it = families.find(name); it != families.end())
            return it->second.kind == kind && it->second.label_names == label_names ? &it->second : nullptr;
        if (families.size() >= max_metric_families) return nullptr;
        Family f;
        f.kind = kind;
        f.label_names = std::move(label_names);
        const std::string n(name), h(help);
        if (kind == DSV4_METRIC_COUNTER)
            f.counters = &prometheus::BuildCounter().Name(n).Help(h).Register(*registry);
        else if (kind == DSV4_METRIC_GAUGE)
            f.gauges = &prometheus::BuildGauge().Name(n).Help(h).Register(*registry);
        else
            f.histograms = &prometheus::BuildHistogram().Name(n).Help(h).Register(*registry);
        return &families.emplace(n, std::move(f)).first->second;
    }
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

dsv4_metric* Metrics::metric(std::int32_t kind, std::string_view name, std::string_view help,
                             const Labels& labels) noexcept {
    try {
        if (kind != DSV4_METRIC_COUNTER && kind != DSV4_METRIC_GAUGE && kind != DSV4_METRIC_HISTOGRAM) return nullptr;
        if (!is_name(name, true) || labels.size() > max_labels) return nullptr;
        std::map<std::string, std::string> set;
        std::vector<std::string> names;
        for (const auto& [label, value] : labels)
            if (!is_label_name(label) || value.size() > 200 || !set.emplace(label, value).second) return nullptr;
        for (const auto& [label, value] : set) names.push_back(label);
        const std::lock_guard lock(state_->mutex);
        auto* f = state_->family(dsv4_metric_kind(kind), name, help, std::move(names));
        if (!f) return nullptr;
        if (const auto it = f->series.find(set); it != f->series.end()) return &it->second;
        if (f->series.size() >= max_series_per_metric) return nullptr;
        dsv4_metric m;
        if (f->counters) m.counter = &f->counters->Add(set);
        if (f->gauges) m.gauge = &f->gauges->Add(set);
        if (f->histograms) m.histogram = &f->histograms->Add(set, buckets_for(name));
        return &f->series.emplace(std::move(set), m).first->second;
    } catch (...) {
        return nullptr;
    }
}

void Metrics::update(dsv4_metric* metric, double value) noexcept {
    if (!metric || std::isnan(value)) return;
    if (metric->counter && value >= 0) metric->counter->Increment(value);
    if (metric->gauge) metric->gauge->Set(value);
    if (metric->histogram) metric->histogram->Observe(value);
}

std::string Metrics::expose() const { return prometheus::TextSerializer().Serialize(state_->registry->Collect()); }

} // namespace dsv4::host
