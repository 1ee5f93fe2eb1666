#pragma once
// Which of its .cc files does what: see partition_log.cc.
#include "base/buffer.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "storage/batch_check.h"
#include "storage/commit_cycle.h"
#include "storage/compaction_filter.h"
#include "storage/discards.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/leader_epochs.h"
#include "storage/log_config.h"
#include "storage/log_dir.h"
#include "storage/log_view.h"
#include "storage/manifest.h"
#include "storage/producer_state.h"
#include "storage/read_check.h"
#include "storage/recovery.h"
#include "storage/repack.h"
#include "storage/retention.h"
#include "storage/segment_plan.h"
#include "storage/time_search.h"
#include "storage/transaction_marker.h"
#include "storage/volume.h"

#include <boost/container/flat_map.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kaas::storage {

/// How durable a batch must be before its producer hears of it.
enum class Acks {
    kNone,    ///< acks=0: nobody waits
    kLeader,  ///< acks=1: written and checked
    kAll,     ///< acks=all: fsynced, as `flush.messages` asks, and checked
};

struct Appended {
    base::Offset base_offset{-1};
    base::Offset log_start{-1};
    std::int64_t log_append_time_ms = -1;  ///< -1 under CreateTime, as Produce answers it
};

/// A batch that is on its way to the file.
struct Accepted {
    base::Offset base_offset;
    std::int32_t records = 0;
};

/// One produced batch of one partition.
struct Append {
    base::FrameRef frame;        ///< keeps the bytes alive until they are written
    base::MutableBytes records;  ///< in `frame`; base offset and leader epoch are patched there
    Acks acks = Acks::kAll;
    std::int32_t current_leader_epoch = -1;  ///< -1: the caller does not know
    /// Set for what `repack` gave: it is checked already, and has this time under LogAppendTime.
    std::optional<std::int64_t> checked_ms{};
    /// By what a batch that begins a transaction was verified (`begin_verification`).
    VerificationGuard verification{};
    /// Of the feature `transaction.version`; 0: what begins a transaction need not be verified
    /// (`transaction.partition.verification.enable=false`).
    std::int8_t transaction_version = 1;
    /// Where `done` runs; not needed with kNone. Outlives the log dir's thread.
    base::Executor* home = nullptr;
    /// Runs once, on `home`, when the batch is as durable as asked or has failed. Tickets of one
    /// commit cycle come in one wake-up per home. Never called with kNone, nor when `append` itself
    /// failed.
    std::move_only_function<void(Result<Appended>)> done;
};

/// Wakes a parked fetch. Fires once: when enough may be seen, at once if anything came since the
/// fetch looked, or when the log ends.
struct Watch {
    base::Offset beyond{0};       ///< where what may be seen ended when the fetch looked
    std::uint64_t min_bytes = 1;  ///< how many more bytes to see are enough
    Isolation isolation = Isolation::kReadUncommitted;
    base::Executor* home = nullptr;
    base::Executor::Work wake;
};
using WatchId = std::uint64_t;

/// What a compaction looks at: taken at one moment, valid as long as it is held.
struct CompactionSight {
    LogView view;
    base::Offset clean_to{0};  ///< how far the log was compacted before
    std::shared_ptr<const LogConfig> config;
};

struct PartitionLogOptions {
    LogDir* log_dir = nullptr;
    std::string directory;  ///< `<topic>.<topic id>/<partition>`
    base::LeaderEpoch epoch;
    /// The epochs that may have been written before this one, newest first, each on its volume;
    /// empty when this is the first.
    std::vector<EpochCandidate> earlier;
    SharedLogConfig config;
};

/// The log of one partition under one leader epoch (DESIGN 7). A move, a failure, a new epoch: a
/// new object.
///
/// Owns the epoch's directory and everything in it, from its first write on; until then it serves
/// from what its predecessor left. Names itself to the log dir's commit cycles as long as they need
/// it. Thread: as each function says; "any" includes reactors, and does no I/O.
class PartitionLog final : public CommitMember, public std::enable_shared_from_this<PartitionLog> {
public:
    /// Finds the newest state below `options.epoch`, closes what lies between, recovers the tail,
    /// checks the session. Writes nothing when there is nothing to recover. Thread: any that may
    /// block. Errors: kExists, kNotFound (superseded: ask the controller for a new epoch), kFenced,
    /// kCorrupt with file and offset, the volume's.
    [[nodiscard]] static Result<std::shared_ptr<PartitionLog>> open(PartitionLogOptions options);
    /// The same for many, all of one log dir, for far less than one after the other (recovery.h).
    /// In order of `options`.
    [[nodiscard]] static std::vector<Result<std::shared_ptr<PartitionLog>>> open_together(
        std::vector<PartitionLogOptions> options);
    ~PartitionLog() override;

