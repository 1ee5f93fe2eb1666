#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "storage/checkpoint_queue.h"
#include "storage/commit_cycle.h"
#include "storage/journal.h"
#include "storage/journal_reader.h"
#include "storage/manifest.h"
#include "storage/metrics_home.h"
#include "storage/room.h"
#include "storage/session_check.h"
#include "storage/volume.h"
#include "wire/records.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::storage {

struct LogDirOptions {
    std::string name = "default";  ///< of the volume, as the cluster knows it
    Volume* volume = nullptr;
    SessionCheck* session = nullptr;
    /// Syncs of further files, cold reads, recovery, checkpoints. A test gives an InlineExecutor.
    base::Executor* io_pool = nullptr;
    std::size_t io_width = 4;  ///< threads that one cycle may use
    base::Clock* clock = nullptr;
    Owner owner;
    /// `kaas.fsync.max.latency.ms`: a cycle that takes longer is a stall; 0 turns the watchdog off.
    std::chrono::milliseconds stall_after{30'000};
    /// A partition records how far it is synced after so many bytes or so long (DESIGN 7).
    std::uint64_t checkpoint_bytes = 16 * 1024 * 1024;
    std::chrono::milliseconds checkpoint_after{5'000};
    /// Small batches of many partitions share one sync (journal.h); else every dirty segment is
    /// synced by itself.
    bool journal = false;
    std::uint64_t journal_file_bytes = JournalOptions{}.file_bytes;
    /// What a partition has in a cycle goes to the journal up to so many bytes; above, writing it
    /// twice costs more than the sync that it saves (docs/decisions/0018).
    std::uint64_t journal_entry_bytes = 64 * 1024;
    base::metrics::Registry* metrics = nullptr;
};

/// Where this incarnation of the broker writes on one volume: gathers the dirty writers of the
/// directory and commits them together, one cycle at a time. A new incarnation is a new `LogDir`.
///
/// All that `options` points to outlives it; members outlive their last cycle by shared ownership.
/// Thread: any, unless said otherwise.
class LogDir {
public:
    explicit LogDir(LogDirOptions options);
    ~LogDir();
    LogDir(const LogDir&) = delete;
    LogDir& operator=(const LogDir&) = delete;

    /// Starts the commit thread. Without it, `run_cycle` drives.
    void start();
    /// Finishes what is queued, then ends the thread. May be called twice.
    void stop() KAAS_EXCLUDES(mutex_);

    /// Puts `member` into the next cycle. The member sees to it that it queues once a cycle.
    void enqueue(std::shared_ptr<CommitMember> member) KAAS_EXCLUDES(mutex_);
    /// Calls `member->checkpoint_due()` once `checkpoint_after` has passed.
    void remind(std::shared_ptr<CommitMember> member) KAAS_EXCLUDES(mutex_);

    /// Runs one cycle on the caller's thread if anything is queued or due; false when there is
    /// nothing. For tests and seeded schedulers, instead of `start`.
    bool run_cycle() KAAS_EXCLUDES(mutex_);
    /// The next cycle, for a test to take apart; null when there is nothing.
    [[nodiscard]] std::unique_ptr<CommitCycle> next_cycle() KAAS_EXCLUDES(mutex_);

    /// True while a cycle runs for longer than `stall_after`. The watchdog's owner asks once a
    /// second and then calls `PartitionLog::fail_stalled` on the logs of this directory.
    [[nodiscard]] bool stalled() const;

    /// How many cycles have run.
    [[nodiscard]] std::uint64_t cycles() const { return cycles_.value(); }
    [[nodiscard]] const LogDirOptions& options() const { return options_; }
    [[nodiscard]] Volume& volume() const { return *options_.volume; }
    [[nodiscard]] SessionCheck& session() const { return *options_.session; }
    [[nodiscard]] base::Clock& clock() const { return *options_.clock; }
    [[nodiscard]] base::Executor& io_pool() const { return *options_.io_pool; }
    /// What may still be written here of what can be refused.
    [[nodiscard]] Room& room() const { return *room_; }
    /// Where small batches become durable; none when it is off.
    [[nodiscard]] Journal* journal() const { return journal_.get(); }
    /// Where members leave checkpoints, within a cycle or when they are due; they begin behind it.
    [[nodiscard]] CheckpointQueue& checkpoints() const { return *checkpoints_; }
    /// What earlier incarnations left in theirs, for recoveries.
    [[nodiscard]] JournalReaders& journal_readers() { return journal_readers_; }
    /// A void epoch was found to hold records that its log does not have.
    void count_stray_records() { stray_epochs_.add(); }
    /// Count looks into batches: produced ones, those of searches by time, markers in a recovered
    /// tail.
    [[nodiscard]] wire::DecodeSite& produce_site() { return produce_site_; }
    [[nodiscard]] wire::DecodeSite& repack_site() { return repack_site_; }
    [[nodiscard]] wire::DecodeSite& time_site() { return time_site_; }
    [[nodiscard]] wire::DecodeSite& recovery_site() { return recovery_site_; }

private:
    using Members = std::vector<std::shared_ptr<CommitMember>>;

    void run();
    /// Takes out whose time has come, or comes so soon that they share its syncs; they are called
    /// without the lock.
    [[nodiscard]] Members take_due() KAAS_REQUIRES(mutex_);
    void call_due() KAAS_EXCLUDES(mutex_);
    void sleep() KAAS_REQUIRES(mutex_);

    const LogDirOptions options_;
    const MetricsHome registry_;
    base::metrics::Counter& cycles_;
    base::metrics::Counter& stray_epochs_;
    wire::DecodeSite produce_site_;
    wire::DecodeSite repack_site_;
    wire::DecodeSite time_site_;
    wire::DecodeSite recovery_site_;
    const std::shared_ptr<Room> room_;
    const std::shared_ptr<Journal> journal_;
    const std::shared_ptr<CheckpointQueue> checkpoints_;
    JournalReaders journal_readers_;
    base::Mutex mutex_;
    base::CondVar wake_;
    Members queued_ KAAS_GUARDED_BY(mutex_);
    /// In order of time: the delay is the same for all.
    std::deque<std::pair<base::Clock::Steady, std::shared_ptr<CommitMember>>> later_
        KAAS_GUARDED_BY(mutex_);
    bool sleeping_ KAAS_GUARDED_BY(mutex_) = false;
    bool stopping_ KAAS_GUARDED_BY(mutex_) = false;
    /// When the running cycle began, in steady nanoseconds; 0 while none runs.
    std::atomic<std::int64_t> running_since_ = 0;
    std::thread thread_;
};

}  // namespace kaas::storage
