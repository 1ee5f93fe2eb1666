#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "storage/commit_cycle.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/journal_format.h"
#include "storage/log_dir.h"

#include <boost/json/object.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::storage {

struct SlotLogOptions {
    LogDir* log_dir = nullptr;
    std::string directory;  ///< `__cluster/groups/<slot>`
    /// The partition of the internal topic that the slot is: its key in the journal.
    base::TopicPartition partition;
    base::LeaderEpoch epoch;
    /// The epochs that may have been written before this one, newest first; empty when this is the
    /// first.
    std::vector<EpochCandidate> earlier;
    /// Changes below this never outweigh a picture. A slot of little state and many changes would
    /// write pictures all the time; a taker reads so much in some 10 ms.
    std::uint64_t roll_floor_bytes = std::uint64_t{1} << 20;
};

struct OpenedSlot;

/// The log of one coordinator slot under one leader epoch (DESIGN 6 and 11): a picture of the
/// slot's state and the changes since, both JSON objects of the coordinator's. A move, a failure, a
/// new epoch: a new object.
///
///     {"log":.., "owner":{"broker":1,"incarnation":".."}, "journal":"1.<incarnation>", ..}
///
/// is the first line of a file; the rest of it is the coordinator's. With a broker journal, a cycle
/// leaves the lines there, which are told by their place in the file (`slot_recovery.h`), and the
/// file is synced by checkpoint. Owns its epoch's directory and everything in it, from its first
/// picture on; until then the slot stands as its predecessor left it. A host replays what was
/// inherited and then, there and after each `append`, gives a picture when `wants_picture` asks for
/// one: before the epoch's first change, and when the changes since the last picture outweigh it.
///
/// Durability: an `append` counts once a `settle` that was called after it has said so. The first
/// failed write or sync or session check ends the log: its error then answers everything. Thread:
/// as each function says; appends, pictures and settles keep the order of their calls.
class SlotLog final : public CommitMember, public std::enable_shared_from_this<SlotLog> {
public:
    static constexpr std::string_view kKind = "slot";
    /// Keys of a picture that are the log's own; the coordinator leaves them alone.
    static constexpr std::string_view kOwnerKey = "owner";
    static constexpr std::string_view kJournalKey = "journal";

    /// Makes the slot's directory in its parent's, which is there, finds the newest state below
    /// `options.epoch`, closes what lies between, checks the session. Thread: one that may block.
    /// Errors: kExists, kNotFound (superseded: ask the controller for a new epoch), kFenced,
    /// kCorrupt with file and offset, the volume's.
    [[nodiscard]] static Result<OpenedSlot> open(SlotLogOptions options);
    ~SlotLog() override;

    /// What was inherited was only read: the host gives a picture at once, and serves nothing
    /// before a `settle` behind it. Thread: any.
    [[nodiscard]] bool must_write_picture() const { return must_write_picture_; }
    /// Thread: any; cheap.
    [[nodiscard]] bool wants_picture() const {
        return wants_picture_.load(std::memory_order_relaxed);
    }

    /// Takes a change: the text of a JSON object, without a newline. A log that ends or has ended
    /// drops it; `settle` tells. Thread: any.
    void append(std::string change) KAAS_EXCLUDES(mutex_);
    /// Starts the next file with a picture, which holds all that was appended so far. Thread: any.
    void begin_file(boost::json::object picture) KAAS_EXCLUDES(mutex_);
    using Settled = std::move_only_function<void(Result<void>)>;
    /// Runs `done` once, on `home`, never within the call: when all that was appended before the
    /// call is durable and a session check that began after it was good, or with what has ended the
    /// log. Without anything to write it costs that check alone. Those of one commit cycle come in
    /// one wake-up per home. Thread: any. Errors: the log's own failure, kClosed, kStalled.
    void settle(base::Executor& home, Settled done) KAAS_EXCLUDES(mutex_);

    [[nodiscard]] base::LeaderEpoch epoch() const { return options_.epoch; }
    [[nodiscard]] LogDir& log_dir() const { return *options_.log_dir; }
    [[nodiscard]] const std::string& directory() const { return options_.directory; }
    /// The epoch whose directory holds the newest state for certain: what the assignment calls
    /// written. Empty when the slot was never written, and while the log's own picture must be
    /// written first. Thread: any.
    [[nodiscard]] std::optional<base::LeaderEpoch> written_epoch() const KAAS_EXCLUDES(mutex_);
    /// Why the log takes nothing any more. Thread: any.
    [[nodiscard]] std::optional<Error> failure() const KAAS_EXCLUDES(mutex_);

