#include "base/clock.h"
#include "base/mutex.h"
#include "storage/partition_log.h"
#include "storage/volume.h"

#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <span>
#include <utility>
#include <vector>

// How a log hands its epoch back: alone, or with many others that share their syncs.

namespace kaas::storage {

Result<void> PartitionLog::release(std::chrono::milliseconds patience) {
    const auto self = shared_from_this();
    return std::move(release_together({&self, 1}, patience).front());
}

std::vector<Result<void>> PartitionLog::release_together(
    std::span<const std::shared_ptr<PartitionLog>> logs, std::chrono::milliseconds patience) {
    std::vector<Result<void>> outcomes(logs.size());
    if (logs.empty()) return outcomes;
    auto& log_dir = logs.front()->log_dir();
    for (const auto& log : logs) log->expect_release();  // so that they wait for the same cycle
    const auto deadline = log_dir.clock().now() + patience;
    std::vector<std::size_t> writers;
    for (std::size_t i = 0; i < logs.size(); ++i) {
        outcomes[i] = logs[i]->end_by(deadline);
        if (outcomes[i] && logs[i]->begun_) writers.push_back(i);
    }

    auto& volume = log_dir.volume();
    const bool together = writers.size() >= kWorthSyncingAll && volume.can_sync_all();
    const auto syncs = together ? Syncs::kLater : Syncs::kNow;
    const auto each = [&](const auto& step) {
        for (const auto i : writers) {
            if (outcomes[i]) outcomes[i] = step(*logs[i]);
        }
        std::erase_if(writers, [&](std::size_t i) { return !outcomes[i].has_value(); });
    };
    const auto sync_all = [&] {
        if (!together || writers.empty()) return;
        const auto synced = volume.sync_all();
        each([&](PartitionLog&) { return synced; });
    };
    each([&](PartitionLog& log) { return log.finish_files(syncs); });
    sync_all();
    each([&](PartitionLog& log) { return log.write_last_line(syncs); });
    sync_all();
    for (const auto i : writers) {
        const auto& log = *logs[i];
        if (log.journal_key_) log_dir.journal()->recorded(*log.journal_key_, log.written_.end);
    }
    return outcomes;
}

void PartitionLog::expect_release() {
    base::MutexLock lock(mutex_);
    draining_ = true;
}

Result<void> PartitionLog::end_by(base::Clock::Steady deadline) {
    Wakeups wakeups;
    bool finished = false;
    {
        base::MutexLock lock(mutex_);
        const auto busy = [&]() KAAS_REQUIRES(mutex_) {
            return in_cycle_ || asked_for_cycle_ || checkpoint_job_ == PoolJob::kRunning ||
                   upkeep_job_ == PoolJob::kRunning;
        };
        while (!ended_ && busy()) {
            const auto left = deadline - log_dir_.clock().now();
            if (idle_ == nullptr) idle_ = std::make_unique<base::CondVar>();
            if (left.count() <= 0 || !idle_->wait_for(mutex_, left)) break;
        }
        finished = !ended_ && !busy();
        if (!ended_) end(Error{ErrorCode::kClosed, directory() + " was released"}, wakeups);
    }
    wakeups.post();
    if (finished) return {};
    return fail(ErrorCode::kStalled, directory() + ": released without its last line");
}

Result<void> PartitionLog::finish_files(Syncs syncs) {
    if (synced_bytes_ != written_.bytes) {
        KAAS_TRY(sync_file(*active_log_, syncs));
        synced_bytes_ = written_.bytes;
        unsynced_records_ = 0;
    }
    const auto now = producers();
    auto& offsets = active_->offsets();
    auto& times = active_->times();
    // An index without entries leads to the segment's beginning, as no index does: of many
    // partitions that were hardly written to, such files would be most of what a release costs.
    const bool indexed = offsets.bytes() > 0 || times.bytes() > 0;
    const bool aborts = written_.aborted.count > 0;
    if (!indexed && !aborts && now.empty()) return {};
    if (indexed) {
        {
            base::MutexLock lock(mutex_);
            if (const auto last = plan_.time_entry(); last) times.append(*last);
        }
        KAAS_TRY(offsets.finish(volume_, syncs));
        KAAS_TRY(times.finish(volume_, syncs));
    }
    if (aborts) KAAS_TRY(active_->aborted().flush(volume_, active_->aborted_path(), syncs));
    KAAS_TRY(write_snapshot(written_.end, now, syncs));
    return sync_directory(volume_, paths_.epoch_directory(epoch_), syncs);
}

Result<void> PartitionLog::write_last_line(Syncs syncs) {
    const auto now = producers();
    base::MutexLock lock(manifest_mutex_);
    return epoch_log_->release(manifest_.synced_facts(written_, now), syncs);
}

}  // namespace kaas::storage
