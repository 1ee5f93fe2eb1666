#include "base/metrics.h"

#include "base/assert.h"
#include "base/mutex.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::base::metrics {

void Histogram::observe_us(std::int64_t us) {
    auto bound = std::lower_bound(kBoundsUs.begin(), kBoundsUs.end(), us);
    buckets_[static_cast<std::size_t>(bound - kBoundsUs.begin())].fetch_add(
        1, std::memory_order_relaxed);
    sum_us_.fetch_add(static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0)),
                      std::memory_order_relaxed);
}

std::array<std::uint64_t, Histogram::kBoundsUs.size() + 1> Histogram::counts() const {
    std::array<std::uint64_t, kBoundsUs.size() + 1> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] = buckets_[i].load(std::memory_order_relaxed);
    return counts;
}

Registry::Series& Registry::find(std::string_view name, std::string_view help, Kind kind,
                                 Labels labels) {
    auto family = families_.find(name);
    if (family == families_.end()) {
        family = families_.emplace(std::string(name), Family{kind, std::string(help), {}}).first;
    }
    KAAS_ASSERT(family->second.kind == kind);
    std::sort(labels.begin(), labels.end());
    auto [series, fresh] = family->second.series.try_emplace(labels);
    if (fresh) series->second.labels = std::move(labels);
    return series->second;
}

Counter& Registry::counter(std::string_view name, std::string_view help, Labels labels) {
    return *shared_counter(name, help, std::move(labels));
}

std::shared_ptr<Counter> Registry::shared_counter(std::string_view name, std::string_view help,
                                                  Labels labels) {
    MutexLock lock(mutex_);
    Series& series = find(name, help, Kind::kCounter, std::move(labels));
    if (!series.counter) series.counter = std::make_shared<Counter>();
    return series.counter;
}

Gauge& Registry::gauge(std::string_view name, std::string_view help, Labels labels) {
    MutexLock lock(mutex_);
    Series& series = find(name, help, Kind::kGauge, std::move(labels));
    if (!series.gauge) series.gauge = std::make_unique<Gauge>();
    return *series.gauge;
}

Histogram& Registry::histogram(std::string_view name, std::string_view help, Labels labels) {
    MutexLock lock(mutex_);
    Series& series = find(name, help, Kind::kHistogram, std::move(labels));
    if (!series.histogram) series.histogram = std::make_unique<Histogram>();
    return *series.histogram;
}

void Registry::sampled(std::string_view name, std::string_view help, Labels labels,
                       std::function<double()> sample) {
    MutexLock lock(mutex_);
    find(name, help, Kind::kGauge, std::move(labels)).sample = std::move(sample);
}

void Registry::remove(std::string_view name, const Labels& labels) {
    Labels sorted = labels;
    std::sort(sorted.begin(), sorted.end());
    MutexLock lock(mutex_);
    auto family = families_.find(name);
    if (family != families_.end()) family->second.series.erase(sorted);
}

void Registry::visit(const std::function<void(const std::string&, const Family&)>& visit) const {
    MutexLock lock(mutex_);
    for (const auto& [name, family] : families_) visit(name, family);
}

}  // namespace kaas::base::metrics