    /// Checks a produced batch, gives it its offsets and hands it to the next commit cycle. Thread:
    /// any. Errors, with which `done` does not run: those of `check_produced`, kWrongEpoch,
    /// kUnknownEpoch, kClosed, those of `ProducerState::classify`, kNoSpace (what is left of the
    /// volume is kept, see `Room`; the log goes on), and the log's own failure. `faults`, when
    /// given, names the records because of which a batch was refused.
    [[nodiscard]] Result<Accepted> append(Append request,
                                          std::vector<RecordFault>* faults = nullptr)
        KAAS_EXCLUDES(mutex_, view_mutex_);

    /// What a client's transactional batch must show with its append: nothing when its transaction
    /// is open here; else a guard, behind which the transaction coordinator may be asked. Thread:
    /// any. Errors: kInvalidProducerEpoch, kClosed, the log's own failure.
    [[nodiscard]] Result<Verification> begin_verification(base::ProducerId producer,
                                                          base::ProducerEpoch epoch,
                                                          std::int32_t base_sequence,
                                                          bool supports_epoch_bump)
        KAAS_EXCLUDES(mutex_);
    /// Ends a producer's transaction: appends the control batch and, once it is synced (whatever
    /// `flush.messages` says) and the session checked, runs `done` on `home`, as of an `Append`
    /// with kAll. Repeating one is harmless. Thread: any. Errors, with which `done` does not run:
    /// kInvalidProducerEpoch, kTransactionCoordinatorFenced, kClosed, the log's own failure.
    [[nodiscard]] Result<void> append_marker(const Marker& marker, base::Executor& home,
                                             std::move_only_function<void(Result<Appended>)> done)
        KAAS_EXCLUDES(mutex_, view_mutex_);

    /// Whole batches from the one that holds `read.from` on, at most `max_bytes`, from one segment.
    /// Thread: any with kNever; one that may block with kMayBlock. Errors: kWouldBlock (run it
    /// again on the I/O pool, with kMayBlock), kOffsetOutOfRange (after a session check),
    /// kWrongEpoch, kUnknownEpoch, kClosed, kFenced, the volume's; kCorrupt when the batch there is
    /// damaged or its file is gone, which a line of the log names once. What is before is given.
    [[nodiscard]] Result<ReadResult> read(const Read& read, Patience patience)
        KAAS_EXCLUDES(view_mutex_);

    /// Thread: any. `wake` may run before this returns, if `home` runs work at once.
    [[nodiscard]] WatchId watch(Watch watch) KAAS_EXCLUDES(view_mutex_);
    /// After this returns `wake` is not posted any more; it may be on its way.
    void unwatch(WatchId id) KAAS_EXCLUDES(view_mutex_);

    /// Where the log begins and ends for readers. Thread: any. Errors: the log's own failure.
    [[nodiscard]] Result<OffsetAndTimestamp> earliest() const KAAS_EXCLUDES(view_mutex_);
    [[nodiscard]] Result<OffsetAndTimestamp> latest(Isolation isolation) const
        KAAS_EXCLUDES(view_mutex_);
    /// The first record that is not older than `timestamp_ms`; empty when all are. Decodes at most
    /// one batch. Thread: one that may block. Errors: as `read`.
    [[nodiscard]] Result<std::optional<OffsetAndTimestamp>> first_at_or_after(
        std::int64_t timestamp_ms, Isolation isolation) KAAS_EXCLUDES(view_mutex_);
    /// The first record that has the largest timestamp of all (KIP-734); empty when it may not be
    /// seen yet. As `first_at_or_after`.
    [[nodiscard]] Result<std::optional<OffsetAndTimestamp>> of_max_timestamp(Isolation isolation)
        KAAS_EXCLUDES(view_mutex_);
    /// OffsetForLeaderEpoch. Thread: any. Errors: kWrongEpoch, kUnknownEpoch of
    /// `current_leader_epoch`.
    [[nodiscard]] Result<LeaderEpochs::End> end_of_epoch(base::LeaderEpoch epoch,
                                                         std::int32_t current_leader_epoch) const
        KAAS_EXCLUDES(view_mutex_);

    /// One session check, for answers that clients act upon (an offset out of range, a diverging
    /// epoch): DESIGN rule 7. Thread: one that may block. Errors: kFenced, kIo.
    [[nodiscard]] Result<void> confirm_session() const;

