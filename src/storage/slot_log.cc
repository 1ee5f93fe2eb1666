#include "storage/slot_log.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mutex.h"
#include "storage/commit_cycle.h"
#include "storage/epoch_log.h"
#include "storage/error.h"
#include "storage/journal.h"
#include "storage/owner.h"
#include "storage/slot_recovery.h"
#include "storage/volume.h"

#include <boost/json/object.hpp>

#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {

namespace json = boost::json;

// ---- the coordinator's side -------------------------------------------------------------------

void SlotLog::append(std::string change) {
    base::MutexLock lock(mutex_);
    if (ended_ || draining_) return;
    if (!has_picture_) {
        awaits_picture_ = true;
        wants_picture_ = true;
        return;
    }
    pending_.push_back(std::move(change));
    // No cycle for it alone: a settle mostly follows at once, and both are one cycle's work then.
    remind();
}

void SlotLog::begin_file(json::object picture) {
    base::MutexLock lock(mutex_);
    if (ended_ || draining_) return;
    // Nothing is in a file yet: the picture stands for all of it. Later ones do not: who reads one
    // whose name is not durable yet must find the same when that is lost.
    if (!picture_taken_) pending_.clear();
    pending_picture_ = std::move(picture);
    pending_before_picture_ = pending_.size();
    has_picture_ = true;
    awaits_picture_ = false;
    wants_picture_ = false;
    ask_for_cycle();
}

void SlotLog::settle(base::Executor& home, Settled done) {
    std::optional<Error> refused;
    {
        base::MutexLock lock(mutex_);
        refused = ended_;
        if (!refused && draining_)
            refused = Error{ErrorCode::kClosed, options_.directory + " is being released"};
        if (!refused) {
            pending_tickets_.push_back({&home, std::move(done)});
            if (!awaits_picture_) ask_for_cycle();
            return;
        }
    }
    home.post([done = std::move(done), why = std::move(*refused)]() mutable {
        done(std::unexpected(std::move(why)));
    });
}

std::optional<base::LeaderEpoch> SlotLog::written_epoch() const {
    base::MutexLock lock(mutex_);
    return written_epoch_;
}

std::optional<Error> SlotLog::failure() const {
    base::MutexLock lock(mutex_);
    return ended_;
}

void SlotLog::ask_for_cycle() {
    if (std::exchange(asked_for_cycle_, true)) return;
    options_.log_dir->enqueue(shared_from_this());
}

void SlotLog::remind() {
    if (!std::exchange(reminder_set_, true)) options_.log_dir->remind(shared_from_this());
}

// ---- a cycle ----------------------------------------------------------------------------------

CommitMember::Pace SlotLog::take() {
    base::MutexLock lock(mutex_);
    asked_for_cycle_ = false;
    in_cycle_ = true;
    cycle_error_.reset();
    unsynced_ = {};
    roll_due_ = false;
    if (ended_) {
        cycle_error_ = *ended_;  // nothing of it is synced again: its descriptor may have failed
        return Pace::kQuick;
    }
    if (awaits_picture_) return Pace::kQuick;
    lines_.swap(pending_);  // both keep their memory for the next cycle
    picture_ = std::exchange(pending_picture_, std::nullopt);
    lines_before_picture_ = picture_ ? pending_before_picture_ : 0;
    picture_taken_ = picture_taken_ || picture_;
    cycle_tickets_.swap(pending_tickets_);
    return picture_ ? Pace::kSlow : Pace::kQuick;
}

void SlotLog::make_files() {
    if (auto made = create(Syncs::kLater); !made) cycle_error_ = std::move(made).error();
}

void SlotLog::all_synced(const Result<void>& outcome) {
    if (!outcome && !cycle_error_) cycle_error_ = outcome.error();
    if (!cycle_error_ && fresh_) begin_epoch();
}

void SlotLog::write() {
    if (cycle_error_) return;
    if (auto written = write_taken(); !written) cycle_error_ = std::move(written).error();
}

