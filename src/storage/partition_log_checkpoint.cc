#include "base/log.h"
#include "base/mutex.h"
#include "storage/checkpoint_queue.h"
#include "storage/epoch_log.h"
#include "storage/partition_log.h"
#include "storage/volume.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

// A log's checkpoints: when one is due, and what it writes.

namespace kaas::storage {

/// One checkpoint of a log: its segment as it was at the end of a cycle.
class PartitionLog::CheckpointJob final : public Checkpoint {
public:
    CheckpointJob(std::shared_ptr<PartitionLog> log, std::shared_ptr<Segment> segment,
                  std::shared_ptr<File> written_by, const SegmentFacts& facts,
                  std::vector<ProducerImage> producers)
        : log_(std::move(log)),
          segment_(std::move(segment)),
          written_by_(std::move(written_by)),
          facts_(facts),
          producers_(std::move(producers)) {}

    bool begin() override { return log_->begin_job(&PartitionLog::checkpoint_job_); }

    void flush(Syncs syncs) override {
        // Without a journal every cycle has synced what it answered.
        if (log_->journal_key_ && syncs == Syncs::kNow && written_by_ != nullptr)
            segment_synced(written_by_->sync());
        if (outcome_) outcome_ = log_->flush_indexes(*segment_, facts_, syncs);
    }

    bool record(Syncs syncs) override {
        if (!outcome_) return false;
        auto written = log_->record_checkpoint(facts_, std::move(producers_));
        if (written) {
            line_ = *written;
        } else {
            outcome_ = std::unexpected(std::move(written).error());
        }
        // Without a journal it is cheap to lose.
        if (!line_ || !log_->journal_key_) return false;
        if (syncs == Syncs::kNow) line_synced(line_->file->sync());
        return true;
    }

    void all_synced(const Result<void>& outcome) override {
        if (!line_) {
            if (log_->journal_key_) segment_synced(outcome);
            if (outcome_) outcome_ = outcome;
        } else {
            line_synced(outcome);
        }
    }

    void end() override {
        if (lost_) {
            log_->end_by_checkpoint(outcome_.error());
        } else {
            if (outcome_ && line_) outcome_ = log_->tidy_manifest();
            log_->note_checkpoint(facts_.end, outcome_);
        }
    }

private:
    /// What the segment has lost, readers must not see.
    void segment_synced(const Result<void>& outcome) {
        if (log_->unless_lost(outcome)) return;
        lost_ = true;
        outcome_ = outcome;
    }
    void line_synced(const Result<void>& outcome) {
        if (outcome_) outcome_ = log_->checkpoint_synced(*line_, outcome, facts_.end);
    }

