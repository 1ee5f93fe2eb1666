#pragma once

#include "base/executor.h"
#include "storage/error.h"
#include "storage/journal.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace kaas::storage {

/// What a finished piece of a cycle has to tell, gathered so that each executor is woken once
/// (measured: a post per ticket doubles the time and the CPU of a batch).
class Wakeups {
public:
    void add(base::Executor* home, base::Executor::Work work);
    /// Posts what was gathered, one post a home, in order of `add`. Empty afterwards.
    void post();

private:
    std::vector<std::pair<base::Executor*, std::vector<base::Executor::Work>>> homes_;
};

/// One writer's part in the commit cycles of its log dir. A cycle calls, in this order and never
/// two cycles at once: `take`, `write`, `answer_written` (if anybody waits for that alone),
/// `to_sync`, `synced` (if there was a file to sync), `settle`. Thread: the log dir's commit
/// thread, or one that stands in for it while it waits.
class CommitMember {
public:
    virtual ~CommitMember() = default;

    enum class Pace {
        kQuick,  ///< a write into the page cache
        kSlow,   ///< makes files, syncs directories: not on the commit thread when others wait
    };
    /// The time that `LogDir::remind` was asked for has come.
    virtual void checkpoint_due() = 0;
    /// Takes all that is pending; what comes later belongs to the next cycle.
    virtual Pace take() = 0;
    /// After `take`: true when `write` would first make the files of an epoch, and their picture.
    /// A cycle with many of those calls `make_files` and `write_picture` on each before, syncs all
    /// of them together behind each step, and tells what became of it.
    [[nodiscard]] virtual bool begins() const { return false; }
    virtual void make_files() {}
    virtual void write_picture() {}
    virtual void all_synced(const Result<void>& /*outcome*/) {}
    /// Writes what was taken. Its error is kept for `settle`.
    virtual void write() = 0;
    /// The file that must be synced before this cycle may settle; null when there is none.
    [[nodiscard]] virtual File* to_sync() = 0;
    virtual void synced(const Result<void>& outcome) = 0;
    /// All that `to_sync`'s file lacks to be durable, for the journal to keep instead; null when
    /// only the file's sync will do. Valid until `settle`.
    [[nodiscard]] virtual const JournalEntry* to_journal() { return nullptr; }
    /// The entry is durable, or the cycle has failed for this member.
    virtual void journaled(const Result<void>& /*outcome*/) {}
    /// True when tickets wait for the write alone (acks=1).
    [[nodiscard]] virtual bool awaits_write() const = 0;
    virtual void answer_written(const Result<void>& check, Wakeups& wakeups) = 0;
    /// The end of the cycle: what was written and synced counts if the check was good.
    virtual void settle(const Result<void>& check, Wakeups& wakeups) = 0;
};

/// One commit cycle of a log dir (DESIGN 7): writes what all members have pending, makes it durable
/// with syncs side by side, checks the session once, wakes everybody.
///
/// Passive: `run` does all, or a test calls the steps in order and lets things happen between them.
class CommitCycle {
public:
    struct Context {
        SessionCheck* session;
        base::Executor* io_pool;                ///< null: everything on the caller's thread
        std::size_t width;                      ///< threads of the pool that a cycle may use
        Volume* volume = nullptr;               ///< none: each member syncs what it makes
        Journal* journal = nullptr;             ///< none: every file is synced by itself
        std::uint64_t journal_entry_bytes = 0;  ///< what a member has more of goes to its file
    };

    CommitCycle(std::vector<std::shared_ptr<CommitMember>> members, Context context);

    void write();
    /// Answers acks=1 after a check of its own; nothing when nobody asks for it.
    void answer_written();
    void sync();
    void confirm();
    void settle();

    void run() {
        write();
        answer_written();
        sync();
        confirm();
        settle();
    }

    [[nodiscard]] const Result<void>& check() const { return check_; }

private:
    struct Dirty {
        CommitMember* member;
        File* file;
        const JournalEntry* entry;  ///< none: the file is synced
    };
    void begin_together(std::span<CommitMember* const> members) const;
    [[nodiscard]] std::vector<Dirty> gather();
    /// Leaves the entries only if the journal has room for them.
    void choose(std::vector<Dirty>& dirty) const;
    void commit_to_journal(std::span<const Dirty> dirty) const;

    const std::vector<std::shared_ptr<CommitMember>> members_;
    const Context context_;
    Result<void> check_;
    Wakeups wakeups_;
};

/// Calls `job(i)` for all i below `count`, on the caller's thread and up to `width` threads of
/// `pool`, and returns when all are done.
void run_side_by_side(base::Executor* pool, std::size_t width, std::size_t count,
                      const std::function<void(std::size_t)>& job);

}  // namespace kaas::storage
