#include "storage/compaction_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace kaas::storage {
namespace {

/// Where the segment begins that is appended to, or was when the log was last written: a log that
/// nobody has written since it was opened has no other.
[[nodiscard]] base::Offset active_base(const LogView& view) {
    if (view.last.segment != nullptr) return view.last.facts.base;
    return view.sealed->empty() ? view.high_watermark : view.sealed->back().facts.base;
}

}  // namespace

Cleanable find_cleanable(const LogView& view, base::Offset clean_to, const LogConfig& config,
                         std::int64_t now_ms) {
    const bool known = clean_to >= view.log_start && clean_to <= view.high_watermark;
    Cleanable found{.first_dirty = known ? clean_to : view.log_start};
    const auto limit = std::min(view.last_stable_offset, active_base(view));
    const auto& sealed = *view.sealed;
    const auto is_dirty = [&](const SegmentFacts& facts) { return facts.end > found.first_dirty; };
    const auto is_young = [&](const SegmentFacts& facts) {
        return config.min_compaction_lag_ms > 0 && is_dirty(facts) &&
               facts.max_timestamp_ms > now_ms - config.min_compaction_lag_ms;
    };
    while (found.sealed_end < sealed.size()) {
        const auto& facts = sealed[found.sealed_end].facts;
        if (facts.end > limit || is_young(facts)) break;
        // A segment that was compacted in part counts on both sides.
        if (facts.base < found.first_dirty) found.clean_bytes += facts.bytes;
        if (is_dirty(facts)) found.dirty_bytes += facts.bytes;
        if (!is_dirty(facts)) ++found.sealed_dirty;
        ++found.sealed_end;
    }
    found.first_uncleanable = found.sealed_end < sealed.size()
                                  ? sealed[found.sealed_end].facts.base
                                  : std::max(active_base(view), found.first_dirty);
    return found;
}

std::vector<SegmentGroup> group_segments(std::span<const SegmentExtent> segments,
                                         const LogConfig& config) {
    const auto bytes_max = static_cast<std::uint64_t>(config.segment_bytes);
    const auto index_bytes_max = static_cast<std::uint64_t>(config.segment_index_bytes);
    std::vector<SegmentGroup> groups;
    SegmentExtent joined{};
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const auto& next = segments[i];
        const bool fits =
            !groups.empty() && joined.bytes + next.bytes <= bytes_max &&
            joined.offset_index_bytes + next.offset_index_bytes <= index_bytes_max &&
            joined.time_index_bytes + next.time_index_bytes <= index_bytes_max &&
            next.last_offset - joined.base <= std::numeric_limits<std::int32_t>::max();
        if (!fits) {
            groups.push_back({i, i + 1});
            joined = next;
            continue;
        }
        groups.back().last = i + 1;
        joined.bytes += next.bytes;
        joined.offset_index_bytes += next.offset_index_bytes;
        joined.time_index_bytes += next.time_index_bytes;
    }
    return groups;
}

}  // namespace kaas::storage
