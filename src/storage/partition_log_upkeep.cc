#include "base/log.h"
#include "storage/partition_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

// What leaves a log: where it begins, which segments it drops, and when their files go.

namespace kaas::storage {
namespace {

/// What could not be removed is tried again after this time.
constexpr std::chrono::seconds kReclaimPause{30};
/// `file.delete.delay.ms` is any positive number; this is as good as never.
constexpr std::chrono::hours kLongestDelay{24 * 365};

[[nodiscard]] std::vector<SegmentFacts> facts_of(const LogView& view) {
    std::vector<SegmentFacts> facts;
    facts.reserve(view.sealed->size() + 1);
    for (const auto& span : *view.sealed) facts.push_back(span.facts);
    if (view.last.segment != nullptr) facts.push_back(view.last.facts);
    return facts;
}

}  // namespace

// ---- where the log begins ---------------------------------------------------------------------

RetentionPlan PartitionLog::retention_of(const LogView& view, base::Offset log_start) const {
    auto facts = facts_of(view);
    // A log that was not written yet has no last segment; it has one once the drop is recorded.
    if (view.last.segment == nullptr)
        facts.push_back({.epoch = epoch_, .base = view.high_watermark, .end = view.high_watermark});
    return plan_retention(facts, log_start, log_dir_.clock().wall_ms(), *config());
}

void PartitionLog::retain() {
    const auto seen = view();
    const auto plan = retention_of(seen, seen.log_start);
    if (!plan.anything()) return;
    base::MutexLock lock(mutex_);
    if (!check_open()) return;
    roll_wanted_ = plan.last;
    want_upkeep();
}

void PartitionLog::delete_records(base::Offset before, base::Executor& home, Trimmed done) {
    const auto seen = view();
    if (before == kHighWatermark) before = seen.high_watermark;
    const bool moves = before > seen.log_start && before <= seen.high_watermark;
    auto ready = [&] {
        base::MutexLock lock(mutex_);
        auto open = check_open();
        if (open && moves) {
            trims_.push_back({before, &home, std::move(done)});
            want_upkeep();
        }
        return open;
    }();
    if (ready && moves) return;
    log_dir_.io_pool().post(
        [self = shared_from_this(), before, &home, ready, done = std::move(done)]() mutable {
            if (ready) ready = self->confirm_session();
            const auto now = self->view();
            Result<base::Offset> answer = now.log_start;
            if (!ready) {
                answer = std::unexpected(ready.error());
            } else if (before < base::Offset{0} || before > now.high_watermark) {
                answer = fail(ErrorCode::kOffsetOutOfRange,
                              fmt::format("{}: offset {}, the log is [{}, {})", self->directory(),
                                          before, now.log_start, now.high_watermark));
            }
            home.post([done = std::move(done), answer = std::move(answer)]() mutable {
                done(std::move(answer));
            });
        });
}

void PartitionLog::want_upkeep() {
    upkeep_wanted_ = true;
    if (upkeep_job_ == PoolJob::kNone) ask_for_cycle();
}

void PartitionLog::keep_up() {
    if (!begin_job(&PartitionLog::upkeep_job_)) return;
    std::vector<Trim> trims;
    {
        base::MutexLock lock(mutex_);
        trims.swap(trims_);
    }
    base::Offset wanted{0};
    for (const auto& trim : trims) wanted = std::max(wanted, trim.before);
    const auto moved = move_start(wanted);
    if (!moved) {
        base::log::warn("storage", "{}: the log start stays, and the log ends: {}", directory(),
                        moved.error().context);
        // The manifest may say what readers do not see: this log has said its last word.
        abandon(moved.error().code);
    }
    Wakeups wakeups;
    for (auto& trim : trims) {
        Result<base::Offset> answer = log_start();
        if (!moved) answer = std::unexpected(moved.error());
        wakeups.add(trim.home, [done = std::move(trim.done), answer = std::move(answer)]() mutable {
            done(std::move(answer));
        });
    }
    wakeups.post();
    end_job(&PartitionLog::upkeep_job_);
}

Result<void> PartitionLog::move_start(base::Offset wanted) {
    base::MutexLock lock(manifest_mutex_);
    const auto seen = view();
    auto start = std::max(seen.log_start, wanted);
    const auto count = retention_of(seen, start).segments;
    std::vector<SegmentName> names;
    for (const auto& span : std::span(*seen.sealed).first(count))
        names.push_back(span.facts.name());
    if (count > 0) {
        const auto& first = count < seen.sealed->size() ? (*seen.sealed)[count] : seen.last;
        start = std::max(start, first.facts.base);
    }
    if (start == seen.log_start && names.empty()) return {};

    KAAS_TRY(epoch_log_->append(Manifest::drop_line(names, start)));
    KAAS_TRY(epoch_log_->sync());
    manifest_.drop(names, start);
    KAAS_TRY(confirm_line());
    {
        base::MutexLock view_lock(view_mutex_);
        auto sealed = std::make_shared<std::vector<SegmentSpan>>(*view_.sealed);
        std::erase_if(*sealed, [&](const SegmentSpan& span) {
            return std::ranges::find(names, span.facts.name()) != names.end();
        });
        view_.sealed = std::move(sealed);
        view_.log_start = start;
        view_.last_stable_offset = std::max(view_.last_stable_offset, start);
        epochs_.begin_at(start);
    }
    discard(names);
    return {};
}

Result<void> PartitionLog::confirm_line() const {
    KAAS_TRY(confirm_session());
    base::MutexLock lock(mutex_);
    if (ended_) return std::unexpected(*ended_);
    return {};
}

void PartitionLog::expire_producers() {
    const auto silence_ms = config()->producer_id_expiration_ms;
    base::MutexLock lock(mutex_);
    producers_.expire(log_dir_.clock().wall_ms(), silence_ms);
}

bool PartitionLog::has_late_transaction(std::int64_t before_ms) const {
    base::MutexLock lock(mutex_);
    const auto longest = producers_.longest_open_ms();
    return longest && *longest < before_ms;
}

// ---- files that may go ------------------------------------------------------------------------

base::Clock::Steady PartitionLog::after_delete_delay() const {
    const std::chrono::milliseconds wanted(config()->file_delete_delay_ms);
    return log_dir_.clock().now() + std::min<std::chrono::milliseconds>(wanted, kLongestDelay);
}

void PartitionLog::discard(std::span<const SegmentName> names) {
    discards_.add(names, after_delete_delay());
    plan_reclaim();
}

void PartitionLog::plan_reclaim() { reclaim_due_ = std::min(discards_.next_due(), sweep_due_); }

void PartitionLog::reclaim() {
    if (!begin_job(&PartitionLog::reclaim_job_)) return;
    const auto now = log_dir_.clock().now();
    std::vector<SegmentName> names;
    bool begun = false;
    {
        base::MutexLock lock(manifest_mutex_);
        begun = epoch_log_ != nullptr;
        names = discards_.due(now);
        reclaim_due_ = base::Clock::Steady::max();
    }
    Result<void> removed;
    if (!begun) {  // only the owner of a durable picture removes; the cycle that writes it goes on
        base::MutexLock lock(mutex_);
        if (check_open()) want_upkeep();
    } else {
        removed = remove_files(names);
        if (removed) removed = remove_old_epochs();
    }
    if (!removed) {
        base::log::warn("storage", "{}: files of dropped segments stay for now: {}", directory(),
                        removed.error().context);
        base::MutexLock lock(manifest_mutex_);
        discards_.add(names, now + kReclaimPause);
        sweep_due_ = now + kReclaimPause;
        plan_reclaim();
    }
    end_job(&PartitionLog::reclaim_job_);
}

Result<void> PartitionLog::remove_files(std::span<const SegmentName> names) {
    if (names.empty()) return {};
    KAAS_TRY(confirm_session());
    std::set<base::LeaderEpoch> touched;
    for (const auto& name : names) {
        KAAS_TRY(remove_segment(volume_, paths_, name));
        touched.insert(name.epoch);
    }
    for (const auto epoch : touched) {
        KAAS_TRY(
            unless(ErrorCode::kNotFound, volume_.sync_directory(paths_.epoch_directory(epoch))));
    }
    base::MutexLock lock(manifest_mutex_);
    // Cheap to lose: they would be removed again, and found to be gone.
    KAAS_TRY(epoch_log_->append(Manifest::reclaimed_line(names)));
    manifest_.forget(names);
    discards_.remove(names);
    return {};
}

Result<void> PartitionLog::remove_old_epochs() {
    std::set<base::LeaderEpoch> live;
    {
        base::MutexLock lock(manifest_mutex_);
        for (const auto& facts : manifest_.sealed) live.insert(facts.epoch);
        for (const auto& name : manifest_.dropped) live.insert(name.epoch);
    }
    KAAS_TRY_ASSIGN(names, volume_.list(directory()));
    for (const auto& name : names) {
        const auto epoch = parse_epoch_name(name);
        if (!epoch || *epoch >= epoch_.value() || live.contains(base::LeaderEpoch{*epoch}))
            continue;
        KAAS_TRY(remove_epoch(volume_, paths_.manifest(), *epoch, log_dir_.session()));
    }
    base::MutexLock lock(manifest_mutex_);
    sweep_due_ = base::Clock::Steady::max();
    plan_reclaim();
    return {};
}

}  // namespace kaas::storage
