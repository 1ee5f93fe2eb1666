#include "base/log.h"
#include "storage/aborted_transactions.h"
#include "storage/partition_log.h"
#include "storage/time_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

// What readers call. Nothing here touches the append mutex: readers live on the view.

namespace kaas::storage {
namespace {

/// Files of a view go when it is old, and the first may be before it is opened: then a newer view
/// is looked at.
template <class Look>
[[nodiscard]] auto look_again_if_gone(Look look) {
    auto found = look();
    if (!found && found.error().code == ErrorCode::kNotFound) return look();
    return found;
}

}  // namespace

LogView PartitionLog::view() const {
    base::MutexLock lock(view_mutex_);
    return view_;
}

std::optional<base::LeaderEpoch> PartitionLog::written_epoch() const {
    base::MutexLock lock(view_mutex_);
    return written_epoch_;
}

std::optional<Error> PartitionLog::failure() const {
    base::MutexLock lock(view_mutex_);
    return failure_ ? std::optional(*failure_) : std::nullopt;
}

void PartitionLog::set_config(const SharedLogConfig& config) {
    base::MutexLock lock(view_mutex_);
    config_ = config.pointer();
}

std::shared_ptr<const LogConfig> PartitionLog::config() const {
    base::MutexLock lock(view_mutex_);
    return config_;
}

Patience PartitionLog::allowed(Patience patience) const {
    return patience == Patience::kNever && !volume_.is_local() ? Patience::kMemoryOnly : patience;
}

base::Offset PartitionLog::log_start() const {
    base::MutexLock lock(view_mutex_);
    return view_.log_start;
}

Result<void> PartitionLog::check_readable() const {
    if (failure_ && (failure_->code != ErrorCode::kNoSpace || lost_records_))
        return std::unexpected(*failure_);
    return {};
}

bool PartitionLog::is_readable() const {
    base::MutexLock lock(view_mutex_);
    return check_readable().has_value();
}

Result<LogView> PartitionLog::open_view() const {
    base::MutexLock lock(view_mutex_);
    KAAS_TRY(check_readable());
    return view_;
}

Result<void> PartitionLog::confirm_session() const { return log_dir_.session().confirm(); }

Result<ReadResult> PartitionLog::read(const Read& read, Patience patience) {
    auto found = look_again_if_gone([&] { return read_once(read, patience); });
    if (!found && found.error().code == ErrorCode::kNotFound)
        return std::unexpected(note_damage(read.from, std::move(found).error()));
    return found;
}

Result<ReadResult> PartitionLog::read_once(const Read& read, Patience patience) {
    KAAS_TRY_ASSIGN(seen, open_view());
    KAAS_TRY(check_epoch(read.current_leader_epoch));
    if (read.from < seen.log_start || read.from > seen.high_watermark) {
        // Clients act on this answer (they reset their position), so it is an effect: check first.
        if (patience != Patience::kMayBlock) return fail(ErrorCode::kWouldBlock, directory());
        KAAS_TRY(confirm_session());
        return fail(ErrorCode::kOffsetOutOfRange,
                    fmt::format("{}: offset {}, the log is [{}, {})", directory(), read.from,
                                seen.log_start, seen.high_watermark));
    }
    ReadResult result{.high_watermark = seen.high_watermark,
                      .last_stable_offset = seen.last_stable_offset,
                      .log_start = seen.log_start};
    const auto records = find_records(seen, read, allowed(patience), result);
    if (!records &&
        (records.error().code == ErrorCode::kCorrupt || records.error().code == ErrorCode::kIo))
        return std::unexpected(note_damage(read.from, records.error()));
    KAAS_TRY(records);
    // What was found to be damaged is never sent unseen: if somebody brought it back, this looked.
    if (patience == Patience::kMayBlock && result.records.length > 0) {
        base::MutexLock lock(view_mutex_);
        damages_.mended(read.from);
    }
    return result;
}

Error PartitionLog::note_damage(base::Offset from, Error error) {
    if (error.code == ErrorCode::kNotFound) {
        // Whoever has superseded us may have removed it. Elsewhere than here the absence may be a
        // stale cache entry, and goes by itself.
        if (auto alive = confirm_session(); !alive) return std::move(alive).error();
        error = {volume_.is_local() ? ErrorCode::kCorrupt : ErrorCode::kIo,
                 error.context + ": named by the manifest, and not there"};
    }
    bool news = false;
    {
        base::MutexLock lock(view_mutex_);
        news = damages_.note(from, error.context);
    }
    if (news) {
        base::log::warn("storage", "{}: offset {} cannot be read: {}", directory(), from,
                        error.context);
    }
    return error;
}

bool PartitionLog::damaged() const {
    base::MutexLock lock(view_mutex_);
    return damages_.any(view_.log_start);
}

namespace {

/// True when a reader who skips `span` finds something behind it.
[[nodiscard]] bool goes_on(const LogView& view, const SegmentSpan& span, base::Offset limit) {
    const auto* next = view.next(span);
    return next != nullptr && next->facts.bytes > 0 && next->facts.base < limit;
}

}  // namespace

Result<void> PartitionLog::find_records(const LogView& view, const Read& read, Patience patience,
                                        ReadResult& result) {
    const auto limit = view.visible_end(read.isolation);
    if (read.from >= limit) return {};
    for (const auto* span = view.span_of(read.from); span != nullptr; span = view.next(*span)) {
        if (!span->facts.has_records && goes_on(view, *span, limit)) continue;
        auto bound = *span;
        if (limit < bound.facts.end) {
            KAAS_TRY_ASSIGN(stop, start_of(*span, limit, patience));
            bound.facts.bytes = stop.position;
        }
        KAAS_TRY_ASSIGN(first, start_of(bound, read.from, patience));
        const auto start = first.position;
        if (start >= bound.facts.bytes) continue;  // a compacted segment may end in a hole
        KAAS_TRY_ASSIGN(cut, cut_after_whole_batch(volume_, bound, start, read.max_bytes,
                                                   read.at_least_one_batch, patience));
        const bool more_segments = span->facts.end < limit;
        result.available_bytes =
            more_segments ? read.max_bytes : std::min(read.max_bytes, bound.facts.bytes - start);
        if (cut.end == start) return {};
        KAAS_TRY_ASSIGN(file, bound.segment->log(volume_, patience));
        if (!bound.segment->is_checked(start, cut.end)) {
            if (patience != Patience::kMayBlock)
                return fail(ErrorCode::kWouldBlock, bound.segment->path());
            KAAS_TRY_ASSIGN(good,
                            check_stretch(file, bound, {start, cut.end, first.base}, epochs()));
            bound.segment->set_checked(start, good.end);
            cut = good;
        }
        if (cut.next && cut.end < bound.facts.bytes) remember(bound, *cut.next, cut.end);
        result.records = {.file = std::move(file), .offset = start, .length = cut.end - start};
        result.available_bytes = std::max(result.available_bytes, result.records.length);
        if (read.isolation == Isolation::kReadUncommitted) return {};
        KAAS_TRY_ASSIGN(until, upper_bound_of(view, *span, cut.end, patience));
        KAAS_TRY_ASSIGN(aborted, collect_aborted(volume_, view, *span, read.from, until, patience,
                                                 log_dir_.recovery_site()));
        result.aborted = std::move(aborted);
        return {};
    }
    return {};
}

Result<base::Offset> PartitionLog::upper_bound_of(const LogView& view, const SegmentSpan& span,
                                                  std::uint64_t end, Patience patience) const {
    auto& index = span.segment->offsets();
    KAAS_TRY_ASSIGN(entry, index.first_not(
                               [&](const OffsetEntry& one) {
                                   return static_cast<std::uint64_t>(one.position) < end;
                               },
                               patience));
    if (entry) {
        const auto offset = span.facts.base + entry->relative_offset;
        if (index.in_memory()) return offset;
        // A file is a hint, and one that names too low an offset would hide what was aborted.
        KAAS_TRY_ASSIGN(true_hint, leads_to(volume_, span, *entry, patience));
        if (true_hint) return offset;
    }
    const auto* next = view.next(span);
    return next != nullptr ? next->facts.base : view.high_watermark;
}

Result<PartitionLog::Start> PartitionLog::start_of(const SegmentSpan& span, base::Offset offset,
                                                   Patience patience) {
    if (offset < span.facts.base) return Start{.position = 0, .base = span.facts.base};
    {
        base::MutexLock lock(view_mutex_);
        if (const auto known = places_.find(offset, span.facts.name()); known)
            return Start{.position = *known, .base = offset};
    }
    KAAS_TRY_ASSIGN(place, locate(volume_, span, offset, patience));
    if (!place) return Start{.position = span.facts.bytes};
    return Start{.position = place->position, .base = place->base_offset};
}

LeaderEpochs PartitionLog::epochs() const {
    base::MutexLock lock(view_mutex_);
    return epochs_;
}

void PartitionLog::remember(const SegmentSpan& span, base::Offset offset, std::uint64_t position) {
    base::MutexLock lock(view_mutex_);
    places_.remember(offset, span.facts.name(), position);
}

// ---- waiting ----------------------------------------------------------------------------------

WatchId PartitionLog::watch(Watch watch) {
    base::Executor* ready = nullptr;
    base::Executor::Work wake;
    WatchId id = 0;
    {
        base::MutexLock lock(view_mutex_);
        id = next_watch_++;
        if (!check_readable() || view_.visible_end(watch.isolation) > watch.beyond) {
            ready = watch.home;
            wake = std::move(watch.wake);
        } else {
            const auto until = seen_bytes(watch.isolation) + watch.min_bytes;
            watchers_.push_back({id, std::move(watch), until});
        }
    }
    if (ready != nullptr) ready->post(std::move(wake));
    return id;
}

void PartitionLog::unwatch(WatchId id) {
    base::MutexLock lock(view_mutex_);
    std::erase_if(watchers_, [&](const Watcher& watcher) { return watcher.id == id; });
}

void PartitionLog::wake_watchers(Wakeups& wakeups) {
    std::erase_if(watchers_, [&](Watcher& watcher) KAAS_REQUIRES(view_mutex_) {
        const auto& [id, watch, until_bytes] = watcher;
        if (view_.visible_end(watch.isolation) <= watch.beyond) return false;
        // What was behind an open transaction already when the log was opened is not counted.
        const bool counted = watch.beyond >= opened_end_;
        if (counted && seen_bytes(watch.isolation) < until_bytes) return false;
        wakeups.add(watcher.watch.home, std::move(watcher.watch.wake));
        return true;
    });
}

// ---- positions --------------------------------------------------------------------------------

Result<OffsetAndTimestamp> PartitionLog::earliest() const {
    base::MutexLock lock(view_mutex_);
    KAAS_TRY(check_readable());
    return OffsetAndTimestamp{
        .offset = view_.log_start,
        .leader_epoch = epochs_.at(view_.log_start).value_or(base::kNoLeaderEpoch)};
}

Result<OffsetAndTimestamp> PartitionLog::latest(Isolation isolation) const {
    base::MutexLock lock(view_mutex_);
    KAAS_TRY(check_readable());
    return OffsetAndTimestamp{.offset = view_.visible_end(isolation),
                              .leader_epoch = epochs_.latest().value_or(base::kNoLeaderEpoch)};
}

Result<LeaderEpochs::End> PartitionLog::end_of_epoch(base::LeaderEpoch epoch,
                                                     std::int32_t current_leader_epoch) const {
    KAAS_TRY(check_epoch(current_leader_epoch));
    base::MutexLock lock(view_mutex_);
    KAAS_TRY(check_readable());
    return epochs_.end_of(epoch, view_.high_watermark);
}

Result<std::optional<OffsetAndTimestamp>> PartitionLog::first_at_or_after(std::int64_t timestamp_ms,
                                                                          Isolation isolation) {
    return look_again_if_gone([&]() -> Result<std::optional<OffsetAndTimestamp>> {
        KAAS_TRY_ASSIGN(seen, open_view());
        return first_record_at_or_after(volume_, seen, timestamp_ms, seen.visible_end(isolation),
                                        log_dir_.time_site());
    });
}

Result<std::optional<OffsetAndTimestamp>> PartitionLog::of_max_timestamp(Isolation isolation) {
    return look_again_if_gone([&]() -> Result<std::optional<OffsetAndTimestamp>> {
        KAAS_TRY_ASSIGN(seen, open_view());
        return record_of_max_timestamp(volume_, seen, seen.visible_end(isolation),
                                       log_dir_.time_site());
    });
}

}  // namespace kaas::storage