    const std::shared_ptr<PartitionLog> log_;
    const std::shared_ptr<Segment> segment_;
    /// Whose sync tells of every error; none when nothing was written since the log has rested.
    const std::shared_ptr<File> written_by_;
    const SegmentFacts facts_;
    std::vector<ProducerImage> producers_;
    std::optional<EpochLog::Unsynced> line_;  ///< none when the segment was rolled meanwhile
    Result<void> outcome_;
    bool lost_ = false;
};

void PartitionLog::checkpoint_due() {
    base::MutexLock lock(mutex_);
    reminder_set_ = false;
    if (ended_ || !unrecorded_) return;
    producers_.expire(log_dir_.clock().wall_ms(), config()->producer_id_expiration_ms);
    checkpoint_wanted_ = true;
    ask_for_cycle();
}

bool PartitionLog::consider_checkpoint(std::uint64_t bytes) {
    if (bytes > 0 || cycle_->prepares_upkeep) {
        unrecorded_ = true;
        unrecorded_bytes_ += bytes;
    }
    if (cycle_->checkpoint && begun_ && unsynced_records_ == 0 &&
        written_.end == cycle_->checkpoint->at) {
        unrecorded_ = false;
        unrecorded_bytes_ = 0;
        checkpoint_job_ = PoolJob::kQueued;
        return true;
    }
    unrecorded_bytes_ =
        std::min(unrecorded_bytes_, written_.bytes);  // a roll records all before it
    if (unrecorded_bytes_ >= log_dir_.options().checkpoint_bytes) checkpoint_wanted_ = true;
    // What waits for flush.ms is looked at again even if nothing more comes.
    const bool waits_for_flush = unsynced_records_ > 0 && config()->flush_ms != LogConfig::kNoLimit;
    if (bytes > 0 || cycle_->prepares_upkeep || waits_for_flush) remind();
    return false;
}

void PartitionLog::remind() {
    if (!std::exchange(reminder_set_, true)) log_dir_.remind(shared_from_this());
}

void PartitionLog::queue_checkpoint() {
    log_dir_.checkpoints().add(
        std::make_unique<CheckpointJob>(shared_from_this(), active_, active_log_, written_,
                                        std::move(cycle_->checkpoint->producers)));
}

Result<void> PartitionLog::flush_indexes(Segment& segment, const SegmentFacts& facts, Syncs syncs) {
    base::MutexLock lock(manifest_mutex_);
    if (!manifest_.active || manifest_.active->base != facts.base) return {};  // rolled meanwhile
    if (!segment.has_indexes()) return {};                                     // without an entry
    const auto files = [&] {
        return std::pair(segment.offsets().has_file(), segment.aborted().has_file());
    };
    const auto had_files = files();
    KAAS_TRY(segment.offsets().flush(volume_, syncs));
    KAAS_TRY(segment.times().flush(volume_, syncs));
    KAAS_TRY(segment.aborted().flush(volume_, segment.aborted_path(), syncs));
    if (files() == had_files) return {};
    return sync_directory(volume_, paths_.epoch_directory(epoch_), syncs);
}

Result<std::optional<EpochLog::Unsynced>> PartitionLog::record_checkpoint(
    const SegmentFacts& facts, std::vector<ProducerImage> producers) {
    base::MutexLock lock(manifest_mutex_);
    if (!manifest_.active || manifest_.active->base != facts.base) return std::nullopt;
    KAAS_TRY(epoch_log_->append_synced(manifest_.synced_facts(facts, producers)));
    manifest_.active = facts;
    manifest_.producers = std::move(producers);
    return epoch_log_->everything();
}

Result<void> PartitionLog::checkpoint_synced(const EpochLog::Unsynced& line,
                                             const Result<void>& outcome, base::Offset end) {
    base::MutexLock lock(manifest_mutex_);
    KAAS_TRY(epoch_log_->note_synced(line, outcome));
    tell_journal(end);
    return {};
}

Result<void> PartitionLog::tidy_manifest() {
    base::MutexLock lock(manifest_mutex_);
    if (epoch_log_->wants_roll()) {
        KAAS_TRY(epoch_log_->roll(manifest_.picture()));
        KAAS_TRY(epoch_log_->remove_superseded(log_dir_.session()));
    }
    epoch_log_->rest();
    return {};
}

void PartitionLog::rest(base::Offset end) {
    base::MutexLock lock(mutex_);
    if (in_cycle_ || asked_for_cycle_ || written_.end != end) return;
    synced_bytes_ = written_.bytes;
    cycle_.reset();
    pending_.shrink_to_fit();
    pending_tickets_.shrink_to_fit();
    cycle_tickets_.shrink_to_fit();
    active_log_.reset();
    active_->rest();
    base::MutexLock view_lock(view_mutex_);
    places_ = PlaceMemory();
}

void PartitionLog::note_checkpoint(base::Offset end, const Result<void>& outcome) {
    // Nothing depends on it: the next recovery only has more to read. So it is said once.
    if (!outcome && !std::exchange(checkpoints_fail_, true)) {
        base::log::warn("storage", "{}: checkpoint at offset {}: {}", directory(), end,
                        outcome.error().context);
    }
    if (outcome) {
        checkpoints_fail_ = false;
        rest(end);
    } else {
        // A log that goes quiet must not keep its part of the journal for ever.
        base::MutexLock lock(mutex_);
        unrecorded_ = true;
        remind();
    }
    end_job(&PartitionLog::checkpoint_job_);
}

void PartitionLog::end_by_checkpoint(const Error& why) {
    Wakeups wakeups;
    {
        base::MutexLock lock(mutex_);
        checkpoint_job_ = PoolJob::kNone;
        if (!ended_) end(why, wakeups);
        tell_idle();
    }
    wakeups.post();
}

void PartitionLog::tell_journal(base::Offset end) {
    if (!journal_key_) return;
    {
        base::MutexLock lock(mutex_);
        if (ended_) return;
    }
    log_dir_.journal()->recorded(*journal_key_, end);
}

}  // namespace kaas::storage
