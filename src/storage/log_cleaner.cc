#include "storage/log_cleaner.h"

#include "base/log.h"
#include "base/thread_pool.h"
#include "storage/sparse_index.h"

#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

[[nodiscard]] bool same(const std::weak_ptr<PartitionLog>& a, const LogPtr& b) {
    return !a.owner_before(b) && !b.owner_before(a);
}

/// When the oldest record of a segment was written, as its first batch says (Apache
/// `LogSegment.getFirstBatchTimestamp`).
[[nodiscard]] Result<std::int64_t> first_batch_ms(Volume& volume, const SegmentSpan& span) {
    KAAS_TRY_ASSIGN(file, span.segment->log(volume, Patience::kMayBlock));
    HeaderCursor cursor(*file, *span.segment, 0, span.facts.bytes, Patience::kMayBlock);
    KAAS_TRY_ASSIGN(place, cursor.next());
    return place ? place->max_timestamp_ms : -1;
}

[[nodiscard]] base::metrics::Counter& runs(base::metrics::Registry& registry, const char* result) {
    return registry.counter("kaas_compaction_runs_total",
                            "Compactions of a log, by how they ended.", {{"result", result}});
}

}  // namespace

LogCleaner::Metrics::Metrics(base::metrics::Registry& registry)
    : done(runs(registry, "done")),
      failed(runs(registry, "failed")),
      stopped(runs(registry, "stopped")),
      duration(registry.histogram("kaas_compaction_duration_seconds",
                                  "From the choice of a log to the end of its compaction.")),
      records_kept(registry.counter("kaas_compaction_records_kept_total",
                                    "Records that compaction left in a log.")),
      records_dropped(registry.counter("kaas_compaction_records_dropped_total",
                                       "Records that compaction took out of a log.")),
      bytes_in(registry.counter("kaas_compaction_bytes_in_total",
                                "Bytes of the segments that compaction replaced.")),
      bytes_out(registry.counter("kaas_compaction_bytes_out_total",
                                 "Bytes of the segments that compaction wrote.")),
      uncleanable(registry.gauge("kaas_compaction_uncleanable_partitions",
                                 "Open logs that compaction leaves alone because it failed.")),
      max_dirty_percent(registry.gauge("kaas_compaction_max_dirty_percent",
                                       "Share of uncompacted bytes of the dirtiest log.")),
      map_percent(registry.gauge("kaas_compaction_map_utilization_percent",
                                 "How full the key map of the last compaction was.")) {}

LogCleaner::LogCleaner(Options options)
    : options_(std::move(options)),
      registry_(options_.metrics),
      metrics_(*registry_),
      site_(*registry_, "compaction"),
      budget_(*options_.clock, options_.config.io_max_bytes_per_second) {}

LogCleaner::~LogCleaner() { stop(); }

void LogCleaner::start() {
    for (std::size_t i = 0; i < options_.config.threads; ++i) {
        threads_.emplace_back(
            [this, i] { base::run_thread(fmt::format("cleaner-{}", i), [this] { run(); }); });
    }
}

