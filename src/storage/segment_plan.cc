#include "storage/segment_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace kaas::storage {
namespace {

constexpr auto kMostRelative = std::int64_t{std::numeric_limits<std::int32_t>::max()};

}  // namespace

std::int64_t roll_jitter_ms(const LogConfig& config, const std::string& directory,
                            base::Offset base) {
    const auto most = std::min(config.segment_jitter_ms, config.segment_ms);
    if (most <= 0) return 0;
    const auto mixed = std::hash<std::string>{}(directory) + static_cast<std::size_t>(base.value());
    return static_cast<std::int64_t>(mixed % static_cast<std::size_t>(most));
}

bool SegmentPlan::must_roll_before(const BatchFacts& batch, std::int64_t now_ms,
                                   const LogConfig& config) const {
    const auto room = std::int64_t{config.segment_bytes} - static_cast<std::int64_t>(batch.bytes);
    if (static_cast<std::int64_t>(facts_.bytes) > room) return true;
    if (batch.last_offset - facts_.base > kMostRelative) return true;
    if (facts_.bytes == 0) return false;
    // Time goes by the records once they have any, so that replayed old data rolls as it did when
    // new.
    // Records may have any time: one that is older than the first has not waited.
    const auto waited =
        first_timestamp_ms_ >= 0
            ? std::max(batch.max_timestamp_ms, first_timestamp_ms_) - first_timestamp_ms_
            : now_ms - created_ms_;
    if (waited > config.segment_lasts_ms() - jitter_ms_) return true;
    const auto index_bytes = std::int64_t{config.segment_index_bytes};
    // One slot of the time index is kept for the entry that closes it.
    return offset_entries_ >= index_bytes / std::int64_t{OffsetEntry::kBytes} ||
           time_entries_ >= index_bytes / std::int64_t{TimeEntry::kBytes} - 1;
}

SegmentPlan::Placement SegmentPlan::add(const BatchFacts& batch, const LogConfig& config) {
    Placement placement;
    placement.position = facts_.bytes;
    if (facts_.bytes == 0) first_timestamp_ms_ = batch.max_timestamp_ms;
    if (batch.max_timestamp_ms > facts_.max_timestamp_ms) {
        facts_.max_timestamp_ms = batch.max_timestamp_ms;
        facts_.max_timestamp_offset = batch.last_offset;
    }
    facts_.appended_ms = facts_.max_timestamp_ms < 0 ? batch.now_ms : -1;
    if (bytes_since_entry_ > static_cast<std::uint64_t>(config.index_interval_bytes)) {
        placement.offset_entry = {
            .relative_offset = static_cast<std::int32_t>(batch.last_offset - facts_.base),
            .position = static_cast<std::int32_t>(facts_.bytes)};
        ++offset_entries_;
        placement.time_entry = time_entry();
        if (placement.time_entry) {
            ++time_entries_;
            last_entry_timestamp_ms_ = placement.time_entry->timestamp_ms;
        }
        bytes_since_entry_ = 0;
    }
    bytes_since_entry_ += batch.bytes;
    if (batch.aborted) facts_.aborted.add(*batch.aborted);
    facts_.bytes += batch.bytes;
    facts_.end = batch.last_offset + 1;
    placement.after = facts_;
    return placement;
}

std::optional<TimeEntry> SegmentPlan::time_entry() const {
    if (facts_.max_timestamp_ms <= last_entry_timestamp_ms_) return std::nullopt;
    return TimeEntry{
        .timestamp_ms = facts_.max_timestamp_ms,
        .relative_offset = static_cast<std::int32_t>(facts_.max_timestamp_offset - facts_.base)};
}

}  // namespace kaas::storage
