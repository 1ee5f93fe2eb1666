#include "storage/partition_log.h"

#include "base/assert.h"
#include "base/log.h"
#include "storage/epoch_beginning.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

// Of one partition's log, this file has the commit cycle's side, the files of the epoch and the
// jobs on the pool; partition_log_open.cc how it comes to be; _append checks, offsets and
// producers; _read what readers and watchers call; _checkpoint what is recorded as synced; _upkeep
// what leaves it; _compaction what the cleaner asks of it; _release how its epoch is handed back.

namespace kaas::storage {

// ---- the commit cycle -------------------------------------------------------------------------

CommitMember::Pace PartitionLog::take() {
    base::MutexLock lock(mutex_);
    asked_for_cycle_ = false;
    in_cycle_ = true;
    if (cycle_ == nullptr) cycle_ = std::make_unique<Cycle>();
    cycle_->error.reset();
    cycle_->checkpoint.reset();
    if (ended_) {
        cycle_->error = *ended_;  // nothing of it is synced again: its descriptor may have failed
        return Pace::kQuick;
    }
    cycle_->pieces.swap(pending_);  // both keep their memory for the next cycle
    cycle_tickets_.swap(pending_tickets_);
    // On a remote volume a write has only reached this machine's cache: acks=1 waits for the sync
    // too, or a taker elsewhere would not see what was acknowledged.
    cycle_->awaits_write =
        volume_.is_local() && std::ranges::any_of(cycle_tickets_, [](const Ticket& ticket) {
            return ticket.acks == Acks::kLeader;
        });
    cycle_->prepares_upkeep = upkeep_wanted_ && upkeep_job_ == PoolJob::kNone;
    cycle_->flushes = must_flush();
    // It vouches for what is synced: without a flush in this cycle it would be copied for nothing.
    if (checkpoint_wanted_ && cycle_->flushes && checkpoint_job_ == PoolJob::kNone) {
        checkpoint_wanted_ = false;
        cycle_->checkpoint = ProducersAt{.at = next_offset_, .producers = producers_.images()};
    }
    cycle_->roll_after.reset();
    if (cycle_->prepares_upkeep) {
        upkeep_wanted_ = false;
        if (std::exchange(roll_wanted_, false) && plan_.facts().bytes > 0)
            cycle_->roll_after = plan_roll(log_dir_.clock().wall_ms(), *config());
    }
    const bool opens_files = begins() || (cycle_->writes() && active_log_ == nullptr);
    const bool rolls = cycle_->roll_after != nullptr ||
                       std::ranges::any_of(cycle_->pieces,
                                           [](const Piece& p) { return p.roll_before != nullptr; });
    return opens_files || rolls ? Pace::kSlow : Pace::kQuick;
}

void PartitionLog::make_files() {
    if (auto made = make_epoch_files(Syncs::kLater); !made) cycle_->error = std::move(made).error();
}

void PartitionLog::write_picture() {
    if (cycle_->error) return;
    auto written = write_epoch_picture(Syncs::kLater);
    if (!written) cycle_->error = std::move(written).error();
}

void PartitionLog::all_synced(const Result<void>& outcome) {
    if (auto kept = unless_lost(outcome); !kept && !cycle_->error) cycle_->error = kept.error();
    if (!cycle_->error && cycle_->fresh_epoch_log) begin_epoch();
}

void PartitionLog::write() {
    if (cycle_->error) return;
    if (auto written = write_pieces(); !written) cycle_->error = std::move(written).error();
}

Result<void> PartitionLog::write_pieces() {
    cycle_->entry_from = 0;
    if (cycle_->pieces.empty() && !cycle_->prepares_upkeep) return {};
    if (!begun_) {
        KAAS_TRY(make_epoch_files(Syncs::kNow));
        KAAS_TRY(write_epoch_picture(Syncs::kNow));
        begin_epoch();
    }
    if (cycle_->writes() && active_log_ == nullptr) {  // it has rested
        KAAS_TRY_ASSIGN(log, active_->open_to_write(volume_));
        active_log_ = std::move(log);
    }
    std::size_t from = 0;
    for (std::size_t i = 0; i < cycle_->pieces.size(); ++i) {
        if (cycle_->pieces[i].roll_before == nullptr) continue;
        KAAS_TRY(write_run(from, i));
        KAAS_TRY(roll(*cycle_->pieces[i].roll_before));
        from = cycle_->entry_from = i;
    }
    KAAS_TRY(write_run(from, cycle_->pieces.size()));
    if (cycle_->roll_after != nullptr) KAAS_TRY(roll(*cycle_->roll_after));
    return {};
}

Result<void> PartitionLog::write_run(std::size_t from, std::size_t to) {
    if (from == to) return {};
    std::vector<base::ByteView> views;
    views.reserve(to - from);
    for (auto i = from; i < to; ++i) views.push_back(cycle_->pieces[i].bytes);
    KAAS_ASSERT(cycle_->pieces[from].placement.position == written_.bytes);
    KAAS_TRY(active_log_->write_at(written_.bytes, views));
    for (auto i = from; i < to; ++i) {
        auto& piece = cycle_->pieces[i];
        if (!journal_key_) piece.frame = {};
        written_ = piece.placement.after;
        unsynced_records_ += piece.records;
        if (piece.placement.offset_entry) active_->offsets().append(*piece.placement.offset_entry);
        if (piece.placement.time_entry) active_->times().append(*piece.placement.time_entry);
        if (piece.ends && piece.ends->aborted)
            active_->aborted().append(*piece.ends->index_entry());
    }
    return {};
}

std::int64_t PartitionLog::unsynced_for_ms() const {
    const auto since = log_dir_.clock().now() - last_sync_;
    return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

bool PartitionLog::must_flush() const {
    auto records = unsynced_records_;
    for (const auto& piece : cycle_->pieces) {
        if (piece.must_sync) return true;
        records += piece.records;
    }
    const auto limits = config();
    // On a remote volume a write only reaches this machine's cache: each cycle pushes its bytes
    // out.
    // A log start is recorded durably: so must be the records before it.
    return records == 0 || records >= limits->flush_messages || !volume_.is_local() ||
           cycle_->prepares_upkeep || unsynced_for_ms() >= limits->flush_ms;
}

File* PartitionLog::to_sync() {
    const bool due = !cycle_->error && cycle_->flushes && unsynced_records_ > 0;
    return due ? active_log_.get() : nullptr;
}

void PartitionLog::synced(const Result<void>& outcome) {
    if (auto kept = unless_lost(outcome); !kept) {
        cycle_->error = std::move(kept).error();
        return;
    }
    synced_bytes_ = written_.bytes;
    unsynced_records_ = 0;
    last_sync_ = log_dir_.clock().now();
}

const JournalEntry* PartitionLog::to_journal() {
    if (!journal_key_) return nullptr;
    if (cycle_->entry == nullptr) cycle_->entry = std::make_unique<JournalEntry>();
    cycle_->entry->batches.clear();
    std::int64_t records = 0;
    for (auto i = cycle_->entry_from; i < cycle_->pieces.size(); ++i) {
        cycle_->entry->batches.push_back(cycle_->pieces[i].bytes);
        records += cycle_->pieces[i].records;
    }
    // What earlier cycles left to a later flush is not here any more.
    if (records == 0 || records != unsynced_records_) return nullptr;
    cycle_->entry->key = *journal_key_;
    cycle_->entry->base = cycle_->pieces[cycle_->entry_from].base_offset;
    cycle_->entry->end = written_.end;
    return cycle_->entry.get();
}

void PartitionLog::journaled(const Result<void>& outcome) {
    if (!outcome) {
        cycle_->error = outcome.error();
        return;
    }
    unsynced_records_ = 0;
    last_sync_ = log_dir_.clock().now();
}

void PartitionLog::answer(Ticket ticket, const Result<void>& outcome, Wakeups& wakeups) {
    if (!ticket.done) return;
    Result<Appended> answer = ticket.appended;
    if (!outcome) answer = std::unexpected(outcome.error());
    wakeups.add(ticket.home, [done = std::move(ticket.done), answer = std::move(answer)]() mutable {
        done(std::move(answer));
    });
}

void PartitionLog::answer_written(const Result<void>& check, Wakeups& wakeups) {
    cycle_->awaits_write = false;
    if (!check || cycle_->error) return;  // `settle` answers everybody
    base::MutexLock lock(mutex_);
    if (ended_) return;
    for (auto& ticket : cycle_tickets_) {
        if (ticket.acks == Acks::kLeader) answer(std::exchange(ticket, {}), check, wakeups);
    }
}

void PartitionLog::settle(const Result<void>& check, Wakeups& wakeups) {
    bool checkpoint = false;
    bool upkeep = false;
    bool deleted = false;
    {
        base::MutexLock lock(mutex_);
        in_cycle_ = false;
        deleted = deleted_;
        if (!ended_ && (cycle_->error || !check)) {
            end(cycle_->error ? *cycle_->error : check.error(), wakeups);
        } else if (!ended_) {
            std::uint64_t bytes = 0;
            for (const auto& piece : cycle_->pieces) bytes += piece.bytes.size();
            if (bytes > 0 || cycle_->prepares_upkeep) publish(wakeups);
            for (auto& ticket : cycle_tickets_) answer(std::move(ticket), check, wakeups);
            cycle_tickets_.clear();
            checkpoint = consider_checkpoint(bytes);
            upkeep = cycle_->prepares_upkeep;
            if (upkeep) upkeep_job_ = PoolJob::kQueued;
        }
        cycle_->pieces.clear();
        tell_idle();
    }
    if (deleted) forget_in_journal();
    if (checkpoint) queue_checkpoint();
    if (upkeep) log_dir_.io_pool().post([self = shared_from_this()] { self->keep_up(); });
}

void PartitionLog::publish(Wakeups& wakeups) {
    const auto unstable = producers_.first_unstable(written_.end);
    base::MutexLock lock(view_mutex_);
    if (!cycle_->newly_sealed.empty()) {
        auto sealed = std::make_shared<std::vector<SegmentSpan>>(*view_.sealed);
        std::ranges::move(std::exchange(cycle_->newly_sealed, {}), std::back_inserter(*sealed));
        view_.sealed = std::move(sealed);
    }
    view_.last = {active_, written_};
    view_.high_watermark = written_.end;
    view_.last_stable_offset =
        std::max(std::min(unstable.value_or(written_.end), written_.end), view_.log_start);
    written_epoch_ = epoch_;
    const auto forgotten =
        cycle_->pieces.size() - std::min(cycle_->pieces.size(), PlaceMemory::kPlaces);
    for (auto i = forgotten; i < cycle_->pieces.size(); ++i) {
        const auto& piece = cycle_->pieces[i];
        places_.remember(piece.base_offset, piece.placement.after.name(), piece.placement.position);
    }
    count_bytes();
    wake_watchers(wakeups);
}

void PartitionLog::count_bytes() {
    for (const auto& piece : cycle_->pieces) {
        if (piece.begins_transaction) open_at_.emplace(piece.base_offset, visible_bytes_);
        if (piece.ends) open_at_.erase(piece.ends->first_offset);
        visible_bytes_ += piece.bytes.size();
    }
    if (view_.last_stable_offset == view_.high_watermark) {
        stable_bytes_ = visible_bytes_;
    } else if (const auto stop = open_at_.find(view_.last_stable_offset); stop != open_at_.end()) {
        stable_bytes_ = stop->second;
    }
}

void PartitionLog::tell_idle() {
    if (idle_ != nullptr) idle_->notify_all();
}

void PartitionLog::end(const Error& why, Wakeups& wakeups) {
    ended_ = std::make_shared<const Error>(why);
    pending_.clear();
    const Result<void> failed = std::unexpected(why);
    for (auto* tickets : {&cycle_tickets_, &pending_tickets_}) {
        for (auto& ticket : std::exchange(*tickets, {})) answer(std::move(ticket), failed, wakeups);
    }
    for (auto& trim : std::exchange(trims_, {})) {
        wakeups.add(trim.home,
                    [done = std::move(trim.done), why]() mutable { done(std::unexpected(why)); });
    }
    {
        base::MutexLock lock(view_mutex_);
        failure_ = ended_;
        for (auto& watcher : std::exchange(watchers_, {})) {
            wakeups.add(watcher.watch.home, std::move(watcher.watch.wake));
        }
    }
    tell_idle();
}

Result<void> PartitionLog::unless_lost(Result<void> outcome) {
    if (!outcome) {
        base::MutexLock lock(view_mutex_);
        lost_records_ = true;
    }
    return outcome;
}

// ---- files of this epoch ----------------------------------------------------------------------

Result<void> PartitionLog::make_epoch_files(Syncs syncs) {
    if (!written_epoch()) KAAS_TRY(make_partition_directory(volume_, directory(), syncs));
    KAAS_TRY_ASSIGN(first, make_first_segment(volume_, paths_, {epoch_, written_.base}));
    KAAS_TRY(sync_directory(volume_, paths_.epoch_directory(epoch_), syncs));
    active_ = std::move(first.segment);
    active_log_ = std::move(first.log);
    return {};
}

Result<void> PartitionLog::write_epoch_picture(Syncs syncs) {
    base::MutexLock lock(manifest_mutex_);
    manifest_.active = written_;
    KAAS_TRY_ASSIGN(epoch_log, write_first_picture(volume_, paths_, epoch_, manifest_, syncs));
    cycle_->fresh_epoch_log = std::make_unique<EpochLog>(std::move(epoch_log));
    return {};
}

void PartitionLog::begin_epoch() {
    base::MutexLock lock(manifest_mutex_);
    epoch_log_ = std::move(cycle_->fresh_epoch_log);
    begun_ = true;
    sweep_due_ = after_delete_delay();
    plan_reclaim();
}

Result<void> PartitionLog::roll(Roll& roll) {
    if (roll.last_time_entry) active_->times().append(*roll.last_time_entry);
    KAAS_TRY(unless_lost(active_log_->sync()));
    base::MutexLock lock(manifest_mutex_);
    KAAS_TRY(active_->offsets().finish(volume_));
    KAAS_TRY(active_->times().finish(volume_));
    KAAS_TRY(active_->aborted().flush(volume_, active_->aborted_path()));
    KAAS_TRY(write_snapshot(written_.end, roll.producers));
    auto segment =
        std::make_shared<Segment>(paths_, SegmentName{epoch_, written_.end}, IndexOrigin::kNew);
    KAAS_TRY(segment->create(volume_));
    KAAS_TRY_ASSIGN(log, segment->log(volume_, Patience::kMayBlock));
    KAAS_TRY(volume_.sync_directory(paths_.epoch_directory(epoch_)));
    KAAS_TRY(epoch_log_->append(manifest_.roll_line(written_, roll.producers)));
    KAAS_TRY(epoch_log_->sync());
    manifest_.roll(written_);
    manifest_.producers = std::move(roll.producers);
    active_->offsets().drop_memory();
    active_->times().drop_memory();
    active_->aborted().drop_memory();
    tell_journal(written_.end);
    cycle_->newly_sealed.push_back({std::move(active_), written_});
    active_ = std::move(segment);
    active_log_ = std::move(log);
    written_ = {.epoch = epoch_, .base = written_.end, .end = written_.end};
    synced_bytes_ = written_.bytes;
    unsynced_records_ = 0;
    return {};
}

Result<void> PartitionLog::write_snapshot(base::Offset at,
                                          const std::vector<ProducerImage>& producers,
                                          Syncs syncs) {
    if (producers.empty()) return {};
    auto file = volume_.create(paths_.file({epoch_, at}, ".snapshot"));
    if (!file && file.error().code == ErrorCode::kExists) return {};
    if (!file) return std::unexpected(std::move(file).error());
    const auto bytes = encode_snapshot(producers);
    const base::ByteView piece(bytes);
    KAAS_TRY((*file)->write_at(0, {&piece, 1}));
    return sync_file(**file, syncs);
}

// ---- jobs on the pool -------------------------------------------------------------------------

bool PartitionLog::begin_job(PoolJob PartitionLog::* job) {
    base::MutexLock lock(mutex_);
    if (this->*job == PoolJob::kRunning) return false;
    // The last line says more than a checkpoint could; without one, the next recovery reads more.
    const bool ends = ended_ || draining_;
    this->*job = ends ? PoolJob::kNone : PoolJob::kRunning;
    return !ends;
}

void PartitionLog::end_job(PoolJob PartitionLog::* job) {
    std::optional<Error> broken;
    {
        base::MutexLock lock(manifest_mutex_);
        if (epoch_log_ && epoch_log_->ended_by()) broken = *epoch_log_->ended_by();
    }
    Wakeups wakeups;
    {
        base::MutexLock lock(mutex_);
        this->*job = PoolJob::kNone;
        // Without its manifest it could record nothing any more, no trim and no roll: the next
        // epoch has one of its own.
        if (broken && !ended_) end(*broken, wakeups);
        if ((checkpoint_wanted_ || upkeep_wanted_) && !ended_) ask_for_cycle();
        tell_idle();
    }
    wakeups.post();
}

// ---- the end ----------------------------------------------------------------------------------

void PartitionLog::abandon(ErrorCode why) {
    Wakeups wakeups;
    {
        base::MutexLock lock(mutex_);
        if (ended_) return;
        end(Error{why, directory() + " was abandoned"}, wakeups);
    }
    wakeups.post();
}

void PartitionLog::drop() {
    {
        base::MutexLock lock(mutex_);
        deleted_ = true;  // what a running cycle still gives to the journal is forgotten behind it
    }
    abandon(ErrorCode::kClosed);
    forget_in_journal();
}

void PartitionLog::forget_in_journal() {
    if (!journal_key_) return;
    log_dir_.journal()->superseded(journal_key_->partition, base::LeaderEpoch{epoch_.value() + 1});
}

bool PartitionLog::at_work() const {
    base::MutexLock lock(mutex_);
    return in_cycle_ || checkpoint_job_ == PoolJob::kRunning || upkeep_job_ == PoolJob::kRunning ||
           reclaim_job_ == PoolJob::kRunning || compaction_job_ == PoolJob::kRunning;
}

void PartitionLog::fail_stalled() {
    Wakeups wakeups;
    {
        base::MutexLock lock(mutex_);
        const Result<void> stalled =
            fail(ErrorCode::kStalled, directory() + ": the volume does not answer");
        for (auto* tickets : {&cycle_tickets_, &pending_tickets_}) {
            for (auto& ticket : std::exchange(*tickets, {}))
                answer(std::move(ticket), stalled, wakeups);
        }
    }
    wakeups.post();
}

}  // namespace kaas::storage