    /// Hands the epoch back for ever: takes nothing any more, lets the running cycle finish or
    /// fails what does not within `patience`, writes the last line if the volume lets it. Thread:
    /// one that may block. An error only says that the last line is not there; the release stands.
    [[nodiscard]] Result<void> release(std::chrono::milliseconds patience) KAAS_EXCLUDES(mutex_);
    /// The same for many, all of one log dir: what they write is made durable by two syncs for all
    /// of them, where the volume can do so, and they share the patience. In order of `logs`.
    [[nodiscard]] static std::vector<Result<void>> release_together(
        std::span<const std::shared_ptr<SlotLog>> logs, std::chrono::milliseconds patience);
    /// Takes nothing any more: a release is on its way, and finds less to wait for. Thread: any.
    void expect_release() KAAS_EXCLUDES(mutex_);
    /// Ends the log at once, for ever, without a last line; what has settled stays for a taker. A
    /// cycle that runs goes on: see `at_work`. Thread: any.
    void abandon(ErrorCode why) KAAS_EXCLUDES(mutex_);
    /// As `abandon`, because its topic is deleted: nobody takes it over. Thread: any.
    void drop() KAAS_EXCLUDES(mutex_);
    /// True while a cycle or a job on the pool may touch its files. False for ever once the log has
    /// ended and the last of them has. Thread: any.
    [[nodiscard]] bool at_work() const KAAS_EXCLUDES(mutex_);
    /// The watchdog's: ends the log with kStalled if anybody waits. Unlike a partition's, whose
    /// batches stand alone: a state machine has gone on from the change that nobody can answer for,
    /// and only what a taker reads is its state again. Thread: any.
    void fail_stalled() KAAS_EXCLUDES(mutex_);

    // The commit cycle's side (`CommitMember`).
    void checkpoint_due() override KAAS_EXCLUDES(mutex_);
    Pace take() override KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool begins() const override { return !cycle_error_ && !begun_ && picture_; }
    void make_files() override;
    void all_synced(const Result<void>& outcome) override KAAS_EXCLUDES(file_mutex_);
    void write() override KAAS_EXCLUDES(file_mutex_);
    [[nodiscard]] File* to_sync() override;
    void synced(const Result<void>& outcome) override KAAS_EXCLUDES(file_mutex_);
    [[nodiscard]] const JournalEntry* to_journal() override;
    void journaled(const Result<void>& outcome) override;
    [[nodiscard]] bool awaits_write() const override { return false; }
    void answer_written(const Result<void>& /*check*/, Wakeups& /*wakeups*/) override {}
    void settle(const Result<void>& check, Wakeups& wakeups) override
        KAAS_EXCLUDES(mutex_, file_mutex_);

private:
    /// Somebody who waits.
    struct Ticket {
        base::Executor* home;
        Settled done;
    };
    /// A job on the pool. One that is only queued dies with the log.
    enum class PoolJob { kNone, kQueued, kRunning };

    struct Found {
        std::optional<base::LeaderEpoch> epoch;  ///< whose state counts as it is
        bool durable_by_name = false;            ///< the slot's directory is, for certain
        bool settled = true;
    };

    SlotLog(SlotLogOptions options, const Found& found);

    [[nodiscard]] EpochLogPath path() const {
        return {.directory = options_.directory, .kind = std::string(kKind)};
    }
    void ask_for_cycle() KAAS_REQUIRES(mutex_);
    /// `settle`; true when nobody will ask for the log any more.
    [[nodiscard]] bool settle_and_look(const Result<void>& check, Wakeups& wakeups)
        KAAS_EXCLUDES(mutex_);
    /// The log ends here: nothing is taken, every settle fails.
    void end(const Error& why, Wakeups& wakeups) KAAS_REQUIRES(mutex_);
    static void answer(Ticket ticket, const Result<void>& outcome, Wakeups& wakeups);

    // On the cycle's thread.
    [[nodiscard]] Result<void> write_taken() KAAS_EXCLUDES(file_mutex_);
    /// The epoch's directory and first file, with all names that lead there.
    [[nodiscard]] Result<void> create(Syncs syncs);
    /// The picture is durable: changes may follow.
    void begin_epoch() KAAS_EXCLUDES(file_mutex_);
    [[nodiscard]] Result<void> roll() KAAS_REQUIRES(file_mutex_);
    [[nodiscard]] boost::json::object take_picture();
    /// The file is synced up to `end`, the journal may forget that much; unless the log has ended
    /// meanwhile: then its taker may have read the file before.
    void tell_journal(base::Offset end) KAAS_EXCLUDES(mutex_);
    /// Nobody will take this log over.
    void forget_in_journal();
    /// Of a checkpoint that is due, at the next look.
    void remind() KAAS_REQUIRES(mutex_);