Result<void> SlotLog::write_taken() {
    if (!begun_ && picture_) {
        KAAS_TRY(create(Syncs::kNow));
        begin_epoch();
    }
    if (!begun_) return {};
    const std::span<const std::string> lines(lines_);
    base::MutexLock lock(file_mutex_);
    if (picture_) {
        KAAS_TRY(log_->append_text(lines.first(lines_before_picture_)));
        KAAS_TRY(roll());
    }
    const auto rest = lines.subspan(lines_before_picture_);
    if (!rest.empty()) {
        uncovered_ = std::exchange(hint_, {});
        KAAS_TRY(log_->append_text(rest, &uncovered_));
        unsynced_ = log_->unsynced();
    }
    roll_due_ = log_->wants_roll();
    return {};
}

json::object SlotLog::take_picture() {
    auto picture = std::exchange(picture_, std::nullopt);
    KAAS_ASSERT(!picture->contains(kOwnerKey) && !picture->contains(kJournalKey));
    const auto& owner = options_.log_dir->options().owner;
    json::object all{{kOwnerKey, to_json(owner)}};
    if (journal_key_) all.emplace(kJournalKey, JournalPath::of(owner).name);
    for (auto& [key, value] : *picture) all.emplace(key, std::move(value));
    return all;
}

Result<void> SlotLog::create(Syncs syncs) {
    KAAS_ASSERT(lines_before_picture_ == 0);
    if (!durable_by_name_) {
        const auto parent = options_.directory.substr(0, options_.directory.rfind('/'));
        KAAS_TRY(sync_directory(volume_, parent, syncs));
    }
    KAAS_TRY_ASSIGN(
        log, EpochLog::create(volume_, path(), options_.epoch.value(), take_picture(),
                              {.syncs = syncs, .roll_floor_bytes = options_.roll_floor_bytes}));
    fresh_ = std::make_unique<EpochLog>(std::move(log));
    return {};
}

void SlotLog::begin_epoch() {
    base::MutexLock lock(file_mutex_);
    log_ = std::move(fresh_);
    begun_ = true;
}

Result<void> SlotLog::roll() {
    KAAS_TRY(log_->roll(take_picture()));
    hint_.clear();
    // No checkpoint tells it: those sync what is new in this file. Before or behind the removal is
    // the same: who recovers passes over entries of files before the picture's.
    tell_journal(slot_place(log_->file(), 0));
    if (auto removed = log_->remove_superseded(options_.log_dir->session()); !removed) {
        base::log::info("storage", "{}: superseded files stay for now: {}", options_.directory,
                        removed.error().context);
    }
    return {};
}

File* SlotLog::to_sync() { return cycle_error_ ? nullptr : unsynced_.file.get(); }

void SlotLog::synced(const Result<void>& outcome) {
    if (auto noted = note_synced(unsynced_, outcome); !noted)
        cycle_error_ = std::move(noted).error();
}

const JournalEntry* SlotLog::to_journal() {
    if (!journal_key_ || !has_slot_place(unsynced_.number, unsynced_.end)) return nullptr;
    entry_.key = *journal_key_;
    entry_.base = slot_place(unsynced_.number, unsynced_.end - uncovered_.size());
    entry_.end = slot_place(unsynced_.number, unsynced_.end);
    entry_.batches.assign(1, base::as_bytes(uncovered_));
    return &entry_;
}

void SlotLog::journaled(const Result<void>& outcome) {
    if (!outcome) cycle_error_ = outcome.error();
}

void SlotLog::tell_journal(base::Offset end) {
    // Also of a log that has ended meanwhile: what a sync has proven stays so, and an EpochLog
    // takes no proof after a sync that failed.
    if (!journal_key_) return;
    options_.log_dir->journal()->recorded(*journal_key_, end);
}

void SlotLog::forget_in_journal() {
    if (!journal_key_) return;
    options_.log_dir->journal()->superseded(journal_key_->partition,
                                            base::LeaderEpoch{options_.epoch.value() + 1});
}

void SlotLog::settle(const Result<void>& check, Wakeups& wakeups) {
    uncovered_.clear();
    if (settle_and_look(check, wakeups)) forget_in_journal();
}