    [[nodiscard]] LogView view() const KAAS_EXCLUDES(view_mutex_);
    [[nodiscard]] base::LeaderEpoch epoch() const { return epoch_; }
    [[nodiscard]] LogDir& log_dir() const { return log_dir_; }
    [[nodiscard]] const std::string& directory() const { return *paths_.directory; }
    /// What a client believes against what is (KIP-320); -1: it does not say. Thread: any. Errors:
    /// kWrongEpoch, kUnknownEpoch.
    [[nodiscard]] Result<void> check_epoch(std::int32_t current_leader_epoch) const;
    /// The epoch whose directory holds the newest state: what the assignment calls written. Empty
    /// when the partition was never written. Thread: any.
    [[nodiscard]] std::optional<base::LeaderEpoch> written_epoch() const KAAS_EXCLUDES(view_mutex_);
    /// Whether a reader met something in it that could not be served. Thread: any.
    [[nodiscard]] bool damaged() const KAAS_EXCLUDES(view_mutex_);
    /// Why the log takes nothing any more. Thread: any.
    [[nodiscard]] std::optional<Error> failure() const KAAS_EXCLUDES(view_mutex_);
    /// False once readers are refused. A log that has ended because its volume is full is read on:
    /// they have only ever seen what was durable before. Thread: any.
    [[nodiscard]] bool is_readable() const KAAS_EXCLUDES(view_mutex_);

    /// The producers that this log knows, those in flight too. Thread: any.
    [[nodiscard]] std::vector<ProducerImage> producers() const KAAS_EXCLUDES(mutex_);
    /// Forgets those that were silent for `producer.id.expiration.ms`. Thread: any.
    void expire_producers() KAAS_EXCLUDES(mutex_, view_mutex_);
    /// Whether a transaction is open here whose producer has not written since `before_ms`. Thread:
    /// any.
    [[nodiscard]] bool has_late_transaction(std::int64_t before_ms) const KAAS_EXCLUDES(mutex_);

    void set_config(const SharedLogConfig& config) KAAS_EXCLUDES(view_mutex_);
    [[nodiscard]] std::shared_ptr<const LogConfig> config() const KAAS_EXCLUDES(view_mutex_);
    /// `repack` for this log. Thread: one that may compute for long. Errors: as `check_produced`.
    [[nodiscard]] Result<Repacked> repack(base::MutableBytes records,
                                          std::vector<RecordFault>& faults) const
        KAAS_EXCLUDES(view_mutex_);

    /// Lets go of what retention does not keep (`plan_retention`); decides at once, without I/O,
    /// and leaves the rest to the next cycle and the pool. Thread: any.
    void retain() KAAS_EXCLUDES(mutex_, view_mutex_);
    using Trimmed = std::move_only_function<void(Result<base::Offset>)>;
    /// DeleteRecords: the log begins at `before` from now on, durably, or where it begins already
    /// if that is further on; `kHighWatermark` stands for the end. `done` gets the log start on
    /// `home`. Thread: any. Errors, in `done`: kOffsetOutOfRange (below 0, above the high
    /// watermark; after a session check), kClosed, the log's own failure, kFenced, the volume's.
    static constexpr base::Offset kHighWatermark{-1};
    void delete_records(base::Offset before, base::Executor& home, Trimmed done)
        KAAS_EXCLUDES(mutex_, view_mutex_);
    /// When `reclaim` will find something to do; the end of time when nothing waits. Thread: any.
    [[nodiscard]] base::Clock::Steady reclaim_due() const { return reclaim_due_.load(); }
    /// Removes the files of segments that left the log long enough ago, and epochs of which nothing
    /// is left. A reader that holds a file goes on. What fails is tried again later. Thread: one
    /// that may block, one at a time.
    void reclaim() KAAS_EXCLUDES(mutex_, manifest_mutex_, view_mutex_);