    // Checkpoints, on the I/O pool: they say in the log what is fsynced, and remove what was before
    // this epoch.
    class CheckpointJob;
    [[nodiscard]] bool begin_job() KAAS_EXCLUDES(mutex_);
    void end_job(const Result<void>& outcome) KAAS_EXCLUDES(mutex_, file_mutex_);
    [[nodiscard]] EpochLog::Unsynced unsynced() const KAAS_EXCLUDES(file_mutex_);
    [[nodiscard]] Result<void> note_synced(const EpochLog::Unsynced& what,
                                           const Result<void>& outcome)
        KAAS_EXCLUDES(mutex_, file_mutex_);
    [[nodiscard]] Result<void> write_synced_line() KAAS_EXCLUDES(file_mutex_);
    [[nodiscard]] Result<void> remove_old_epochs() KAAS_EXCLUDES(mutex_);

    // The end.
    [[nodiscard]] Result<void> end_by(base::Clock::Steady deadline) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> write_last_line(Syncs syncs) KAAS_EXCLUDES(file_mutex_);

    const SlotLogOptions options_;
    const bool must_write_picture_;
    const bool durable_by_name_;
    /// Of its entries in the journal; none when there is no journal.
    const std::optional<JournalKey> journal_key_;
    Volume& volume_;

    std::atomic<bool> wants_picture_;

    // Lock order: file_mutex_, mutex_, the log dir's own.
    mutable base::Mutex mutex_;
    base::CondVar idle_;
    std::optional<Error> ended_ KAAS_GUARDED_BY(mutex_);
    bool draining_ KAAS_GUARDED_BY(mutex_) = false;
    bool asked_for_cycle_ KAAS_GUARDED_BY(mutex_) = false;
    bool in_cycle_ KAAS_GUARDED_BY(mutex_) = false;
    /// A picture was given: until then changes stay out of the file, and it will hold them.
    bool has_picture_ KAAS_GUARDED_BY(mutex_) = false;
    /// A change came before the first picture, which has yet to come and stands for it.
    bool awaits_picture_ KAAS_GUARDED_BY(mutex_) = false;
    std::vector<std::string> pending_ KAAS_GUARDED_BY(mutex_);
    std::optional<boost::json::object> pending_picture_ KAAS_GUARDED_BY(mutex_);
    bool picture_taken_ KAAS_GUARDED_BY(mutex_) = false;  ///< by a cycle
    /// So many of `pending_` stand before the picture.
    std::size_t pending_before_picture_ KAAS_GUARDED_BY(mutex_) = 0;
    std::vector<Ticket> pending_tickets_ KAAS_GUARDED_BY(mutex_);
    std::vector<Ticket> cycle_tickets_ KAAS_GUARDED_BY(mutex_);
    std::optional<base::LeaderEpoch> written_epoch_ KAAS_GUARDED_BY(mutex_);
    PoolJob job_ KAAS_GUARDED_BY(mutex_) = PoolJob::kNone;
    bool reminder_set_ KAAS_GUARDED_BY(mutex_) = false;
    bool old_epochs_left_ KAAS_GUARDED_BY(mutex_) = false;
    bool deleted_ KAAS_GUARDED_BY(mutex_) = false;

    // The running cycle's; one thread at a time, handed on by the log dir.
    std::vector<std::string> lines_;
    std::optional<boost::json::object> picture_;
    std::size_t lines_before_picture_ = 0;
    std::optional<Error> cycle_error_;
    EpochLog::Unsynced unsynced_;
    /// What stands before `unsynced_.end` and is durable nowhere, and with it an earlier hint: the
    /// journal's entries leave no hole.
    std::string uncovered_;
    JournalEntry entry_;
    std::unique_ptr<EpochLog> fresh_;  ///< its picture is written, and not durable yet
    bool begun_ = false;               ///< the epoch has its picture, durably
    bool roll_due_ = false;

    /// The file: written on the cycle's thread, checkpoints on the pool.
    mutable base::Mutex file_mutex_;
    std::unique_ptr<EpochLog> log_ KAAS_GUARDED_BY(file_mutex_);
    std::string hint_ KAAS_GUARDED_BY(file_mutex_);  ///< at the file's end, durable nowhere
};

/// What a predecessor left: a picture, and the changes to replay behind it, in order; both without
/// what is the log's own.
struct InheritedSlot {
    boost::json::object picture;
    std::vector<boost::json::object> changes;
    std::string file;                      ///< that all of it stands in
    std::vector<std::uint64_t> offsets{};  ///< of each change in it
};

struct OpenedSlot {
    std::shared_ptr<SlotLog> log;
    std::optional<InheritedSlot> inherited;  ///< empty when the slot was never written
};

}  // namespace kaas::storage
