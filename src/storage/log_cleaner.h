#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "storage/compaction.h"
#include "storage/compaction_plan.h"
#include "storage/io_budget.h"
#include "storage/metrics_home.h"
#include "storage/offset_map.h"
#include "storage/partition_log.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace kaas::storage {

/// Apache's `log.cleaner.*`; memory is shared among the threads. Source: `CleanerConfig`.
struct CleanerConfig {
    std::size_t threads = 1;
    std::uint64_t dedupe_buffer_bytes = std::uint64_t{128} << 20;
    double dedupe_load_factor = 0.9;
    std::size_t io_buffer_bytes = std::size_t{512} << 10;
    double io_max_bytes_per_second = std::numeric_limits<double>::max();
    std::chrono::milliseconds backoff{15'000};
};

/// Compacts the logs of this broker, the dirtiest first, on threads of its own.
///
/// A log whose compaction fails for a reason that will not go by itself (damage, a broken disk) is
/// left alone from then on, as long as it is open, and counted: nothing is tried in a loop. Rules:
/// Apache 4.4 `LogCleaner`, `LogCleanerManager.grabFilthiestCompactedLog`.
/// Thread: any, unless said otherwise.
class LogCleaner {
public:
    struct Options {
        CleanerConfig config;
        /// The logs that are open now; called on cleaner threads.
        std::function<std::vector<LogPtr>()> logs;
        base::Clock* clock = &base::Clock::system();
        base::metrics::Registry* metrics = nullptr;  ///< outlives the cleaner
    };

    explicit LogCleaner(Options options);
    ~LogCleaner();
    LogCleaner(const LogCleaner&) = delete;
    LogCleaner& operator=(const LogCleaner&) = delete;

    void start();
    /// Ends what runs at its next step, and then the threads; does not wait for it.
    void end_soon() KAAS_EXCLUDES(mutex_);
    /// `end_soon`, and waits. May be called twice.
    void stop() KAAS_EXCLUDES(mutex_);

    /// Compacts the dirtiest log on the caller's thread; false when none is dirty enough. For tests
    /// and seeded schedulers, instead of `start`.
    bool run_once() KAAS_EXCLUDES(mutex_);

    [[nodiscard]] std::size_t uncleanable() const KAAS_EXCLUDES(mutex_);

private:
    struct Candidate {
        LogPtr log;
        CompactionSight sight;
        Cleanable cleanable;
        bool overdue = false;

        [[nodiscard]] bool is_dirty_enough() const;
    };
    struct Metrics {
        explicit Metrics(base::metrics::Registry& registry);
        base::metrics::Counter& done;
        base::metrics::Counter& failed;
        base::metrics::Counter& stopped;
        base::metrics::Histogram& duration;
        base::metrics::Counter& records_kept;
        base::metrics::Counter& records_dropped;
        base::metrics::Counter& bytes_in;
        base::metrics::Counter& bytes_out;
        base::metrics::Gauge& uncleanable;
        base::metrics::Gauge& max_dirty_percent;
        base::metrics::Gauge& map_percent;
    };

    void run();
    [[nodiscard]] bool run_once(OffsetMap& map) KAAS_EXCLUDES(mutex_);
    /// Those worth compacting, the dirtiest first.
    [[nodiscard]] std::vector<Candidate> candidates(const std::vector<LogPtr>& logs)
        KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::optional<Candidate> look_at(const LogPtr& log) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<bool> is_overdue(PartitionLog& log, const CompactionSight& sight,
                                          const Cleanable& cleanable) const;
    void sweep(const std::vector<LogPtr>& logs);
    void compact(Candidate candidate, OffsetMap& map) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] CompactionMeans means(PartitionLog& log, OffsetMap& map);
    [[nodiscard]] Result<void> before_io(PartitionLog& log, std::uint64_t bytes)
        KAAS_EXCLUDES(mutex_);
    void failed(const Candidate& candidate, const Error& error) KAAS_EXCLUDES(mutex_);
    void forget_closed() KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool is_given_up(const LogPtr& log) const KAAS_REQUIRES(mutex_);
    /// False when the cleaner stops.
    [[nodiscard]] bool sleep(std::chrono::nanoseconds duration) KAAS_EXCLUDES(mutex_);

    const Options options_;
    const MetricsHome registry_;
    Metrics metrics_;
    wire::DecodeSite site_;
    IoBudget budget_;
    const KeyHasher hasher_ = KeyHasher::random();
    mutable base::Mutex mutex_;
    base::CondVar wake_;
    bool stopping_ KAAS_GUARDED_BY(mutex_) = false;
    std::vector<std::weak_ptr<PartitionLog>> given_up_ KAAS_GUARDED_BY(mutex_);
    std::vector<std::thread> threads_;
};

}  // namespace kaas::storage