    // Compaction's side (partition_log_compaction.cc); `Compaction` and `LogCleaner` call these.
    /// Thread: any.
    [[nodiscard]] CompactionSight compaction_sight() const KAAS_EXCLUDES(view_mutex_);
    [[nodiscard]] LastBatches last_batches() const KAAS_EXCLUDES(mutex_);
    /// Keeps others from compacting the log, and its files where they are, until `end_compaction`.
    /// False when somebody does already, the log ends or has ended, or its epoch has not begun;
    /// then it begins. Thread: any.
    [[nodiscard]] bool begin_compaction() KAAS_EXCLUDES(mutex_, manifest_mutex_);
    void end_compaction() KAAS_EXCLUDES(mutex_);
    /// A segment that nothing names yet, alone in the fresh directory of a compaction whose number
    /// is durable. Thread: one that may block. Errors: kClosed, kFenced, the volume's.
    [[nodiscard]] Result<std::shared_ptr<Segment>> begin_replacement(base::Offset base)
        KAAS_EXCLUDES(manifest_mutex_);
    /// Puts `with`, whose files are durable, in the place of sealed neighbours; nothing when it has
    /// no bytes. Durable on return, and every read from now on sees it; what it replaced goes after
    /// `file.delete.delay.ms`. Thread: one that may block. Errors: kClosed when the log ends or one
    /// of `old` has left it; any other ends the log.
    [[nodiscard]] Result<void> replace(std::vector<SegmentName> old, const SegmentSpan& with,
                                       std::optional<base::Offset> clean_to)
        KAAS_EXCLUDES(manifest_mutex_, view_mutex_);
    /// Removes what compactions wrote that did not come to their end, also under earlier epochs.
    /// Thread: one that may block, between `begin_compaction` and `end_compaction`.
    [[nodiscard]] Result<void> sweep_compactions() KAAS_EXCLUDES(manifest_mutex_);
    [[nodiscard]] bool has_unfinished_compactions() const KAAS_EXCLUDES(manifest_mutex_);

    /// Hands the epoch back for ever: refuses appends, lets the running cycle finish or fails what
    /// does not within `patience`, writes the last line if the volume lets it. Thread: one that may
    /// block. An error only says that the last line is not there; the release stands.
    [[nodiscard]] Result<void> release(std::chrono::milliseconds patience)
        KAAS_EXCLUDES(mutex_, view_mutex_);
    /// The same for many, all of one log dir: what they write is made durable by two syncs for all
    /// of them, where the volume can do so, and they share the patience. In order of `logs`.
    [[nodiscard]] static std::vector<Result<void>> release_together(
        std::span<const std::shared_ptr<PartitionLog>> logs, std::chrono::milliseconds patience);
    /// Takes no more appends, and begins no checkpoint or upkeep: a release is on its way, and
    /// finds less to wait for. Thread: any.
    void expect_release() KAAS_EXCLUDES(mutex_);
    /// Ends the log at once, for ever, without a last line; what it has acknowledged stays for a
    /// taker to recover. A cycle that runs goes on: see `at_work`. Thread: any.
    void abandon(ErrorCode why) KAAS_EXCLUDES(mutex_, view_mutex_);
    /// As `abandon`, because its topic is deleted: nobody takes it over, and the journal need not
    /// keep anything of it. Thread: any.
    void drop() KAAS_EXCLUDES(mutex_, view_mutex_);
    /// True while a cycle or a checkpoint may touch its files. False for ever once the log has
    /// ended and the last of them has. Thread: any.
    [[nodiscard]] bool at_work() const KAAS_EXCLUDES(mutex_);
    /// The watchdog's: fails every ticket with kStalled. The batches stay in the log's future, and
    /// a duplicate of one resolves with it. Thread: any.
    void fail_stalled() KAAS_EXCLUDES(mutex_);

    // The commit cycle's side (`CommitMember`).
    void checkpoint_due() override KAAS_EXCLUDES(mutex_);
    Pace take() override KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool begins() const override {
        return !cycle_->error && !begun_ && (!cycle_->pieces.empty() || cycle_->prepares_upkeep);
    }
    void make_files() override;
    void write_picture() override;
    void all_synced(const Result<void>& outcome) override;
    void write() override;
    [[nodiscard]] File* to_sync() override;
    void synced(const Result<void>& outcome) override;
    [[nodiscard]] const JournalEntry* to_journal() override;
    void journaled(const Result<void>& outcome) override;
    [[nodiscard]] bool awaits_write() const override { return cycle_->awaits_write; }
    void answer_written(const Result<void>& check, Wakeups& wakeups) override KAAS_EXCLUDES(mutex_);
    void settle(const Result<void>& check, Wakeups& wakeups) override
        KAAS_EXCLUDES(mutex_, view_mutex_);

private:
    /// What stands between two segments: how the old one ends, and the producers' state there.
    struct Roll {
        std::optional<TimeEntry> last_time_entry;
        std::vector<ProducerImage> producers;
    };
    /// Bytes on their way to the file.
    struct Piece {
        base::FrameRef frame;
        base::ByteView bytes;
        base::Offset base_offset;
        std::int32_t records = 0;
        SegmentPlan::Placement placement{};
        std::unique_ptr<Roll> roll_before{};
        /// A marker: whoever hears of it forgets the transaction, so it must not be lost.
        bool must_sync = false;
        bool begins_transaction = false;
        std::optional<CompletedTransaction> ends{};
    };
    /// Somebody who waits.
    struct Ticket {
        Acks acks = Acks::kNone;
        Appended appended{};
        base::Executor* home = nullptr;
        std::move_only_function<void(Result<Appended>)> done;
    };
    /// The producers as they are at an offset.
    struct ProducersAt {
        base::Offset at;
        std::vector<ProducerImage> producers;
    };
    /// What a cycle works with, by itself: one thread at a time, handed on by the log dir.
    struct Cycle {
        std::vector<Piece> pieces;
        std::optional<ProducersAt> checkpoint;
        std::unique_ptr<Roll> roll_after;  ///< behind all pieces
        std::optional<Error> error;
        std::unique_ptr<EpochLog> fresh_epoch_log;  ///< its picture is written, not durable yet
        std::unique_ptr<JournalEntry> entry;        ///< what it has for the journal
        std::size_t entry_from = 0;  ///< the first of `pieces` that no roll has synced
        std::vector<SegmentSpan> newly_sealed;
        bool prepares_upkeep = false;
        bool awaits_write = false;
        bool flushes = false;  ///< it leaves nothing unsynced