void LogCleaner::end_soon() {
    {
        base::MutexLock lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
}

void LogCleaner::stop() {
    end_soon();
    for (auto& thread : threads_) {
        if (thread.joinable()) thread.join();
    }
}

void LogCleaner::run() {
    // Of this thread alone, on Linux: where processors are short, clients come first. A refusal
    // costs nothing but that.
    constexpr int kNice = 10;
    (void)setpriority(PRIO_PROCESS, 0, kNice);
    OffsetMap map(hasher_);
    for (;;) {
        const bool busy = run_once(map);
        map.release();
        if (!sleep(busy ? std::chrono::nanoseconds(0) : options_.config.backoff)) return;
    }
}

bool LogCleaner::run_once() {
    OffsetMap map(hasher_);
    return run_once(map);
}

bool LogCleaner::sleep(std::chrono::nanoseconds duration) {
    const auto until = options_.clock->now() + duration;
    base::MutexLock lock(mutex_);
    for (;;) {
        if (stopping_) return false;
        const auto left = until - options_.clock->now();
        if (left.count() <= 0) return true;
        wake_.wait_for(mutex_, left);
    }
}

// ---- which log --------------------------------------------------------------------------------

bool LogCleaner::Candidate::is_dirty_enough() const {
    return (overdue && cleanable.dirty_bytes > 0) ||
           cleanable.ratio() > sight.config->min_cleanable_ratio;
}

bool LogCleaner::run_once(OffsetMap& map) {
    const auto logs = options_.logs();
    sweep(logs);
    for (auto& candidate : candidates(logs)) {
        // Another thread may have taken it, or its epoch must begin first.
        if (!candidate.log->begin_compaction()) continue;
        compact(std::move(candidate), map);
        return true;
    }
    return false;
}

/// What failed or died half-way left files; also in logs that are dirty no more.
void LogCleaner::sweep(const std::vector<LogPtr>& logs) {
    for (const auto& log : logs) {
        if (log->failure() || !log->has_unfinished_compactions() || !log->begin_compaction())
            continue;
        if (const auto swept = log->sweep_compactions(); !swept) {
            base::log::warn("storage", "{}: files of an unfinished compaction stay for now: {}",
                            log->directory(), swept.error().context);
        }
        log->end_compaction();
    }
}

std::vector<LogCleaner::Candidate> LogCleaner::candidates(const std::vector<LogPtr>& logs) {
    forget_closed();
    std::vector<Candidate> found;
    double dirtiest = 0;
    for (const auto& log : logs) {
        auto candidate = look_at(log);
        if (!candidate) continue;
        dirtiest = std::max(dirtiest, candidate->cleanable.ratio());
        if (candidate->is_dirty_enough()) found.push_back(std::move(*candidate));
    }
    metrics_.max_dirty_percent.set(static_cast<std::int64_t>(dirtiest * 100));
    std::ranges::sort(found, std::greater<>(),
                      [](const Candidate& candidate) { return candidate.cleanable.ratio(); });
    return found;
}

std::optional<LogCleaner::Candidate> LogCleaner::look_at(const LogPtr& log) {
    Candidate candidate{.log = log, .sight = log->compaction_sight(), .cleanable = {}};
    if (!candidate.sight.config->compacted || log->failure()) return std::nullopt;
    {
        base::MutexLock lock(mutex_);
        if (is_given_up(log)) return std::nullopt;
    }
    candidate.cleanable = find_cleanable(candidate.sight.view, candidate.sight.clean_to,
                                         *candidate.sight.config, options_.clock->wall_ms());
    const auto overdue = is_overdue(*log, candidate.sight, candidate.cleanable);
    if (!overdue) {
        failed(candidate, overdue.error());
        return std::nullopt;
    }
    candidate.overdue = *overdue;
    return candidate;
}

Result<bool> LogCleaner::is_overdue(PartitionLog& log, const CompactionSight& sight,
                                    const Cleanable& cleanable) const {
    const auto lag_ms = sight.config->max_compaction_lag_ms;
    if (lag_ms == LogConfig::kNoLimit || cleanable.dirty_bytes == 0) return false;
    const auto& sealed = *sight.view.sealed;
    for (auto i = cleanable.sealed_dirty; i < sealed.size(); ++i) {
        KAAS_TRY_ASSIGN(first_ms, first_batch_ms(log.log_dir().volume(), sealed[i]));
        if (first_ms > 0 && first_ms < options_.clock->wall_ms() - lag_ms) return true;
    }
    return false;
}

// ---- one compaction ---------------------------------------------------------------------------

void LogCleaner::compact(Candidate candidate, OffsetMap& map) {
    const auto began = options_.clock->now();
    auto& log = *candidate.log;
    Compaction compaction(log, candidate.sight, candidate.cleanable, means(log, map));
    const auto counts = compaction.run();
    if (!counts && !log.failure()) {
        if (const auto swept = log.sweep_compactions(); !swept) {
            base::log::warn("storage", "{}: {}", log.directory(), swept.error().context);
        }
    }
    log.end_compaction();
    metrics_.map_percent.set(static_cast<std::int64_t>(compaction.map_utilization() * 100));
    if (!counts) return failed(candidate, counts.error());
    const auto took = options_.clock->now() - began;
    metrics_.done.add();
    metrics_.duration.observe_us(
        std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    metrics_.records_kept.add(counts->records_kept);
    metrics_.records_dropped.add(counts->records_in - counts->records_kept);
    metrics_.bytes_in.add(counts->bytes_in);
    metrics_.bytes_out.add(counts->bytes_out);
    base::log::info("storage", "{}: compacted {} bytes to {}, {} records to {}, in {} ms",
                    log.directory(), counts->bytes_in, counts->bytes_out, counts->records_in,
                    counts->records_kept,
                    std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
    if (counts->records_without_key > 0) {
        base::log::warn("storage", "{}: {} records without a key were in a compacted log, and went",
                        log.directory(), counts->records_without_key);
    }
}

CompactionMeans LogCleaner::means(PartitionLog& log, OffsetMap& map) {
    const auto& config = options_.config;
    const auto threads = std::max<std::size_t>(1, config.threads);
    return {.map = &map,
            .map_bytes_max = config.dedupe_buffer_bytes / threads,
            .map_load_factor = config.dedupe_load_factor,
            .io_buffer_bytes = std::max<std::size_t>(1, config.io_buffer_bytes / threads / 2),
            .site = &site_,
            .before_io = [this, &log](std::uint64_t bytes) { return before_io(log, bytes); }};
}

Result<void> LogCleaner::before_io(PartitionLog& log, std::uint64_t bytes) {
    if (const auto ended = log.failure()) return std::unexpected(*ended);
    if (!sleep(budget_.take(bytes)))
        return fail(ErrorCode::kClosed, log.directory() + ": the cleaner stops");
    return {};
}

void LogCleaner::failed(const Candidate& candidate, const Error& error) {
    const auto& log = candidate.log;
    switch (error.code) {
        // The log or the cleaner ends, or segments left the log meanwhile.
        case ErrorCode::kClosed:
        case ErrorCode::kFenced: metrics_.stopped.add(); return;
        // These go by themselves.
        case ErrorCode::kNoSpace:
        case ErrorCode::kTooManyOpen:
            metrics_.failed.add();
            base::log::warn("storage", "{}: not compacted for now: {}", log->directory(),
                            error.context);
            return;
        case ErrorCode::kNotFound:
            if (log->compaction_sight().view.sealed != candidate.sight.view.sealed)
                return metrics_.stopped.add();
            break;
        default: break;
    }
    metrics_.failed.add();
    if (log->failure()) return;  // it says why itself
    base::log::error("storage", "{}: cannot be compacted, and is left alone: {}", log->directory(),
                     error.context);
    base::MutexLock lock(mutex_);
    given_up_.push_back(log);
    metrics_.uncleanable.set(std::ssize(given_up_));
}

void LogCleaner::forget_closed() {
    base::MutexLock lock(mutex_);
    std::erase_if(given_up_, [](const auto& known) {
        const auto log = known.lock();
        return log == nullptr || log->failure();
    });
    metrics_.uncleanable.set(std::ssize(given_up_));
}

bool LogCleaner::is_given_up(const LogPtr& log) const {
    return std::ranges::any_of(given_up_, [&](const auto& known) { return same(known, log); });
}

std::size_t LogCleaner::uncleanable() const {
    base::MutexLock lock(mutex_);
    return given_up_.size();
}

}  // namespace kaas::storage
