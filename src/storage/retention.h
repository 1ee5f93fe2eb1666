#pragma once

#include "base/ids.h"
#include "storage/log_config.h"
#include "storage/segment.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kaas::storage {

/// What is to leave a log.
struct RetentionPlan {
    std::size_t segments = 0;  ///< how many of the oldest, the last segment not counted
    /// The last segment is to go too: it must be rolled first, so that there is one to append to.
    bool last = false;

    [[nodiscard]] bool anything() const { return segments > 0 || last; }
};

/// Which segments of a log leave it now: what lies below `log_start`, what is too much by
/// `retention.bytes`, then what is too old by `retention.ms`; always the oldest first, and none
/// behind one that stays. `segments` are by offset, all durable, the last one still appended to.
/// A segment is as old as its newest record; one without times, as its last append; one with a time
/// in the future stays. Source: Apache 4.4 `UnifiedLog.deleteOldSegments`.
[[nodiscard]] RetentionPlan plan_retention(std::span<const SegmentFacts> segments,
                                           base::Offset log_start, std::int64_t now_ms,
                                           const LogConfig& config);

}  // namespace kaas::storage