        [[nodiscard]] bool writes() const { return !pieces.empty() || roll_after != nullptr; }
    };
    /// A job on the pool. One that is only queued dies with the log: nobody waits for the queue.
    enum class PoolJob { kNone, kQueued, kRunning };
    /// Somebody who waits for a new log start.
    struct Trim {
        base::Offset before;
        base::Executor* home;
        Trimmed done;
    };
    struct Watcher {
        WatchId id;
        Watch watch;
        std::uint64_t until_bytes;  ///< of `seen_bytes`
    };

    PartitionLog(PartitionLogOptions options, Opened opened);
    static std::shared_ptr<PartitionLog> make(PartitionLogOptions options, Opened opened);

    [[nodiscard]] Result<wire::BatchView> take_batch(const Append& request, const LogConfig& config,
                                                     std::int64_t now_ms,
                                                     std::vector<RecordFault>* faults) const;
    [[nodiscard]] Result<void> check_open() const KAAS_REQUIRES(mutex_);
    /// A batch that was judged good; `bytes` are its own, in `frame`.
    struct Judged {
        base::FrameRef frame;
        base::MutableBytes bytes;
        wire::BatchHeader header;
        std::int64_t now_ms;
        const Marker* marker = nullptr;
    };
    /// Gives it its offsets, for the next cycle. Errors: kInvalidRecord when no offsets are left.
    [[nodiscard]] Result<base::Offset> place(Judged batch, const LogConfig& config)
        KAAS_REQUIRES(mutex_);
    [[nodiscard]] std::unique_ptr<Roll> plan_roll(std::int64_t now_ms, const LogConfig& config)
        KAAS_REQUIRES(mutex_);
    void tell_idle() KAAS_REQUIRES(mutex_);
    void add_ticket(Append& request, const Appended& appended) KAAS_REQUIRES(mutex_);
    void ask_for_cycle() KAAS_REQUIRES(mutex_);
    /// The log ends here: nothing is taken, nothing settles, every ticket fails.
    void end(const Error& why, Wakeups& wakeups) KAAS_REQUIRES(mutex_) KAAS_EXCLUDES(view_mutex_);
    static void answer(Ticket ticket, const Result<void>& outcome, Wakeups& wakeups);

    /// A sync of records has failed: readers must not see what may be lost.
    [[nodiscard]] Result<void> unless_lost(Result<void> outcome) KAAS_EXCLUDES(view_mutex_);