bool SlotLog::settle_and_look(const Result<void>& check, Wakeups& wakeups) {
    base::MutexLock lock(mutex_);
    in_cycle_ = false;
    if (!ended_ && (cycle_error_ || !check)) {
        end(cycle_error_ ? *cycle_error_ : check.error(), wakeups);
    } else if (!ended_) {
        if (begun_ && written_epoch_ != options_.epoch) {
            written_epoch_ = options_.epoch;
            old_epochs_left_ = true;
            remind();
        }
        if (!lines_.empty()) remind();
        if (roll_due_ && !pending_picture_) wants_picture_ = true;
        for (auto& ticket : cycle_tickets_) answer(std::move(ticket), check, wakeups);
        cycle_tickets_.clear();
    }
    lines_.clear();
    picture_.reset();
    unsynced_ = {};
    idle_.notify_all();
    return deleted_;
}

void SlotLog::answer(Ticket ticket, const Result<void>& outcome, Wakeups& wakeups) {
    wakeups.add(ticket.home,
                [done = std::move(ticket.done), outcome]() mutable { done(std::move(outcome)); });
}

void SlotLog::end(const Error& why, Wakeups& wakeups) {
    ended_ = why;
    pending_.clear();
    pending_picture_.reset();
    wants_picture_ = false;
    const Result<void> failed = std::unexpected(why);
    for (auto* tickets : {&cycle_tickets_, &pending_tickets_}) {
        for (auto& ticket : std::exchange(*tickets, {})) answer(std::move(ticket), failed, wakeups);
    }
    idle_.notify_all();
}

// ---- the end ----------------------------------------------------------------------------------

Result<void> SlotLog::release(std::chrono::milliseconds patience) {
    const auto self = shared_from_this();
    return std::move(release_together({&self, 1}, patience).front());
}

std::vector<Result<void>> SlotLog::release_together(std::span<const std::shared_ptr<SlotLog>> logs,
                                                    std::chrono::milliseconds patience) {
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
    auto synced = together ? volume.sync_all() : Result<void>();
    for (const auto i : writers) {
        outcomes[i] = synced;
        if (synced) outcomes[i] = logs[i]->write_last_line(together ? Syncs::kLater : Syncs::kNow);
    }
    if (together) synced = volume.sync_all();
    for (const auto i : writers) {
        if (outcomes[i]) outcomes[i] = synced;
        if (outcomes[i]) logs[i]->forget_in_journal();
    }
    return outcomes;
}

void SlotLog::expect_release() {
    base::MutexLock lock(mutex_);
    draining_ = true;
    wants_picture_ = false;
}

Result<void> SlotLog::end_by(base::Clock::Steady deadline) {
    Wakeups wakeups;
    bool finished = false;
    {
        base::MutexLock lock(mutex_);
        const auto busy = [&]() KAAS_REQUIRES(mutex_) {
            return in_cycle_ || asked_for_cycle_ || job_ == PoolJob::kRunning;
        };
        while (!ended_ && busy()) {
            const auto left = deadline - options_.log_dir->clock().now();
            if (left.count() <= 0 || !idle_.wait_for(mutex_, left)) break;
        }
        finished = !ended_ && !busy();
        if (!ended_) end(Error{ErrorCode::kClosed, options_.directory + " was released"}, wakeups);
    }
    wakeups.post();
    if (finished) return {};
    return fail(ErrorCode::kStalled, options_.directory + ": released without its last line");
}

Result<void> SlotLog::write_last_line(Syncs syncs) {
    base::MutexLock lock(file_mutex_);
    return log_->release({}, syncs);
}

void SlotLog::abandon(ErrorCode why) {
    Wakeups wakeups;
    {
        base::MutexLock lock(mutex_);
        if (ended_) return;
        end(Error{why, options_.directory + " was abandoned"}, wakeups);
    }
    wakeups.post();
}

void SlotLog::drop() {
    {
        base::MutexLock lock(mutex_);
        deleted_ = true;  // what a running cycle still gives to the journal is forgotten behind it
    }
    abandon(ErrorCode::kClosed);
    forget_in_journal();
}

bool SlotLog::at_work() const {
    base::MutexLock lock(mutex_);
    return in_cycle_ || job_ == PoolJob::kRunning;
}

void SlotLog::fail_stalled() {
    Wakeups wakeups;
    {
        base::MutexLock lock(mutex_);
        if (ended_ || (cycle_tickets_.empty() && pending_tickets_.empty())) return;
        end(Error{ErrorCode::kStalled, options_.directory + ": the volume does not answer"},
            wakeups);
    }
    wakeups.post();
}

}  // namespace kaas::storage
