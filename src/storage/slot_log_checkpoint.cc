#include "base/log.h"
#include "base/mutex.h"
#include "storage/checkpoint_queue.h"
#include "storage/epoch_log.h"
#include "storage/slot_log.h"
#include "storage/slot_recovery.h"
#include "storage/volume.h"

#include <memory>
#include <optional>
#include <utility>

// A slot's checkpoints.

namespace kaas::storage {

class SlotLog::CheckpointJob final : public Checkpoint {
public:
    explicit CheckpointJob(std::shared_ptr<SlotLog> log) : log_(std::move(log)) {}

    bool begin() override { return log_->begin_job(); }

    void flush(Syncs syncs) override {
        what_ = log_->unsynced();
        // Without the log's lock: cycles go on meanwhile.
        if (what_.file && syncs == Syncs::kNow)
            outcome_ = log_->note_synced(what_, what_.file->sync());
    }

    bool record(Syncs /*syncs*/) override {
        what_ = {};
        if (outcome_) outcome_ = log_->write_synced_line();
        return false;  // the line is cheap to lose
    }

    void all_synced(const Result<void>& outcome) override {
        if (what_.file && outcome_) outcome_ = log_->note_synced(what_, outcome);
    }

    void end() override {
        if (outcome_) outcome_ = log_->remove_old_epochs();
        log_->end_job(outcome_);
    }

private:
    const std::shared_ptr<SlotLog> log_;
    EpochLog::Unsynced what_;
    Result<void> outcome_;
};

void SlotLog::checkpoint_due() {
    {
        base::MutexLock lock(mutex_);
        reminder_set_ = false;
        if (ended_ || draining_) return;
        if (!pending_.empty()) ask_for_cycle();
        if (job_ != PoolJob::kNone || written_epoch_ != options_.epoch) return;
        job_ = PoolJob::kQueued;
    }
    options_.log_dir->checkpoints().add(std::make_unique<CheckpointJob>(shared_from_this()));
}

bool SlotLog::begin_job() {
    base::MutexLock lock(mutex_);
    // The last line says more; without one, the next taker does what is left.
    const bool ends = ended_ || draining_;
    job_ = ends ? PoolJob::kNone : PoolJob::kRunning;
    return !ends;
}

EpochLog::Unsynced SlotLog::unsynced() const {
    base::MutexLock lock(file_mutex_);
    return log_->unsynced();
}

Result<void> SlotLog::note_synced(const EpochLog::Unsynced& what, const Result<void>& outcome) {
    base::MutexLock lock(file_mutex_);
    KAAS_TRY(log_->note_synced(what, outcome));
    tell_journal(slot_place(what.number, what.end));
    return {};
}

Result<void> SlotLog::write_synced_line() {
    base::MutexLock lock(file_mutex_);
    return log_->wants_synced_line() ? log_->append_synced({}, &hint_) : Result<void>();
}

Result<void> SlotLog::remove_old_epochs() {
    {
        base::MutexLock lock(mutex_);
        if (!old_epochs_left_) return {};
    }
    forget_in_journals(*options_.log_dir, options_.partition, options_.epoch);
    KAAS_TRY_ASSIGN(names, volume_.list(options_.directory));
    for (const auto& name : names) {
        const auto epoch = parse_epoch_name(name);
        if (!epoch || *epoch >= options_.epoch.value()) continue;
        KAAS_TRY(remove_epoch(volume_, path(), *epoch, options_.log_dir->session()));
    }
    base::MutexLock lock(mutex_);
    old_epochs_left_ = false;
    return {};
}

void SlotLog::end_job(const Result<void>& outcome) {
    std::optional<Error> broken;
    {
        base::MutexLock lock(file_mutex_);
        if (const auto& why = log_->ended_by()) broken = *why;
    }
    if (!outcome && !broken) {
        base::log::info("storage", "{}: earlier epochs stay for now: {}", options_.directory,
                        outcome.error().context);
    }
    Wakeups wakeups;
    {
        base::MutexLock lock(mutex_);
        job_ = PoolJob::kNone;
        if (broken && !ended_) end(*broken, wakeups);
        if (!outcome && !ended_) remind();
        idle_.notify_all();
    }
    wakeups.post();
}

}  // namespace kaas::storage