    // On the cycle's thread.
    [[nodiscard]] std::int64_t unsynced_for_ms() const;
    /// Whether this cycle must leave nothing unsynced (`flush.messages`, `flush.ms`).
    [[nodiscard]] bool must_flush() const;
    [[nodiscard]] Result<void> write_pieces();
    [[nodiscard]] Result<void> write_run(std::size_t from, std::size_t to);
    /// What an epoch begins with: its directory and first segment, durable before the picture,
    /// which is durable before anything is built on it.
    [[nodiscard]] Result<void> make_epoch_files(Syncs syncs) KAAS_EXCLUDES(manifest_mutex_);
    [[nodiscard]] Result<void> write_epoch_picture(Syncs syncs) KAAS_EXCLUDES(manifest_mutex_);
    /// The picture is durable: from now on its manifest is acted upon.
    void begin_epoch() KAAS_EXCLUDES(manifest_mutex_);
    [[nodiscard]] Result<void> roll(Roll& roll);
    /// Writes a `.snapshot` for Apache's tools, unless there is one of that offset.
    [[nodiscard]] Result<void> write_snapshot(base::Offset at,
                                              const std::vector<ProducerImage>& producers,
                                              Syncs syncs = Syncs::kNow);
    void publish(Wakeups& wakeups) KAAS_REQUIRES(mutex_) KAAS_EXCLUDES(view_mutex_);
    void wake_watchers(Wakeups& wakeups) KAAS_REQUIRES(view_mutex_);
    /// Counts the bytes of this cycle that became visible, and those that became stable.
    void count_bytes() KAAS_REQUIRES(view_mutex_);
    [[nodiscard]] std::uint64_t seen_bytes(Isolation isolation) const KAAS_REQUIRES(view_mutex_) {
        return isolation == Isolation::kReadCommitted ? stable_bytes_ : visible_bytes_;
    }
    /// True when the cycle's checkpoint is to be written out now.
    [[nodiscard]] bool consider_checkpoint(std::uint64_t bytes) KAAS_REQUIRES(mutex_);
    /// Of a checkpoint that is due, at the next look.
    void remind() KAAS_REQUIRES(mutex_);

    // On the I/O pool.
    /// False when it runs already, or the log ends or has ended: then nothing is to be written.
    [[nodiscard]] bool begin_job(PoolJob PartitionLog::* job) KAAS_EXCLUDES(mutex_);
    void end_job(PoolJob PartitionLog::* job) KAAS_EXCLUDES(mutex_);
    /// The manifest vouches durably for the segment up to `end`; the journal may forget it, unless
    /// the log has ended meanwhile: then its taker may have read the manifest before.
    void tell_journal(base::Offset end) KAAS_EXCLUDES(mutex_);
    /// Nobody will take this log over.
    void forget_in_journal();

    // Checkpoints (partition_log_checkpoint.cc): a cycle queues one, the pool writes it.
    class CheckpointJob;
    void queue_checkpoint();
    [[nodiscard]] Result<void> flush_indexes(Segment& segment, const SegmentFacts& facts,
                                             Syncs syncs) KAAS_EXCLUDES(manifest_mutex_);
    /// What must be synced for the line to be durable; nothing when a roll has said more.
    [[nodiscard]] Result<std::optional<EpochLog::Unsynced>> record_checkpoint(
        const SegmentFacts& facts, std::vector<ProducerImage> producers)
        KAAS_EXCLUDES(manifest_mutex_);
    [[nodiscard]] Result<void> checkpoint_synced(const EpochLog::Unsynced& line,
                                                 const Result<void>& outcome, base::Offset end)
        KAAS_EXCLUDES(mutex_, manifest_mutex_);
    [[nodiscard]] Result<void> tidy_manifest() KAAS_EXCLUDES(manifest_mutex_);
    /// A checkpoint has recorded all up to `end`. If that is all there is, gives back what makes
    /// the next batch quicker, and is too much for each of thousands that are idle.
    void rest(base::Offset end) KAAS_EXCLUDES(mutex_, view_mutex_);
    void note_checkpoint(base::Offset end, const Result<void>& outcome)
        KAAS_EXCLUDES(mutex_, manifest_mutex_);
    void end_by_checkpoint(const Error& why) KAAS_EXCLUDES(mutex_);

    // The end (partition_log_release.cc).
    /// Ends the log once its running cycle and jobs have, or at the deadline. Errors: kStalled when
    /// they have not: its files are theirs still.
    [[nodiscard]] Result<void> end_by(base::Clock::Steady deadline)
        KAAS_EXCLUDES(mutex_, view_mutex_);
    /// What the last line vouches for, durable before it.
    [[nodiscard]] Result<void> finish_files(Syncs syncs) KAAS_EXCLUDES(mutex_, manifest_mutex_);
    [[nodiscard]] Result<void> write_last_line(Syncs syncs) KAAS_EXCLUDES(mutex_, manifest_mutex_);

