#pragma once

#include "base/mutex.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::base::metrics {

/// Only grows. Thread: any.
class Counter {
public:
    void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_ = 0;
};

/// Goes up and down. Thread: any.
class Gauge {
public:
    void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
    void add(std::int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
    [[nodiscard]] std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::int64_t> value_ = 0;
};

/// Durations in fixed buckets from 100 us to 30 s. Thread: any.
class Histogram {
public:
    /// Upper bounds in microseconds; one more bucket takes the rest.
    static constexpr std::array<std::int64_t, 17> kBoundsUs = {
        100,     250,     500,     1'000,     2'500,     5'000,     10'000,     25'000,    50'000,
        100'000, 250'000, 500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000, 30'000'000};

    void observe_us(std::int64_t us);
    /// Not cumulative; the last one is above every bound.
    [[nodiscard]] std::array<std::uint64_t, kBoundsUs.size() + 1> counts() const;
    [[nodiscard]] std::uint64_t sum_us() const { return sum_us_.load(std::memory_order_relaxed); }

private:
    std::array<std::atomic<std::uint64_t>, kBoundsUs.size() + 1> buckets_{};
    std::atomic<std::uint64_t> sum_us_ = 0;
};

/// Sorted by name when rendered. Values may be any text.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// Owns all series of a process (or of a test). Names are Prometheus', `kaas_<what>[_unit][_total]`
/// (CONTRIBUTING). References stay valid until the series is removed or the registry dies.
/// Thread: any; hold on to the reference on hot paths, look-up takes a lock.
class Registry {
public:
    enum class Kind { kCounter, kGauge, kHistogram };

    Counter& counter(std::string_view name, std::string_view help, Labels labels = {});
    /// As `counter`, for a series that may be removed while somebody still counts.
    std::shared_ptr<Counter> shared_counter(std::string_view name, std::string_view help,
                                            Labels labels);
    Gauge& gauge(std::string_view name, std::string_view help, Labels labels = {});
    Histogram& histogram(std::string_view name, std::string_view help, Labels labels = {});
    /// A gauge whose value is asked for at each scrape, on the health thread.
    void sampled(std::string_view name, std::string_view help, Labels labels,
                 std::function<double()> sample);
    /// Ends the series of that name and labels (a deleted topic's); its reference is dead then.
    void remove(std::string_view name, const Labels& labels);

    struct Series {
        Labels labels;
        std::shared_ptr<Counter> counter;
        std::unique_ptr<Gauge> gauge;
        std::unique_ptr<Histogram> histogram;
        std::function<double()> sample;
    };
    struct Family {
        Kind kind;
        std::string help;
        std::map<Labels, Series> series;
    };
    /// Calls `visit(name, family)` in order of name, under the registry's lock.
    void visit(const std::function<void(const std::string&, const Family&)>& visit) const;

private:
    Series& find(std::string_view name, std::string_view help, Kind kind, Labels labels)
        KAAS_REQUIRES(mutex_);

    mutable Mutex mutex_;
    std::map<std::string, Family, std::less<>> families_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::base::metrics
