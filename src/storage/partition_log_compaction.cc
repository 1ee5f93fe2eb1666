#include "storage/partition_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// What compaction asks of a log. The order is always: make the intent durable, check the session,
// act (DESIGN rule 7).

namespace kaas::storage {

CompactionSight PartitionLog::compaction_sight() const {
    base::MutexLock lock(view_mutex_);
    return {.view = view_, .clean_to = clean_to_, .config = config_};
}

LastBatches PartitionLog::last_batches() const {
    base::MutexLock lock(mutex_);
    LastBatches last;
    for (const auto& [id, entry] : producers_.all()) {
        LastBatch batch{.epoch = entry.epoch};
        if (!entry.batches().empty()) batch.last_data_offset = entry.batches().back().last_offset;
        last.emplace(id, batch);
    }
    return last;
}

bool PartitionLog::begin_compaction() {
    bool begun = false;
    {
        base::MutexLock lock(manifest_mutex_);
        begun = epoch_log_ != nullptr;
    }
    if (begun) return begin_job(&PartitionLog::compaction_job_);
    base::MutexLock lock(mutex_);
    if (check_open()) want_upkeep();
    return false;
}

void PartitionLog::end_compaction() { end_job(&PartitionLog::compaction_job_); }

Result<std::shared_ptr<Segment>> PartitionLog::begin_replacement(base::Offset base) {
    SegmentName name{.epoch = epoch_, .base = base};
    {
        base::MutexLock lock(manifest_mutex_);
        name.compaction = manifest_.compactions + 1;
        KAAS_TRY(epoch_log_->append(Manifest::compacting_line(name.compaction)));
        KAAS_TRY(epoch_log_->sync());
        manifest_.begin_compaction({name.epoch, name.compaction});
    }
    KAAS_TRY(confirm_line());
    KAAS_TRY(volume_.make_directory(paths_.compaction_directory(name.epoch, name.compaction)));
    KAAS_TRY(volume_.sync_directory(paths_.epoch_directory(name.epoch)));
    return std::make_shared<Segment>(paths_, name, IndexOrigin::kNew);
}

Result<void> PartitionLog::replace(std::vector<SegmentName> old, const SegmentSpan& with,
                                   std::optional<base::Offset> clean_to) {
    auto replaced = record_and_show(std::move(old), with, clean_to);
    // The manifest names what readers do not see: this log has said its last word.
    if (!replaced && replaced.error().code != ErrorCode::kClosed) abandon(replaced.error().code);
    return replaced;
}

Result<void> PartitionLog::record_and_show(std::vector<SegmentName> old, const SegmentSpan& with,
                                           std::optional<base::Offset> clean_to) {
    SegmentSwap swap{.old = std::move(old), .with = {}, .clean_to = clean_to};
    if (with.facts.bytes > 0) swap.with = with.facts;
    base::MutexLock lock(manifest_mutex_);
    auto after = manifest_;
    if (!after.swap(swap)) {
        return fail(ErrorCode::kClosed,
                    directory() + ": segments left the log while they were compacted");
    }
    KAAS_TRY(epoch_log_->append(Manifest::swap_line(swap)));
    KAAS_TRY(epoch_log_->sync());
    manifest_ = std::move(after);
    KAAS_TRY(confirm_line());
    {
        base::MutexLock view_lock(view_mutex_);
        auto sealed = std::make_shared<std::vector<SegmentSpan>>(*view_.sealed);
        const auto first = std::ranges::find(
            *sealed, swap.old.front(), [](const SegmentSpan& span) { return span.facts.name(); });
        const auto place = sealed->erase(first, first + std::ssize(swap.old));
        if (swap.with) sealed->insert(place, with);
        view_.sealed = std::move(sealed);
        clean_to_ = manifest_.clean_to;
    }
    discard(swap.old);
    return {};
}

bool PartitionLog::has_unfinished_compactions() const {
    base::MutexLock lock(manifest_mutex_);
    return !manifest_.unfinished.empty();
}

Result<void> PartitionLog::sweep_compactions() {
    std::vector<CompactionName> unfinished;
    {
        base::MutexLock lock(manifest_mutex_);
        // After a failed line nobody knows what the manifest names.
        if (epoch_log_->ended_by()) return std::unexpected(*epoch_log_->ended_by());
        unfinished = manifest_.unfinished;
    }
    if (unfinished.empty()) return {};
    KAAS_TRY(confirm_session());
    for (const auto& [epoch, number] : unfinished) {
        KAAS_TRY(remove_tree(volume_, paths_.compaction_directory(epoch, number)));
        KAAS_TRY(
            unless(ErrorCode::kNotFound, volume_.sync_directory(paths_.epoch_directory(epoch))));
    }
    base::MutexLock lock(manifest_mutex_);
    // Cheap to lose: they would be swept again, and found to be gone.
    KAAS_TRY(epoch_log_->append(Manifest::swept_line(unfinished)));
    manifest_.forget(unfinished);
    return {};
}

}  // namespace kaas::storage