    // Upkeep (partition_log_upkeep.cc): a cycle prepares it, the pool does it.
    void want_upkeep() KAAS_REQUIRES(mutex_);
    void keep_up() KAAS_EXCLUDES(mutex_, manifest_mutex_, view_mutex_);
    [[nodiscard]] Result<void> move_start(base::Offset wanted)
        KAAS_EXCLUDES(mutex_, manifest_mutex_, view_mutex_);
    [[nodiscard]] RetentionPlan retention_of(const LogView& view, base::Offset log_start) const
        KAAS_EXCLUDES(view_mutex_);
    /// The files of these segments, which the manifest has dropped durably and no view shows any
    /// more, go after `file.delete.delay.ms`.
    void discard(std::span<const SegmentName> names) KAAS_REQUIRES(manifest_mutex_)
        KAAS_EXCLUDES(view_mutex_);
    /// Behind a line in the manifest, before it shows: the session stands, and so does the log. An
    /// ended one may have been taken over under the same session, by somebody who read the manifest
    /// before that line.
    [[nodiscard]] Result<void> confirm_line() const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> remove_files(std::span<const SegmentName> names);
    [[nodiscard]] Result<void> remove_old_epochs() KAAS_EXCLUDES(manifest_mutex_);
    [[nodiscard]] Result<void> record_and_show(std::vector<SegmentName> old,
                                               const SegmentSpan& with,
                                               std::optional<base::Offset> clean_to)
        KAAS_EXCLUDES(manifest_mutex_, view_mutex_);
    [[nodiscard]] base::Clock::Steady after_delete_delay() const KAAS_EXCLUDES(view_mutex_);
    void plan_reclaim() KAAS_REQUIRES(manifest_mutex_);

    [[nodiscard]] Result<ReadResult> read_once(const Read& read, Patience patience)
        KAAS_EXCLUDES(view_mutex_);
    /// Where the records of a read end, or a little behind: as Apache computes it, who asks which
    /// transactions were aborted up to there is told the same ones.
    [[nodiscard]] Result<base::Offset> upper_bound_of(const LogView& view, const SegmentSpan& span,
                                                      std::uint64_t end, Patience patience) const;
    /// Fills in the records of a read and how many bytes are available.
    [[nodiscard]] Result<void> find_records(const LogView& view, const Read& read,
                                            Patience patience, ReadResult& result)
        KAAS_EXCLUDES(view_mutex_);
    struct Start {
        std::uint64_t position;
        std::optional<base::Offset> base{};  ///< of the batch there, or no higher (`Stretch`)
    };
    [[nodiscard]] Result<Start> start_of(const SegmentSpan& span, base::Offset offset,
                                         Patience patience) KAAS_EXCLUDES(view_mutex_);
    [[nodiscard]] LeaderEpochs epochs() const KAAS_EXCLUDES(view_mutex_);
    /// A reader at `from` met something. Gives what it is to be told.
    [[nodiscard]] Error note_damage(base::Offset from, Error error) KAAS_EXCLUDES(view_mutex_);
    /// So that whoever goes on reading where a slice ends finds the place at once.
    void remember(const SegmentSpan& span, base::Offset offset, std::uint64_t position)
        KAAS_EXCLUDES(view_mutex_);
    [[nodiscard]] base::Offset log_start() const KAAS_EXCLUDES(view_mutex_);
    [[nodiscard]] Result<void> check_readable() const KAAS_REQUIRES(view_mutex_);
    [[nodiscard]] Result<LogView> open_view() const KAAS_EXCLUDES(view_mutex_);
    [[nodiscard]] Patience allowed(Patience patience) const;

    LogDir& log_dir_;
    const PartitionPaths paths_;
    const base::LeaderEpoch epoch_;
    /// Of its entries in the journal; none when it cannot have any.
    const std::optional<JournalKey> journal_key_;
    Volume& volume_;

    // Appending. Lock order: mutex_ before view_mutex_ and the log dir's own.
    mutable base::Mutex mutex_;
    /// Made by who waits for the end of a cycle or job: few logs ever see one.
    std::unique_ptr<base::CondVar> idle_ KAAS_GUARDED_BY(mutex_);
    std::shared_ptr<const Error> ended_ KAAS_GUARDED_BY(mutex_);
    bool draining_ KAAS_GUARDED_BY(mutex_) = false;
    bool deleted_ KAAS_GUARDED_BY(mutex_) = false;
    bool asked_for_cycle_ KAAS_GUARDED_BY(mutex_) = false;
    bool in_cycle_ KAAS_GUARDED_BY(mutex_) = false;
    base::Offset next_offset_ KAAS_GUARDED_BY(mutex_);
    SegmentPlan plan_ KAAS_GUARDED_BY(mutex_);
    ProducerState producers_ KAAS_GUARDED_BY(mutex_);
    std::vector<Piece> pending_ KAAS_GUARDED_BY(mutex_);
    std::vector<Ticket> pending_tickets_ KAAS_GUARDED_BY(mutex_);
    std::vector<Ticket> cycle_tickets_ KAAS_GUARDED_BY(mutex_);
    bool checkpoint_wanted_ KAAS_GUARDED_BY(mutex_) = false;
    bool reminder_set_ KAAS_GUARDED_BY(mutex_) = false;
    PoolJob checkpoint_job_ KAAS_GUARDED_BY(mutex_) = PoolJob::kNone;
    /// Written since the last checkpoint, and whether the next one has anything to vouch for.
    std::uint64_t unrecorded_bytes_ KAAS_GUARDED_BY(mutex_) = 0;
    bool unrecorded_ KAAS_GUARDED_BY(mutex_) = false;
    bool upkeep_wanted_ KAAS_GUARDED_BY(mutex_) = false;
    bool roll_wanted_ KAAS_GUARDED_BY(mutex_) = false;
    std::vector<Trim> trims_ KAAS_GUARDED_BY(mutex_);
    PoolJob upkeep_job_ KAAS_GUARDED_BY(mutex_) = PoolJob::kNone;
    PoolJob reclaim_job_ KAAS_GUARDED_BY(mutex_) = PoolJob::kNone;
    PoolJob compaction_job_ KAAS_GUARDED_BY(mutex_) = PoolJob::kNone;

    // Of cycles; one thread at a time, handed on by the log dir, or under `mutex_` between two.
    std::unique_ptr<Cycle> cycle_;  ///< none while the log rests
    bool begun_ = false;  ///< the epoch has its directory, first segment and manifest, durably
    std::shared_ptr<Segment> active_;
    std::shared_ptr<File> active_log_;   ///< none while the log rests
    SegmentFacts written_;               ///< the active segment, as far as it is written
    std::uint64_t synced_bytes_ = 0;     ///< of it, as far as it is synced
    std::int64_t unsynced_records_ = 0;  ///< written, and durable nowhere
    base::Clock::Steady last_sync_{};
    bool checkpoints_fail_ = false;  ///< the running checkpoint's: there is one at a time
    // The manifest: `roll` on the cycle's thread, checkpoints on the pool.
    mutable base::Mutex manifest_mutex_;
    /// Set once its picture is durable.
    std::unique_ptr<EpochLog> epoch_log_ KAAS_GUARDED_BY(manifest_mutex_);
    Manifest manifest_ KAAS_GUARDED_BY(manifest_mutex_);
    Discards discards_ KAAS_GUARDED_BY(manifest_mutex_);
    /// When to look for earlier epochs of which nothing is left.
    base::Clock::Steady sweep_due_ KAAS_GUARDED_BY(manifest_mutex_) = base::Clock::Steady::max();
    std::atomic<base::Clock::Steady> reclaim_due_ = base::Clock::Steady::max();

    // What readers see.
    mutable base::Mutex view_mutex_;
    std::shared_ptr<const LogConfig> config_ KAAS_GUARDED_BY(view_mutex_);
    LogView view_ KAAS_GUARDED_BY(view_mutex_);
    LeaderEpochs epochs_ KAAS_GUARDED_BY(view_mutex_);
    base::Offset clean_to_ KAAS_GUARDED_BY(view_mutex_);
    std::shared_ptr<const Error> failure_ KAAS_GUARDED_BY(view_mutex_);
    /// A sync of records has failed: what readers saw may change under them.
    bool lost_records_ KAAS_GUARDED_BY(view_mutex_) = false;
    std::optional<base::LeaderEpoch> written_epoch_ KAAS_GUARDED_BY(view_mutex_);
    PlaceMemory places_ KAAS_GUARDED_BY(view_mutex_);
    Damages damages_ KAAS_GUARDED_BY(view_mutex_);
    std::vector<Watcher> watchers_ KAAS_GUARDED_BY(view_mutex_);
    WatchId next_watch_ KAAS_GUARDED_BY(view_mutex_) = 1;
    /// Since this log was opened, all and up to the last stable offset: what parked fetches count.
    std::uint64_t visible_bytes_ KAAS_GUARDED_BY(view_mutex_) = 0;
    std::uint64_t stable_bytes_ KAAS_GUARDED_BY(view_mutex_) = 0;
    /// Where open transactions begin, in `visible_bytes_`: the last stable offset may stop there.
    boost::container::flat_map<base::Offset, std::uint64_t> open_at_ KAAS_GUARDED_BY(view_mutex_);
    /// What lies before was there when the log was opened, and is not counted.
    const base::Offset opened_end_;
};

using LogPtr = std::shared_ptr<PartitionLog>;

}  // namespace kaas::storage
